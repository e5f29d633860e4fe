"""Finding problems in a local checkout of KernelBench (github.com/ScalingIntelligence/KernelBench)."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from problems.spec import ProblemError

PREFIX = "kernelbench:"
VARIABLE = "KERNELBENCH_DIR"
_FORMS = "kernelbench:1/87, kernelbench:level2/4 or kernelbench:level2/4_Its_Name"
_SET_FORMS = "kernelbench:1, kernelbench:level1/1-20 or kernelbench:2/3,7,40-50"


def checkout(kernelbench_dir: Path | None) -> Path:
    """The folder that holds `level1`, `level2`, … of the checkout in the argument, or else in `KERNELBENCH_DIR`."""
    named = kernelbench_dir or (Path(value) if (value := os.environ.get(VARIABLE)) else None)
    if named is None:
        raise ProblemError(
            "No KernelBench checkout is known. Get one with "
            "`git clone https://github.com/ScalingIntelligence/KernelBench` "
            f"and pass --kernelbench DIR or set {VARIABLE}."
        )
    folder = named.expanduser()
    for candidate in (folder / "KernelBench", folder):
        if any(_levels(candidate)):
            return candidate
    what = "has no level1 folder in it or in its KernelBench folder" if folder.is_dir() else "does not exist"
    raise ProblemError(f"The KernelBench checkout {folder} {what}. Correct --kernelbench or {VARIABLE}.")


def find_problem(ref: str, kernelbench_dir: Path | None) -> tuple[str, Path]:
    """Name (`kernelbench-1-87`) and file of `kernelbench:LEVEL/PROBLEM`. Raises `ProblemError` with close matches."""
    match = re.fullmatch(r"(?:level)?(\d+)/(\d+)(_[^/]*?)?(?:\.py)?", ref.removeprefix(PREFIX))
    if match is None:
        raise ProblemError(f"{ref!r} names no KernelBench problem. Write {_FORMS}.")
    level, number, rest = int(match[1]), int(match[2]), match[3]
    files = level_files(level, checkout(kernelbench_dir))
    path = files.get(number)
    if path is None or (rest is not None and path.stem.lower() != f"{number}{rest}".lower()):
        stems = {file.stem.lower(): file.stem for file in files.values()}
        wanted = f"{number}{rest or ''}".lower()
        near = [stems[stem] for stem in difflib.get_close_matches(wanted, stems, n=3, cutoff=0.5)]
        near = near or ([path.stem] if path else [])
        hint = f" Did you mean {' or '.join(near)}?" if near else f" It has {_ranges(sorted(files))}."
        raise ProblemError(f"KernelBench level {level} has no problem {number}{rest or ''}.{hint}")
    return f"kernelbench-{level}-{number}", path


def find_set(ref: str, kernelbench_dir: Path | None) -> list[str]:
    """References to the problems of `kernelbench:1`, `kernelbench:level1/1-20` or `kernelbench:1/3,7`, by number."""
    match = re.fullmatch(r"(?:level)?(\d+)(?:/(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*))?/?", ref.removeprefix(PREFIX))
    if match is None:
        raise ProblemError(f"{ref!r} names no set of KernelBench problems. Write {_SET_FORMS}.")
    level = int(match[1])
    files = level_files(level, checkout(kernelbench_dir))
    numbers: list[int] = []
    for part in match[2].split(",") if match[2] else []:
        first, _, last = part.partition("-")
        chosen = [number for number in sorted(files) if int(first) <= number <= int(last or first)]
        if not chosen:
            raise ProblemError(f"KernelBench level {level} has no problem {part}. It has {_ranges(sorted(files))}.")
        numbers += chosen
    return [f"{PREFIX}{level}/{number}" for number in dict.fromkeys(numbers or sorted(files))]


def level_files(level: int, folder: Path) -> dict[int, Path]:
    """The problem files of one level by number. Raises `ProblemError` when the level is missing or empty."""
    files: dict[int, Path] = {}
    for path in sorted((folder / f"level{level}").glob("*.py")):
        if match := re.match(r"(\d+)_", path.name):
            files[int(match[1])] = path
    if not files:
        levels = ", ".join(str(number) for number in _levels(folder))
        raise ProblemError(f"{folder} has no problems of level {level}. It has level {levels}.")
    return files


def _levels(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in folder.glob("level*") if path.is_dir() and path.name[5:].isdigit())


def _ranges(numbers: list[int]) -> str:
    """`1-20, 22` for a sorted list of numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)
