"""From what a user types to problems: a path, a bundled name, or a KernelBench reference; one problem or a set."""

from __future__ import annotations

import difflib
import glob
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from problems import kernelbench
from problems.bundled import SETS, bundled_names, bundled_problems, find_bundled
from problems.source import check_problem, read_text
from problems.spec import ProblemError, ProblemSpec


def load_problem(ref: str, *, kernelbench_dir: Path | None = None) -> ProblemSpec:
    """Loads one problem as text; nothing of it is executed.

    `ref` is a path, the name of a bundled problem (`layer_norm`, `seeds/pointwise_conv`), or a problem of a local
    KernelBench checkout (`kernelbench:1/87`, `kernelbench:level2/4_Name`) in `kernelbench_dir` or `KERNELBENCH_DIR`.
    Raises `ProblemError` when there is no such problem or the file lacks a part that the judge needs.
    """
    name, path, origin = _find(ref, kernelbench_dir)
    source = read_text(path)
    sizes = check_problem(source, str(path))
    return ProblemSpec(name=name, source=source, origin=origin, path=path.resolve(), sizes=sizes)


def locate_problem(ref: str, *, kernelbench_dir: Path | None = None) -> tuple[str, Path]:
    """Name and file of the problem that `load_problem` would load, which is not opened.

    Raises `ProblemError` when there is no such problem, or several.
    """
    name, path, _ = _find(ref, kernelbench_dir)
    return name, path.resolve()


def distinct_names(refs: Sequence[str], *, kernelbench_dir: Path | None = None) -> dict[str, str]:
    """A name for each problem that no other of them has, by reference; those that can't be found are left out.

    Files of the same name take that of their folder before it (`old-softmax`, `new-softmax`), of as many folders as
    tell them apart; a number tells apart what even that doesn't. The text of the files is not looked at, so the names
    stay while it changes.
    """
    found: dict[str, tuple[str, Path]] = {}
    for ref in refs:
        with suppress(ProblemError):
            found[ref] = locate_problem(ref, kernelbench_dir=kernelbench_dir)
    times = Counter(name for name, _ in found.values())
    names = {ref: name for ref, (name, _) in found.items() if times[name] == 1}
    for shared in (name for name, count in times.items() if count > 1):
        group = {ref: path for ref, (name, path) in found.items() if name == shared}
        longer = {ref: shared for ref in group}
        for depth in range(1, max(len(path.parts) for path in group.values())):
            longer = {
                ref: _folder_name("-".join([*path.parent.parts[-depth:], path.stem])) for ref, path in group.items()
            }
            if len({*longer.values()} - {*names.values()}) == len(group):
                break
        for ref, name in longer.items():
            taken = {*names.values()}
            numbered = (f"{name[:58]}-{number}" for number in range(2, 2 + len(refs)))
            names[ref] = name if name not in taken else next(other for other in numbered if other not in taken)
    return names


def _find(ref: str, kernelbench_dir: Path | None) -> tuple[str, Path, Literal["path", "bundled", "kernelbench"]]:
    ref = ref.strip()
    if not ref:
        raise ProblemError("No problem was named. Give a path or a name that `agent problems list` prints.")
    if ref.startswith(kernelbench.PREFIX):
        name, path = kernelbench.find_problem(ref, kernelbench_dir)
        return name, path, "kernelbench"
    if ref in SETS:
        raise ProblemError(f"{ref} is a set. Name one of its problems, or run all of them with `agent batch {ref}`.")
    found = find_bundled(ref)
    if len(found) > 1:
        raise ProblemError(f"{ref} names several bundled problems: {', '.join(found)}. Use one of these names.")
    if found:
        path = bundled_names()[found[0]]
        return path.stem, path, "bundled"
    path = Path(ref).expanduser()
    if not path.exists():
        raise ProblemError(_no_such_problem(ref, path))
    return _folder_name(path.stem), path, "path"


def resolve_set(ref: str, *, kernelbench_dir: Path | None = None) -> list[str]:
    """The problems of a set, each as a reference that `load_problem` takes, in order and without repetition.

    `ref` is a bundled set (`seeds`, `basics`), a folder of `.py` files, a glob, `kernelbench:1`,
    `kernelbench:level1/1-20`, a text file with one reference or set on a line (`#` begins a comment; paths are relative
    to the text file), or a single problem. Raises `ProblemError` when it names none. Problems are not loaded here.
    """
    path = Path(ref).expanduser()
    if path.suffix in (".txt", ".list") and path.is_file():
        refs: list[str] = []
        unknown: list[str] = []
        for number, line in enumerate(read_text(path).splitlines(), 1):
            entry = line.partition("#")[0].strip()
            if not entry:
                continue
            try:
                refs += _resolve(_relative_to(entry, path.parent), kernelbench_dir)
            except ProblemError as error:
                unknown.append(f"{path}, line {number}: {error}")
        if unknown:
            raise ProblemError("\n".join(unknown))
    else:
        refs = _resolve(ref, kernelbench_dir)
    if not refs:
        raise ProblemError(
            f"{ref} names no problem. Use a bundled set ({', '.join(SETS)}), a folder, a glob or a file."
        )
    return list(dict.fromkeys(refs))


def _resolve(ref: str, kernelbench_dir: Path | None) -> list[str]:
    if ref.startswith(kernelbench.PREFIX):
        if re.search(r"/\d+_", ref):
            return [ref]
        return kernelbench.find_set(ref, kernelbench_dir)
    if ref in SETS:
        return [f"{ref}/{path.stem}" for path in bundled_problems(ref)]
    if find_bundled(ref):
        return [ref]
    path = Path(ref).expanduser()
    if path.is_dir():
        files = _problem_files(path.glob("*.py"))
        if not files:
            levels = (path / "level1").is_dir() or (path / "KernelBench").is_dir()
            hint = (
                f"For KernelBench use `kernelbench:1` with --kernelbench {path}." if levels else "Name another folder."
            )
            raise ProblemError(f"The folder {path} holds no .py file. {hint}")
        return [str(file) for file in files]
    if path.is_file():
        return [ref]
    if any(character in ref for character in "*?["):
        files = _problem_files(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
        if not files:
            raise ProblemError(f"No .py file matches {ref}. Check the pattern, and quote it if your shell expands it.")
        return [str(file) for file in files]
    raise ProblemError(_no_such_problem(ref, path))


def _relative_to(entry: str, folder: Path) -> str:
    """An entry of a text file: a path beside it if there is one (or a pattern), else what it says."""
    if entry.startswith(kernelbench.PREFIX) or entry in SETS or find_bundled(entry):
        return entry
    return str(folder / Path(entry).expanduser())


def _problem_files(paths: Iterable[Path]) -> list[Path]:
    """Problem files in natural order, so that 2_… comes before 10_…."""
    return sorted(
        (path for path in paths if path.suffix == ".py" and path.is_file() and not path.name.startswith("_")),
        key=lambda path: [
            (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", str(path))
        ],
    )


def _folder_name(stem: str) -> str:
    """A file's stem as a name for a run folder: letters, digits, dot, dash and underscore, at most 64 of them."""
    return re.sub(r"[^\w.-]+", "_", stem, flags=re.ASCII).strip("._-")[:64] or "problem"


def _no_such_problem(ref: str, path: Path) -> str:
    """Says that there is no such file or name, with names close to it: files beside it and bundled problems."""
    near: list[str] = []
    if path.parent.is_dir():
        siblings = {file.stem: str(file) for file in path.parent.glob("*.py")}
        near += [siblings[stem] for stem in difflib.get_close_matches(path.stem, siblings, n=2, cutoff=0.7)]
    qualified = {name.partition("/")[2]: name for name in bundled_names()}
    typed = ref.rpartition("/")[2].removesuffix(".py")
    near += difflib.get_close_matches(typed, [*qualified, *SETS], n=3, cutoff=0.6)
    hint = (
        f"Did you mean {' or '.join(dict.fromkeys(near))}?"
        if near
        else "`agent problems list` prints the bundled ones."
    )
    return f"There is no file and no bundled problem {ref}. {hint}"
