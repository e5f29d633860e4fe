"""Where a source defines a parameter, what stands there afterwards, and what constraints can and can't say."""

from __future__ import annotations

import pytest

from tools.tuning import Constraint, ConstraintError, expand, places, variant
from tools.tuning.parameters import current

SOURCE = '''"""Grüße: a file with more bytes than characters."""
ROWS = 4
SCALE: float = -0.5
KIND = "slow"
cpp = r"""
// #define TILE 1
#define TILE   32   // columns
#define TILE_ROWS 8
  #  define VEC float2 /* wide */
#define SQUARE(TILE) ((TILE) * (TILE))
static constexpr int THREADS = 128, STAGES = 2;
const bool FUSED = false;
int TILE_LOCAL = 7;
constexpr int LANES{4};
enum Shape { WIDE = 4,
             TALL = 8 };
using Real = float;
template <typename T, int WARPS = 4> void g();
/* const int GONE = 3;
   #define LOST 4 */
// const int GONE = 5;
"""
flags = ["-O3", "-DUNROLL=4", "-DUNROLL_MORE=9"]
def f():
    ROWS = 9
'''


@pytest.mark.parametrize(
    ("name", "lines", "value"),
    [
        ("TILE", [7], "32"),
        ("TILE_ROWS", [8], "8"),
        ("VEC", [9], "float2"),
        ("THREADS", [11], "128"),
        ("STAGES", [11], "2"),
        ("FUSED", [12], "false"),
        ("LANES", [14], "4"),
        ("WIDE", [15], "4"),
        ("TALL", [16], "8"),
        ("Real", [17], "float"),
        ("WARPS", [18], "4"),
        ("UNROLL", [23], "4"),
        ("ROWS", [2], "4"),
        ("SCALE", [3], "-0.5"),
        ("KIND", [4], '"slow"'),
    ],
)
def test_a_definition_is_found_with_its_line_and_value(name: str, lines: list[int], value: str):
    assert places(SOURCE, name) == lines
    assert current(SOURCE, name) == value


@pytest.mark.parametrize(
    "name", ["SQUARE", "TILE_LOCAL", "GONE", "LOST", "f", "columns", "NOWHERE", "", "A B", "(", "TIL"]
)
def test_what_is_no_definition_of_a_plain_value_is_none(name: str):
    assert places(SOURCE, name) == []


def test_only_the_values_change():
    changed = variant(
        SOURCE, {"TILE": 64, "VEC": "float4", "STAGES": 3, "FUSED": True, "UNROLL": 2, "ROWS": 16, "KIND": "fast"}
    )
    expected = SOURCE
    for old, new in (
        ("#define TILE   32   //", "#define TILE   64   //"),
        ("define VEC float2", "define VEC float4"),
        ("STAGES = 2;", "STAGES = 3;"),
        ("FUSED = false", "FUSED = true"),
        ("-DUNROLL=4", "-DUNROLL=2"),
        ("\nROWS = 4", "\nROWS = 16"),
        ('KIND = "slow"', "KIND = 'fast'"),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert changed == expected


def test_every_definition_of_a_name_gets_the_value():
    both = 'TILE = 32\ncpp = """\n#define TILE 32\n"""\n'
    assert places(both, "TILE") == [1, 3]
    assert variant(both, {"TILE": 64}) == both.replace("32", "64")


def test_a_truth_value_is_written_as_each_language_has_it():
    both = 'FAST = False\ncpp = """\n#define FAST false\n"""\n'
    assert variant(both, {"FAST": True}) == 'FAST = True\ncpp = """\n#define FAST true\n"""\n'


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("A * B <= 128", True),
        ("A * B > 128", False),
        ("B % A == 0 and not A > B", True),
        ("A == 4 or B == 8", False),
        ("1 < A < B", True),
        ("1 < B < A", False),
        ("A in (2, 4) or KIND == 'half'", True),
        ("KIND not in ['half']", False),
        ("min(A, B, 9) == 8 and max(A, B) == 16 and abs(-A) == A", True),
        ("(A if KIND == 'half' else B) == 8", True),
        ("A << 2 == 32 and A ** 2 == 64 and A // 3 == 2 and A / 16 == 0.5 and A & 8 and ~A == -9", True),
    ],
)
def test_constraints(text: str, holds: bool):
    assert Constraint(text, ["A", "B", "KIND"]).holds({"A": 8, "B": 16, "KIND": "half"}) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A <",
        "A && B",
        "C > 1",
        "__import__('os').system('true')",
        "A.bit_length() > 2",
        "A[0]",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "print(A)",
        "min(*(A, B))",
        "min()",
        "max(A, B, key=abs)",
        "f'{A}'",
        "A := 3",
        "A is B",
        "10 ** 400",
        "b'x' == A",
        "9" * 30 + " > A",
        "A" + " + A" * 200,
        "(" * 150 + "A" + ")" * 150,
        "not " * 60 + "A",
    ],
)
def test_what_is_no_constraint_is_refused_before_anything_is_computed(text: str):
    with pytest.raises(ConstraintError):
        Constraint(text, ["A", "B"]).holds({"A": 8, "B": 16})


@pytest.mark.parametrize(
    "text",
    [
        "A / B > 1",
        "A % B",
        "A ** 64 ** 2",
        "1 << A << 60",
        "A * A * A * A > 1",
        "(-8) ** 0.5",
        "A + KIND == 1",
        "KIND * 3 == ''",
        "A < KIND",
    ],
)
def test_what_cannot_be_computed_is_said_with_the_values(text: str):
    with pytest.raises(ConstraintError, match="A = 4294967296, B = 0, KIND = x"):
        Constraint(text, ["A", "B", "KIND"]).holds({"A": 1 << 32, "B": 0, "KIND": "x"})


def test_a_space_is_expanded_in_the_order_of_its_values():
    found = expand({"A": [1, 2], "B": [30, 10]}, [], 16)
    assert found.points == [{"A": 1, "B": 30}, {"A": 1, "B": 10}, {"A": 2, "B": 30}, {"A": 2, "B": 10}]
    assert (found.combinations, found.looked_at, found.allowed) == (4, 4, 4)


def test_constraints_thin_a_space_out():
    found = expand({"A": [1, 2, 3], "B": [1, 2, 3]}, [Constraint("A < B", ["A", "B"])], 16)
    assert found.points == [{"A": 1, "B": 2}, {"A": 1, "B": 3}, {"A": 2, "B": 3}]
    assert (found.combinations, found.allowed) == (9, 3)


def test_too_many_points_are_cut_by_an_even_draw_that_repeats():
    space = {"A": list(range(20)), "B": list(range(20))}
    found = expand(space, [], 10)
    assert len(found.points) == 10
    assert found.allowed == 400
    assert found == expand(space, [], 10)
    # The first ten in order would all have the first value of A.
    assert len({point["A"] for point in found.points}) > 3


def test_a_huge_space_is_drawn_from_and_not_walked_through():
    space = {name: list(range(32)) for name in "ABCDEFGH"}
    found = expand(space, [Constraint("A % 2 == 0", list(space))], 4)
    assert found.combinations == 32**8
    assert found.looked_at < found.combinations
    assert 0 < found.allowed < found.looked_at
    assert all(point["A"] % 2 == 0 for point in found.points if isinstance(point["A"], int))


def test_the_same_value_twice_is_tried_once_and_kinds_of_numbers_are_kept_apart():
    found = expand({"A": [1, 1, 1.0, True, "1"]}, [], 16)
    assert [repr(point["A"]) for point in found.points] == ["1", "1.0", "True", "'1'"]
    assert found.combinations == 4
