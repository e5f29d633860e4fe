"""Conditions on parameters, such as `TILE * STAGES * 4 <= 49152`: read as data, computed without running any code.

Only arithmetic, comparisons, `and`/`or`/`not`, `in`, `a if c else b`, `min`, `max` and `abs` are known, and every
number stays small enough to be computed at once.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection
from typing import Any

from tools.tuning.parameters import Point

LONGEST = 300
_LARGEST = 1 << 64
_DEEPEST = 40
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


class ConstraintError(ValueError):
    """A constraint can't be read, or can't be computed for some values. The message is for whoever wrote it."""


class Constraint:
    """One condition on the parameters `names`. Raises ConstraintError when it is none."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise ConstraintError(f"`{text[:40]}…` is longer than {LONGEST} characters")
        try:
            self._body = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ConstraintError(f"`{text}` is no expression; write it as in Python (`and`, `or`, `not`)") from None
        self._read(self._body, frozenset(names), _DEEPEST)

    def holds(self, point: Point) -> bool:
        """Whether it is true of these values. Raises ConstraintError where it can't be computed."""
        try:
            return bool(_value(self._body, point))
        except (ArithmeticError, TypeError, ValueError) as error:
            values = ", ".join(f"{name} = {value}" for name, value in point.items())
            raise ConstraintError(f"`{self.text}` can't be computed for {values}: {error}") from None

    def _read(self, node: ast.expr, names: frozenset[str], depth: int) -> None:
        """Refuse everything that `_value` does not know, before anything is computed."""
        known: bool
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                known = not isinstance(node.value, int) or abs(node.value) <= _LARGEST
            case ast.Name(id=name):
                if name not in names:
                    raise ConstraintError(f"`{self.text}`: there is no parameter {name}; there are {', '.join(names)}")
                known = True
            case ast.BinOp(op=op):
                known = type(op) in _BINARY
            case ast.UnaryOp(op=op):
                known = type(op) in _UNARY
            case ast.Compare(ops=ops):
                known = all(type(op) in _COMPARE for op in ops)
            case ast.Call(func=ast.Name(id=name), keywords=[], args=args):
                known = name in _FUNCTIONS and bool(args) and not any(isinstance(a, ast.Starred) for a in args)
            case ast.BoolOp() | ast.IfExp() | ast.Tuple() | ast.List():
                known = True
            case _:
                known = False
        if not known or depth == 0:
            raise ConstraintError(f"`{self.text}`: `{ast.unparse(node)[:60]}` is not understood")
        for child in _operands(node):
            self._read(child, names, depth - 1)


def _operands(node: ast.expr) -> list[ast.expr]:
    children = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
    return [child for child in children if isinstance(child, ast.expr)]


def _value(node: ast.expr, point: Point) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return point[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, point))
        case ast.BinOp(left=left, op=op, right=right):
            return _computed(op, _value(left, point), _value(right, point))
        case ast.BoolOp(op=op, values=values):
            kind = all if isinstance(op, ast.And) else any
            return kind(_value(value, point) for value in values)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, point) else other, point)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, point) for side in (left, *rights)]
            return all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_value(argument, point) for argument in args))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return [_value(element, point) for element in elements]
        case _:
            raise TypeError("not understood")


def _computed(op: ast.operator, left: Any, right: Any) -> Any:
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise TypeError("arithmetic is for numbers")
    if isinstance(op, ast.Pow | ast.LShift) and not (abs(right) <= 64 and abs(left) <= 1 << 32):
        raise OverflowError("the numbers are too large")
    found = _BINARY[type(op)](left, right)
    if isinstance(found, complex) or abs(found) > _LARGEST:
        raise OverflowError("the numbers are too large")
    return found
