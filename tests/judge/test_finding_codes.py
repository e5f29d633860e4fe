"""Every finding that the judge can make of a candidate has a paragraph that tells the model what to look at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import prompts
from tools.judge.inputs import SPECIAL
from tools.types import Finding

ROOT = Path(__file__).parents[2]
JUDGE = ROOT / "tools/judge"
OF_THE_PROBLEM = {"soundness.py", "self_agreement.py", "examination.py", "repair.py"}
"""What these find is told of a problem, before any candidate."""

SHIFTED = {
    "scaled_up": "scaled",
    "scaled_down": "scaled",
    "shifted_up": "shifted",
    "shifted_down": "shifted",
    "far_down": "shifted",
    "one_large": "uneven",
    "one_huge": "uneven",
}
FOR_EACH_KIND = {"fails_on_" + SHIFTED.get(kind, kind) for kind in SPECIAL}


def values(node: ast.expr, names: dict[str, set[str]]) -> set[str]:
    """The strings that an expression may be; empty where it is put together from parts."""
    match node:
        case ast.Constant(value=str() as text):
            return {text}
        case ast.IfExp(body=body, orelse=other):
            return values(body, names) | values(other, names)
        case ast.Name(id=name):
            return names.get(name, set())
        case _:
            return set()


def emitted(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Each call that makes a finding, with the codes that it may give it."""
    tree = ast.parse(path.read_text())
    names: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, set()).update(values(node.value, {}))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("observe", "_finding"):
            yield f"{path.name}:{node.lineno}", values(node.args[0], names)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "code":
                    yield f"{path.name}:{node.lineno}", values(value, names)


def explained() -> set[str]:
    text = (ROOT / "prompts/findings.j2").read_text()
    return set(re.findall(r"^  '(\w+)':", text, re.MULTILINE))


FILES = [p for p in sorted(JUDGE.glob("*.py")) if p.name not in OF_THE_PROBLEM]
CALLS = [call for path in FILES for call in emitted(path)]


def test_the_calls_are_found():
    codes = {code for _, found in CALLS for code in found}
    assert {"nan_output", "tile_tail", "race", "poison_dependent", "hung", "forged_reply", "side_stream"} <= codes
    assert len(codes) > 40


@pytest.mark.parametrize("code", sorted({code for _, found in CALLS for code in found} | FOR_EACH_KIND))
def test_every_code_is_explained(code: str):
    assert code in explained()


def test_a_code_that_is_put_together_is_one_of_those_for_each_kind():
    """A call whose code can't be read off must be known here, or a code may go without words."""
    unread = {where.split(":")[0] for where, found in CALLS if not found}
    assert unread <= {"check.py", "diagnose.py"}


def test_the_paragraph_stands_under_the_summary():
    show = prompts._environment().get_template("findings.j2").module.list  # pyright: ignore[reportAttributeAccessIssue]
    text = show([Finding(code="tile_tail", summary="3 of 8 are wrong", observed={"axis": 1})])
    assert re.search(r"`tile_tail`: 3 of 8 are wrong\n.*axis = 1.*\n\s+The wrong elements sit where", text, re.DOTALL)
    bare = show([Finding(code="no_such_code", summary="3 of 8 are wrong")])
    assert bare.strip().endswith("3 of 8 are wrong")
