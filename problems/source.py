"""Reading a problem file as text and checking, by its syntax tree alone, that it has the parts a judge needs."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from problems.spec import ProblemError

MAX_SOURCE_BYTES = 4 << 20
"""A larger file is no problem file: the text goes into prompts and the run folder."""

EXPECTED = (
    "A problem file defines `class Model(nn.Module)` with a `forward`, `get_inputs()` that returns the list of its "
    "arguments, and, if `Model` takes any, `get_init_inputs()`; `agent problems show layer_norm` prints one."
)


def read_text(path: Path) -> str:
    """The text of a problem file. Raises `ProblemError` when it is missing, empty, a folder, too large or not UTF-8."""
    try:
        if path.is_dir():
            advice = (
                f"Name one problem file in it, or run all of them with `agent batch {path}`."
                if any(path.glob("*.py"))
                else "It holds no .py file. Name a problem file, or a bundled problem (`agent problems list`)."
            )
            raise ProblemError(f"{path} is a folder. {advice}")
        if not path.is_file():
            raise ProblemError(f"{path} is not a regular file. Name a Python file with a problem in it.")
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise ProblemError(f"{path} is larger than {MAX_SOURCE_BYTES >> 20} MiB: no problem file is. {EXPECTED}")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ProblemError(
            f"{path} can't be read: {error.strerror or error}. Check the path and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x}). "
            "Save the file as UTF-8 and try again."
        ) from error
    if not text.strip():
        raise ProblemError(f"{path} is empty. {EXPECTED}")
    return text


def parse(source: str, where: str) -> ast.Module:
    """The syntax tree of a problem. Raises `ProblemError` with line and text of an error; `where` names the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stray backslash in somebody's docstring is not our user's concern
            return ast.parse(source)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        text = f"\n    {error.text.strip()}" if error.text and error.text.strip() else ""
        raise ProblemError(f"{where}{line}: {error.msg}. Correct the syntax and try again.{text}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(f"{where} can't be parsed as Python: {error or type(error).__name__}.") from error


def module_bindings(tree: ast.Module) -> dict[str, ast.stmt]:
    """Names bound at module level (also under `if`, `try` and `with`), each with the statement that binds it last.

    A star import binds the name `*`.
    """
    return dict(_bindings(tree.body))


def _bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    yield alias.asname or alias.name.partition(".")[0], node
            case ast.Assign():
                for target in node.targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                            yield name.id, node
            case ast.AnnAssign(target=ast.Name() as target) if node.value is not None:
                yield target.id, node
            case ast.If() | ast.For() | ast.While():
                yield from _bindings([*node.body, *node.orelse])
            case ast.With():
                yield from _bindings(node.body)
            case ast.Try():
                handlers = [statement for handler in node.handlers for statement in handler.body]
                yield from _bindings([*node.body, *handlers, *node.orelse, *node.finalbody])
            case _:
                pass


def small_overrides(tree: ast.Module, where: str) -> dict[str, object]:
    """The `SMALL` dict of a problem, or an empty one when it has none (anything but a dict by that name is not ours).

    Raises `ProblemError` when it is not a literal, or overrides a name that the file does not assign.
    """
    bound = module_bindings(tree)
    node = bound.get("SMALL")
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Dict):
        return {}
    line = f"{where}, line {value.lineno}"
    try:
        overrides: object = ast.literal_eval(value)
    except (ValueError, TypeError) as error:
        raise ProblemError(
            f'{line}: SMALL must be a dict literal of names and plain values, such as SMALL = {{"batch_size": 2}}.'
        ) from error
    assert isinstance(overrides, dict)
    result: dict[str, object] = {}
    for name, override in overrides.items():
        if not isinstance(name, str) or name not in bound or name == "SMALL":
            raise ProblemError(
                f"{line}: SMALL overrides {name!r}, which the file does not assign at module level. "
                "Name a module-level constant that get_inputs or get_init_inputs uses."
            )
        result[name] = override
    return result


def check_problem(source: str, where: str) -> tuple[str, ...]:
    """Checks that a problem has its parts, without running it, and returns the sizes it comes in.

    `("full", "small")` for a file with `SMALL`, else `("full",)`. Raises `ProblemError`; `where` names the file in it.
    A missing `get_init_inputs` means that `Model` takes no arguments.
    """
    tree = parse(source, where)
    bound = module_bindings(tree)
    if "*" not in bound:  # what a star import brings can't be known without running it
        if "Model" not in bound and "ModelNew" in bound:
            raise ProblemError(
                f"{where} defines ModelNew but no Model: it is a candidate, not a problem. "
                f"Judge it with `agent evaluate PROBLEM {where}`."
            )
        for name in ("Model", "get_inputs"):
            if name not in bound:
                raise ProblemError(f"{where} defines no `{name}`. {EXPECTED}")
    model = bound.get("Model")
    if isinstance(model, ast.ClassDef) and _is_plain_module(model) and not _has_forward(model):
        raise ProblemError(f"{where}, line {model.lineno}: class Model has no `forward` method. {EXPECTED}")
    for name in ("get_inputs", "get_init_inputs"):
        function = bound.get(name)
        if isinstance(function, ast.FunctionDef) and _required_arguments(function):
            raise ProblemError(
                f"{where}, line {function.lineno}: {name} needs arguments, but the judge calls it with none. "
                "Give them defaults or use module-level constants."
            )
    return ("full", "small") if small_overrides(tree, where) else ("full",)


def _is_plain_module(model: ast.ClassDef) -> bool:
    """Whether it inherits from nothing but `nn.Module`, so that a `forward` can only be its own."""
    return all(ast.unparse(base).rpartition(".")[2] == "Module" for base in model.bases)


def _has_forward(model: ast.ClassDef) -> bool:
    return any(name == "forward" for name, _ in _bindings(model.body))


def _required_arguments(function: ast.FunctionDef) -> bool:
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional > len(arguments.defaults) or any(default is None for default in arguments.kw_defaults)
