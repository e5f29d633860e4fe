"""A memory check in words, for each thing that it may say."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from prompts import render
from tools.memcheck import device_report, host_report
from tools.memcheck.records import Check, CheckRun, MemoryCheck, MemoryFinding
from tools.probe.places import Places
from tools.reports import MemoryReport
from tools.types import BuildResult

KINDS = sorted(
    {kind for _, kind in host_report._UNDEFINED_KINDS}
    | set(host_report._ADDRESS_KINDS.values())
    | {"out_of_bounds_read", "out_of_bounds_write", "undefined_behaviour", "misaligned", "other"}
    | {f"{space}_{access}" for space in ("global", "shared", "local") for access in ("read", "write")}
    | {"race", "race_warning", "barrier", "uninitialised_read"}
    | {"uninitialised_shared", "uninitialised_memory", "unwritten_output", "write_outside_block"}
)


def shown(**fields: Any) -> str:
    memory = MemoryCheck(**({"size": "small", "seconds": 3.0, "most_seconds": 480.0} | fields))
    return render("memory", report=MemoryReport(kernel="k2", memory=memory))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_sentence(kind: str):
    finding = MemoryFinding(check="memcheck", kind=kind, detail="words", file="cuda_sources", line=3, source_line="x;")
    text = shown(findings=[finding], runs=[CheckRun(check="memcheck", ended="found")])
    assert "at cuda_sources:3" in text
    assert kind.replace("_", " ").capitalize() + "**" not in text


def test_a_race_shows_both_lines_once_each():
    race = MemoryFinding(
        check="racecheck", kind="race", detail="write and read", file="cuda_sources", line=12, source_line="t[i] = x;",
        function="k(float*)", other_line=15, other_source_line="s += t[j];", count=512,
    )  # fmt: skip
    text = shown(findings=[race], left_out=2, elsewhere=1, runs=[CheckRun(check="racecheck", ended="found")])
    for expected in (
        "3 findings",
        "t[i] = x;",
        "line 15",
        "s += t[j];",
        "512 times",
        "in `k(float*)`",
        "2 more",
        "1 reports",
    ):
        assert expected in text
    same = race.model_copy(update={"other_line": 12})
    assert "The other access" not in shown(findings=[same])


@pytest.mark.parametrize("check", get_args(Check))
def test_what_was_not_run_is_said_with_the_reason(check: str):
    reasons = {
        "not_installed": "not installed",
        "no_namespaces": "namespaces",
        "no_runtime": "without its library",
        "not_built": "build failed",
        "no_guard": "missing",
    }
    for why, said in reasons.items():
        text = shown(runs=[CheckRun(check=check, ended="not_run", why=why)])  # pyright: ignore[reportArgumentType]
        assert "not run" in text
        assert said in text
        assert "no check came to its end" in text
    assert "found nothing" in shown(runs=[CheckRun(check=check, ended="clean")])  # pyright: ignore[reportArgumentType]
    assert "time limit" in shown(runs=[CheckRun(check=check, ended="timeout")])  # pyright: ignore[reportArgumentType]


def test_a_kernel_for_fixed_shapes_is_said_to_be_one():
    assert "fixed shapes" in shown(size="full", fits_small=False)
    assert "fixed shapes" not in shown(fits_small=True)
    assert "fixed shapes" not in shown(fits_small=None)


def test_a_kind_that_no_sentence_knows_is_told_by_its_name():
    output = "========= Invalid __cluster__ write of size 4 bytes\n=========     at 0x10 in k(float*)\n"
    places = Places(BuildResult(ok=True, source_key="k", seconds=0.0))
    (finding,), _ = device_report.parse(output, "memcheck", places, ["k(float*)"])
    assert "Cluster write" in shown(findings=[finding])
