"""What the text of a problem tells about it, without running it.

A syntax tree can't see what a problem computes at run time, so everything here is a description for a reader or a
prompt and never a verdict. The judge measures what matters.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from problems import operators
from problems.source import module_bindings, parse, small_overrides


class ProblemAnalysis(BaseModel):
    """What was found in a problem's text. Operators are named as PyTorch's documentation names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str = Field(description="first paragraph of the file's or the model's docstring, or empty")
    forward_arguments: tuple[str, ...]
    init_arguments: tuple[str, ...]
    returns: str | None = Field(description="`tensor`, `tuple of 2`, `dict of a, b`, or None if not evident")
    operators: tuple[str, ...] = Field(description="in order of appearance, such as `torch.nn.Conv2d`, `matmul`")
    dropout: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    mutated_arguments: tuple[str, ...] = Field(default=(), description="arguments of forward changed in place")
    random: tuple[str, ...] = Field(default=(), description="operators that draw random numbers inside the model")
    nondeterministic: tuple[str, ...] = Field(default=(), description="may differ between identical runs on CUDA")
    training_mode: tuple[str, ...] = Field(default=(), description="modules that differ between train and eval mode")
    input_sources: tuple[str, ...] = Field(default=(), description="what get_inputs draws from, such as `torch.rand`")
    dtypes: tuple[str, ...] = Field(default=(), description="dtypes that the file names, such as `bfloat16`")
    constants: dict[str, str] = Field(default_factory=dict, description="module-level constants as source text")
    small: dict[str, str] = Field(default_factory=dict, description="overrides of the small size as source text")
    third_party_imports: tuple[str, ...] = Field(default=(), description="beside the standard library, torch and numpy")


def analyse(source: str, where: str = "the problem") -> ProblemAnalysis:
    """Reads a problem's text. Raises `ProblemError` when it is not Python; `where` names the file in the message."""
    tree = parse(source, where)
    bound = module_bindings(tree)
    model = bound.get("Model")
    names = _ImportedNames(tree)
    seen = _Operators(names)
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in ("get_inputs", "get_init_inputs"):
            seen.visit(node)
    forward = _method(model, "forward")
    init = _method(model, "__init__")
    arguments = _arguments(forward)
    inputs = bound.get("get_inputs")
    docstrings = (ast.get_docstring(node) for node in (tree, model) if isinstance(node, ast.Module | ast.ClassDef))
    docstring = next((text for text in docstrings if text), "")
    return ProblemAnalysis(
        summary=" ".join(docstring.partition("\n\n")[0].split()),
        forward_arguments=arguments,
        init_arguments=_arguments(init),
        returns=_returns(forward),
        operators=_unique(seen.operators),
        dropout=_unique(seen.dropout),
        in_place=_unique(seen.in_place),
        mutated_arguments=_unique(_mutated(forward, set(arguments))),
        random=_unique(name for name in seen.operators if operators.is_random(name) or name in seen.dropout),
        nondeterministic=_unique(name for name in seen.operators if operators.is_nondeterministic(name)),
        training_mode=_unique(
            name
            for name in seen.operators
            if operators.is_module(name) and (operators.depends_on_mode(name) or name in seen.dropout)
        ),
        input_sources=_unique(_sources(inputs, names)),
        dtypes=_unique(_dtypes(tree)),
        constants=dict(_constants(tree)),
        small={name: repr(value) for name, value in small_overrides(tree, where).items()},
        third_party_imports=_unique(_third_party(tree)),
    )


class _ImportedNames:
    """Local names of what was imported: `F` → `torch.nn.functional`."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._full[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._full[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def resolve(self, node: ast.expr) -> str | None:
        """`F.relu` → `torch.nn.functional.relu`; None for what is not a dotted name that begins with an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._full:
            return None
        return ".".join([self._full[node.id], *reversed(parts)])


class _Operators(ast.NodeVisitor):
    """Collects operators of the model's classes and functions, in order of appearance."""

    def __init__(self, names: _ImportedNames) -> None:
        self._names = names
        self._constructing = False
        self._inputs: set[str] = set()
        self.operators: list[str] = []
        self.dropout: list[str] = []
        self.in_place: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # A constructor draws and transforms weights; of what it calls only the modules run in forward.
        before = self._constructing, self._inputs
        self._constructing = node.name == "__init__"
        self._inputs = set(_arguments(node)) if node.name == "forward" else set()
        self.generic_visit(node)
        self._constructing, self._inputs = before

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)  # arguments first: they run first
        full = self._names.resolve(node.func)
        if full is not None:
            if operators.is_module(full) if self._constructing else operators.is_operator(full):
                self._add(full, node)
        elif isinstance(node.func, ast.Attribute) and not self._constructing:
            owner = node.func.value
            own_method = isinstance(owner, ast.Name) and owner.id == "self"
            if not own_method and operators.is_tensor_method(node.func.attr):
                self._add(node.func.attr, node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        name = operators.ARITHMETIC.get(type(node.op))
        # Only arithmetic on an argument of forward is surely a tensor's: much of the rest computes sizes.
        sides = {side.id for side in (node.left, node.right) if isinstance(side, ast.Name)}
        if name == "matmul" or (name and sides & self._inputs):
            self.operators.append(name)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            self.operators.append("matmul")

    def _add(self, name: str, node: ast.Call) -> None:
        self.operators.append(name)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if operators.is_dropout(name) or any(_is_set(keywords.get(word)) for word in ("dropout", "dropout_p")):
            self.dropout.append(name)
        if operators.is_in_place(name) or "out" in keywords or _is_true(keywords.get("inplace")):
            self.in_place.append(name)


def _is_set(node: ast.expr | None) -> bool:
    """Whether a dropout argument is given and not evidently zero."""
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _method(model: ast.stmt | None, name: str) -> ast.FunctionDef | None:
    if not isinstance(model, ast.ClassDef):
        return None
    methods = (node for node in model.body if isinstance(node, ast.FunctionDef))
    return next((node for node in methods if node.name == name), None)


def _arguments(function: ast.FunctionDef | None) -> tuple[str, ...]:
    """Names without `self`; `*args` and `**kwargs` with their stars."""
    if function is None:
        return ()
    arguments = function.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]][1:]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [argument.arg for argument in arguments.kwonlyargs]
    return (*names, *([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []))


def _returns(forward: ast.FunctionDef | None) -> str | None:
    """What all `return` statements agree on, or the annotation, or None."""
    if forward is None:
        return None
    values = [node.value for node in ast.walk(forward) if isinstance(node, ast.Return) and node.value is not None]
    kinds = {_kind(value) for value in values}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return kind
    annotation = ast.unparse(forward.returns) if forward.returns else ""
    return "tensor" if annotation.rpartition(".")[2] == "Tensor" else None


def _kind(value: ast.expr) -> str | None:
    match value:
        case ast.Tuple():
            return f"tuple of {len(value.elts)}"
        case ast.List():
            return f"list of {len(value.elts)}"
        case ast.Dict() if all(isinstance(key, ast.Constant) for key in value.keys):
            return "dict of " + ", ".join(str(key.value) for key in value.keys if isinstance(key, ast.Constant))
        case ast.BinOp():
            return "tensor"
        case _:
            return None


def _mutated(forward: ast.FunctionDef | None, arguments: set[str]) -> Iterator[str]:
    """Arguments that forward changes in place while the name still means the caller's tensor.

    A name that was assigned before no longer does, so a later change of it is not the caller's concern.
    """
    rebound: set[str] = set()
    nodes = [node for node in ast.walk(forward) if isinstance(node, ast.stmt | ast.expr)] if forward else []
    for node in sorted(nodes, key=lambda node: node.lineno):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    rebound.add(target.id)
                elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    yield from {target.value.id} & arguments - rebound
        elif isinstance(node, ast.AugAssign):
            target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            if isinstance(target, ast.Name):
                yield from {target.id} & arguments - rebound
        elif isinstance(node, ast.Call):
            changed = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
            if isinstance(node.func, ast.Attribute) and operators.is_in_place(node.func.attr):
                changed.append(node.func.value)
            yield from {name.id for name in changed if isinstance(name, ast.Name)} & arguments - rebound


def _sources(inputs: ast.stmt | None, names: _ImportedNames) -> Iterator[str]:
    for node in ast.walk(inputs) if inputs else ():
        if isinstance(node, ast.Call):
            full = names.resolve(node.func)
            if full is not None and full.startswith("torch."):
                yield full


def _dtypes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in operators.DTYPES:
            yield operators.DTYPES[node.attr]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for name, node in module_bindings(tree).items():
        if name != "SMALL" and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield name, ast.unparse(node.value)


def _third_party(tree: ast.Module) -> Iterator[str]:
    known = {*sys.stdlib_module_names, "torch", "numpy"}
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        yield from (top for module in modules if (top := module.partition(".")[0]) not in known)


def _unique(names: Iterator[str] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
