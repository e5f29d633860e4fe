"""The problems that come with the program: one folder per set, one file per problem."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
SETS: dict[str, str] = {
    "seeds": "the two convolution problems that the project began with",
    "basics": "one problem per family of operator",
}


def bundled_problems(set_name: str) -> list[Path]:
    """The files of a bundled set, sorted by name. `KeyError` for a set that does not exist."""
    if set_name not in SETS:
        raise KeyError(set_name)
    return sorted(path for path in (_FOLDER / set_name).glob("*.py") if not path.name.startswith("_"))


def bundled_names() -> dict[str, Path]:
    """Every bundled problem by its qualified name, such as `seeds/pointwise_conv`."""
    return {f"{name}/{path.stem}": path for name in SETS for path in bundled_problems(name)}


def find_bundled(name: str) -> list[str]:
    """Qualified names that `name` may mean: one for `basics/layer_norm` or `layer_norm`, none if unknown."""
    names = bundled_names()
    if name in names:
        return [name]
    return [qualified for qualified in names if qualified.partition("/")[2] == name]
