"""References into a KernelBench checkout of either layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems import ProblemError, load_problem, resolve_set

SOURCE = "class Model:\n    forward = None\n\n\ndef get_inputs():\n    return []\n"


@pytest.fixture(params=["KernelBench", "."])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for level, names in {1: ["1_Square", "2_Standard", "19_ReLU", "100_Hinge"], 2: ["4_Conv2d_Mish_Mish"]}.items():
        folder = tmp_path / request.param / f"level{level}"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.py").write_text(SOURCE)
    (tmp_path / "level_of_detail.md").write_text("not a level")
    return tmp_path


@pytest.mark.parametrize(
    ("ref", "name", "file"),
    [
        ("kernelbench:1/19", "kernelbench-1-19", "19_ReLU.py"),
        ("kernelbench:level1/100", "kernelbench-1-100", "100_Hinge.py"),
        ("kernelbench:level2/4_Conv2d_Mish_Mish", "kernelbench-2-4", "4_Conv2d_Mish_Mish.py"),
        ("kernelbench:2/4_conv2d_mish_mish.py", "kernelbench-2-4", "4_Conv2d_Mish_Mish.py"),
        ("kernelbench:2/4.py", "kernelbench-2-4", "4_Conv2d_Mish_Mish.py"),
    ],
)
def test_problem(checkout: Path, ref: str, name: str, file: str) -> None:
    spec = load_problem(ref, kernelbench_dir=checkout)
    assert spec.path is not None
    assert (spec.name, spec.origin, spec.path.name, spec.source) == (name, "kernelbench", file, SOURCE)


def test_the_environment_names_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELBENCH_DIR", str(checkout))
    assert load_problem("kernelbench:1/1").name == "kernelbench-1-1"
    assert resolve_set("kernelbench:2") == ["kernelbench:2/4"]


def test_no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELBENCH_DIR", raising=False)
    with pytest.raises(ProblemError, match=r"git clone .*--kernelbench DIR or set KERNELBENCH_DIR"):
        load_problem("kernelbench:1/1")


def test_a_checkout_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no level1 folder"):
        load_problem("kernelbench:1/1", kernelbench_dir=tmp_path)
    with pytest.raises(ProblemError, match="does not exist"):
        load_problem("kernelbench:1/1", kernelbench_dir=tmp_path / "gone")


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("kernelbench:1/87", "It has 1-2, 19, 100"),
        ("kernelbench:1/19_Relu6", "Did you mean 19_ReLU"),
        ("kernelbench:2/4_Nothing_like_it", "Did you mean 4_Conv2d_Mish_Mish"),
        ("kernelbench:3/1", "It has level 1, 2"),
        ("kernelbench:1", "kernelbench:1/87"),
        ("kernelbench:one/two", "kernelbench:1/87"),
        ("kernelbench:1/../../etc/passwd", "kernelbench:1/87"),
    ],
)
def test_references_that_name_no_problem(checkout: Path, ref: str, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load_problem(ref, kernelbench_dir=checkout)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("ref", "numbers"),
    [
        ("kernelbench:1", [1, 2, 19, 100]),
        ("kernelbench:level1/", [1, 2, 19, 100]),
        ("kernelbench:level1/1-20", [1, 2, 19]),
        ("kernelbench:1/100,1-2,1", [100, 1, 2]),
        ("kernelbench:1/19", [19]),
    ],
)
def test_sets(checkout: Path, ref: str, numbers: list[int]) -> None:
    refs = resolve_set(ref, kernelbench_dir=checkout)
    assert refs == [f"kernelbench:1/{number}" for number in numbers]
    for each in refs:
        load_problem(each, kernelbench_dir=checkout)


def test_a_named_problem_is_a_set_of_one(checkout: Path) -> None:
    assert resolve_set("kernelbench:1/19_ReLU", kernelbench_dir=checkout) == ["kernelbench:1/19_ReLU"]


@pytest.mark.parametrize("ref", ["kernelbench:1/30-40", "kernelbench:1/5", "kernelbench:", "kernelbench:1/a-b"])
def test_sets_that_name_nothing(checkout: Path, ref: str) -> None:
    with pytest.raises(ProblemError):
        resolve_set(ref, kernelbench_dir=checkout)


def test_a_level_folder_as_a_plain_folder(checkout: Path) -> None:
    level = next(path for path in (checkout / "KernelBench" / "level1", checkout / "level1") if path.is_dir())
    assert [Path(ref).name.partition("_")[0] for ref in resolve_set(str(level))] == ["1", "2", "19", "100"]
    with pytest.raises(ProblemError, match=r"no .py file. For KernelBench use `kernelbench:1`"):
        resolve_set(str(checkout))
