"""Of the build cache a candidate sees its own libraries: neither its neighbours' nor their sources."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import load_problem
from tests.sandbox.test_promises import attempt
from tools.build.visible import LentBuilds, visible
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.nursery import Nursery
from tools.types import SandboxLevel, Verdict

OURS = ("fast", "helpers")
LOOK = f"""
import os

def seen(cache):
    found = []
    for folder, _, names in os.walk(cache):
        found += [os.path.relpath(os.path.join(folder, name), cache) for name in names]
    return sorted(name for name in found if name.split("/")[0] not in {OURS})
"""
KERNEL = """
import json
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
{look}
SOURCE = '''
#include <torch/extension.h>
{include}
torch::Tensor twice(torch::Tensor x) {{ return x * {factor}; }}
'''
ext = load_inline(name='{name}', cpp_sources=SOURCE, functions=['twice'])


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()

    def forward(self, *args):
        raise RuntimeError('sees ' + json.dumps(seen({cache!r})) + str(ext.twice(torch.ones(1)).item()))
"""


def kernel(cache: Path, name: str, factor: float, include: str = "") -> str:
    return KERNEL.format(look=LOOK, cache=str(cache), name=name, factor=factor, include=include)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    # Not below /tmp, where the sandbox shows nothing anyway.
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", size="small", cache_dir=cache.mkdir("agent-builds"), sandbox="strict")
    with Evaluator(load_problem("layer_norm"), settings) as opened:
        yield opened


def test_a_candidate_sees_its_own_library_alone(evaluator: Evaluator, tmp_path: Path):
    cache = evaluator.settings.cache_dir
    other = evaluator.build(kernel(cache, "other", 2.5), tmp_path / "other")
    own = kernel(cache, "own", 3.5)
    build = evaluator.build(own, tmp_path / "own")
    assert other.ok and build.ok
    for _ in range(2):  # one worker after the other
        checked = evaluator.check(own, build)
        assert checked.verdict is Verdict.RUNTIME_ERROR
        found = re.search(r"sees (\[.*\])([\d.]+)", checked.findings[0].summary)
        assert found is not None, checked.findings[0].summary
        (library,) = json.loads(found[1])
        assert re.fullmatch(r"lent/\w+/0/own\.so", library)
        assert float(found[2]) == 3.5
        assert not (cache / library).parents[1].exists()
    assert Path(build.modules[0].library).is_file()


def test_an_experiment_sees_no_builds(evaluator: Evaluator, tmp_path: Path):
    cache = evaluator.settings.cache_dir
    assert evaluator.build(kernel(cache, "other", 2.5), tmp_path).ok
    done = evaluator.experiment(LOOK + f"print('sees', seen({str(cache)!r}))", tmp_path, seconds=30)
    assert done.output.strip() == "sees []"


def test_a_compiler_sees_no_other_source(evaluator: Evaluator, tmp_path: Path):
    cache = evaluator.settings.cache_dir
    other = evaluator.build(kernel(cache, "other", 2.5), tmp_path / "other")
    (record,) = Path(other.modules[0].library).parent.glob("build.json")
    thief = evaluator.build(kernel(cache, "thief", 2.5, include=f'#include "{record}"'), tmp_path / "thief")
    assert thief.verdict is Verdict.COMPILE_ERROR
    assert any("No such file" in d.message for d in thief.diagnostics), thief.diagnostics


def test_what_is_lent_after_the_start_is_seen_and_can_not_be_changed(tmp_path: Path):
    cache = tmp_path / "cache"
    for key in ("own", "other"):
        (cache / key).mkdir(parents=True)
        (cache / key / "it.so").write_text(key)
    lent = LentBuilds(cache)
    paths = {"readable": [*visible(cache), lent.folder], "hidden": [cache]}
    with Nursery.start(SandboxLevel.NAMESPACES) as nursery:
        assert attempt(nursery, "list", paths=paths, path=str(lent.folder))[1] == []
        (module,) = lent.lend([{"name": "it", "library": str(cache / "own" / "it.so")}])
        assert attempt(nursery, "read", paths=paths, path=module["library"])[1] == "own"
        assert attempt(nursery, "write", paths=paths, path=module["library"])[0] is False
        for key in ("own", "other"):
            assert attempt(nursery, "read", paths=paths, path=str(cache / key / "it.so"))[0] is False
    lent.close()
    assert not lent.folder.exists()
    assert (cache / "own" / "it.so").read_text() == "own"


def test_what_a_killed_process_has_lent_is_removed_by_a_later_one(tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "it.so").write_text("own")
    killed = LentBuilds(tmp_path)
    killed.lend([{"name": "it", "library": str(tmp_path / "own" / "it.so")}])
    living, new = LentBuilds(tmp_path), LentBuilds(tmp_path)
    os.close(killed._lock)  # as the end of a process does
    for one in (killed, living):
        os.utime(one.folder, (0, 0))
    last = LentBuilds(tmp_path)
    assert {path.name for path in (tmp_path / "lent").iterdir()} == {x.folder.name for x in (living, new, last)}
    assert (tmp_path / "own" / "it.so").read_text() == "own"
