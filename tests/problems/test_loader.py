"""Loading one problem, and everything that can be wrong with what a user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems import ProblemError, bundled, bundled_names, distinct_names, load_problem, resolve_set
from problems.bundled import SETS

GOOD = """
import torch
import torch.nn as nn

n = 4


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(n)]
"""


def write(folder: Path, text: str | bytes, name: str = "problem.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(ref: str | Path) -> str:
    with pytest.raises(ProblemError) as caught:
        load_problem(str(ref))
    return str(caught.value)


def test_a_path_gives_the_text_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, "my problem!.py")
    spec = load_problem(str(path))
    assert spec.source == GOOD
    assert (spec.name, spec.origin, spec.path, spec.sizes) == ("my_problem", "path", path, ("full",))


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    def file(name: str) -> str:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        return str(write(tmp_path, "no problem at all", name))

    first, second, other = file("a/x.py"), file("b/x.py"), file("b/other.py")
    assert distinct_names([first, second, other]) == {first: "a-x", second: "b-x", other: "other"}
    # One folder is not enough here, and what is left over then is numbered.
    deep, deeper = file("c/d/x.py"), file("e/d/x.py")
    assert distinct_names([deep, deeper]) == {deep: "c-d-x", deeper: "e-d-x"}
    same = f"{tmp_path}/a/../a/x.py"
    twice = distinct_names([first, same])
    assert len({*twice.values()}) == 2
    # The name that a folder would give may be another file's own.
    taken = file("b-x.py")
    assert len({*distinct_names([first, second, taken]).values()}) == 3
    assert distinct_names(["nosuch", other]) == {other: "other"}


def test_nothing_is_executed(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    load_problem(str(write(tmp_path, GOOD + f"\nopen({str(flag)!r}, 'w')\nraise SystemExit(3)\n")))
    assert not flag.exists()


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert load_problem(str(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()))).source == GOOD


@pytest.mark.parametrize("ref", ["layer_norm", "basics/layer_norm"])
def test_a_bundled_problem_by_either_name(ref: str) -> None:
    spec = load_problem(ref)
    assert (spec.name, spec.origin, spec.sizes) == ("layer_norm", "bundled", ("full", "small"))


def test_bundled_names_are_unambiguous() -> None:
    short = [name.partition("/")[2] for name in bundled_names()]
    assert len(short) == len(set(short))
    assert not set(short) & set(SETS)


def test_a_short_name_of_two_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETS:
        (tmp_path / name).mkdir()
        write(tmp_path / name, GOOD, "twin.py")
    monkeypatch.setattr(bundled, "_FOLDER", tmp_path)
    assert "seeds/twin, basics/twin" in refused("twin")
    assert load_problem("basics/twin").path == tmp_path / "basics" / "twin.py"


def test_missing_file_and_near_misses(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "softplus.py")
    assert "agent problems list" in refused(tmp_path / "unlike_anything_else_here.py")
    assert str(tmp_path / "softplus.py") in refused(tmp_path / "sofplus.py")
    assert "Did you mean layer_norm?" in refused("layernorm")
    assert "agent batch basics" in refused("basics")
    assert "No problem was named" in refused("  ")


def test_folder(tmp_path: Path) -> None:
    assert "holds no .py file" in refused(tmp_path)
    write(tmp_path, GOOD)
    assert f"agent batch {tmp_path}" in refused(tmp_path)


def test_no_regular_file() -> None:
    assert "not a regular file" in refused("/dev/null")


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_empty(tmp_path: Path, text: str) -> None:
    assert "is empty" in refused(write(tmp_path, text))


def test_not_utf8(tmp_path: Path) -> None:
    message = refused(write(tmp_path, GOOD.encode() + b"# caf\xe9\n"))
    assert "not UTF-8" in message
    assert "0xe9" in message


def test_too_large(tmp_path: Path) -> None:
    assert "larger than 4 MiB" in refused(write(tmp_path, GOOD + "#" * (5 << 20)))


def test_syntax_error_names_the_line(tmp_path: Path) -> None:
    message = refused(write(tmp_path, GOOD + "\ndef broken(:\n"))
    assert f"problem.py, line {GOOD.count(chr(10)) + 2}:" in message
    assert "def broken(:" in message


@pytest.mark.parametrize("text", [b"x = 1\0", b"(" * 5000, "[" * 300 + "]" * 300])
def test_text_that_the_parser_gives_up_on(tmp_path: Path, text: str | bytes) -> None:
    assert "problem.py" in refused(write(tmp_path, text))


def test_no_model(tmp_path: Path) -> None:
    assert "no `Model`" in refused(write(tmp_path, GOOD.replace("class Model", "class Modle")))


def test_a_candidate_is_told_apart(tmp_path: Path) -> None:
    message = refused(write(tmp_path, GOOD.replace("class Model", "class ModelNew")))
    assert "candidate" in message
    assert "agent evaluate" in message


def test_no_get_inputs(tmp_path: Path) -> None:
    assert "no `get_inputs`" in refused(write(tmp_path, GOOD.replace("get_inputs", "inputs")))


def test_no_forward(tmp_path: Path) -> None:
    message = refused(write(tmp_path, GOOD.replace("def forward", "def forwards")))
    assert "line 8" in message
    assert "no `forward`" in message


def test_a_forward_may_be_inherited(tmp_path: Path) -> None:
    text = GOOD.replace("class Model(nn.Module)", "class Base(nn.Module)") + "\n\nclass Model(Base):\n    pass\n"
    assert load_problem(str(write(tmp_path, text))).source == text


def test_get_inputs_with_arguments(tmp_path: Path) -> None:
    assert "get_inputs needs arguments" in refused(write(tmp_path, GOOD.replace("get_inputs()", "get_inputs(size)")))
    load_problem(str(write(tmp_path, GOOD.replace("get_inputs()", "get_inputs(size=3, *, seed=None)"))))


def test_get_init_inputs_may_be_absent_but_not_need_arguments(tmp_path: Path) -> None:
    assert "get_init_inputs" not in GOOD
    text = GOOD + "\n\ndef get_init_inputs(a):\n    return []\n"
    assert "get_init_inputs needs arguments" in refused(write(tmp_path, text))


@pytest.mark.parametrize(
    "body",
    [
        "from mine import *",
        "from mine import Model, get_inputs",
        "if True:\n    from mine import Model\nget_inputs = lambda: []",
        "try:\n    import mine\n    Model, get_inputs = mine.Model, mine.get_inputs\nexcept ImportError:\n    raise",
        "with open('/dev/null'):\n    Model: type = object\n    get_inputs = list",
    ],
)
def test_definitions_that_only_running_would_show_are_let_through(tmp_path: Path, body: str) -> None:
    assert load_problem(str(write(tmp_path, body))).source == body


def test_small_gives_a_second_size(tmp_path: Path) -> None:
    assert load_problem(str(write(tmp_path, GOOD + '\nSMALL = {"n": 2}\n'))).sizes == ("full", "small")
    assert load_problem(str(write(tmp_path, GOOD + "\nSMALL = 3\n"))).sizes == ("full",)


@pytest.mark.parametrize(
    ("small", "reason"),
    [
        ('{"m": 2}', "'m'"),
        ("{3: 2}", "3"),
        ('{"n": n // 2}', "dict literal"),
        ('{"SMALL": 1}', "'SMALL'"),
        ("{**other}", "dict literal"),
    ],
)
def test_small_that_can_not_be_used(tmp_path: Path, small: str, reason: str) -> None:
    message = refused(write(tmp_path, GOOD + f"\nSMALL = {small}\n"))
    assert "SMALL" in message
    assert reason in message


def test_unreadable(tmp_path: Path) -> None:
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    assert "loop.py" in refused(loop)


def test_long_names_become_folder_names(tmp_path: Path) -> None:
    spec = load_problem(str(write(tmp_path, GOOD, "é" + "x" * 90 + ".py")))
    assert spec.name == "x" * 64
    assert load_problem(str(write(tmp_path, GOOD, "日本.py"))).name == "problem"


# Sets


def test_bundled_set() -> None:
    refs = resolve_set("seeds")
    assert refs == ["seeds/conv_mish_mish", "seeds/pointwise_conv"]
    assert len(resolve_set("basics")) >= 15


def test_one_problem_is_a_set_of_one(tmp_path: Path) -> None:
    assert resolve_set("layer_norm") == ["layer_norm"]
    path = write(tmp_path, GOOD)
    assert resolve_set(str(path)) == [str(path)]


def test_folder_and_glob_in_natural_order(tmp_path: Path) -> None:
    for name in ("10_ten.py", "2_two.py", "_hidden.py", "__init__.py", "notes.md"):
        write(tmp_path, GOOD, name)
    expected = [str(tmp_path / "2_two.py"), str(tmp_path / "10_ten.py")]
    assert resolve_set(str(tmp_path)) == expected
    assert resolve_set(str(tmp_path / "*")) == expected
    assert resolve_set(str(tmp_path / "1*.py")) == expected[1:]
    assert resolve_set(str(tmp_path / "**" / "[0-9]*_*.py")) == expected


def test_text_file_of_references(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "near.py")
    text = "# mine\nlayer_norm\n\nnear.py  # beside this file\nseeds\nlayer_norm\n"
    refs = resolve_set(str(write(tmp_path, text, "some.txt")))
    assert refs == ["layer_norm", str(tmp_path / "near.py"), "seeds/conv_mish_mish", "seeds/pointwise_conv"]
    for ref in refs:
        load_problem(ref)


@pytest.mark.parametrize("name", ["empty", "nothing/*.py", "list.txt", "no_such_thing"])
def test_sets_without_a_problem_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "# nothing yet\n", "list.txt")
    with pytest.raises(ProblemError):
        resolve_set(str(tmp_path / name))
