"""Measured rates: plausible, measured once, and never lost to a broken cache."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from tools.device import rates
from tools.device.info import device_info


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_cpu_rates_are_within_what_any_processor_can_do(cache: Path) -> None:
    info = rates.with_rates(device_info("cpu"), cache)
    assert info.measured_bandwidth is not None
    assert 1e8 < info.measured_bandwidth < 1e13
    assert {"fp64", "fp32", "bf16"} <= set(info.measured_flops)
    assert all(1e7 < rate < 1e15 for rate in info.measured_flops.values())


def test_the_second_time_they_are_read(cache: Path) -> None:
    first = rates.with_rates(device_info("cpu"), cache)
    (path,) = (cache / "rates").glob("*.json")
    kept = json.loads(path.read_text())
    kept["bandwidth"] = 12345.0
    path.write_text(json.dumps(kept))
    second = rates.with_rates(device_info("cpu"), cache)
    assert second.measured_bandwidth == 12345.0
    assert second.measured_flops == first.measured_flops


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"bandwidth": 1, "flops": 3}', '{"bandwidth": null}'])
def test_a_broken_cache_is_replaced(tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_measure_cpu", lambda info: (2.0, {"fp32": 3.0}))
    rates.with_rates(device_info("cpu"), tmp_path)
    (path,) = (tmp_path / "rates").glob("*.json")
    path.write_text(content)
    assert rates.with_rates(device_info("cpu"), tmp_path).measured_bandwidth == 2.0
    assert json.loads(path.read_text())["flops"] == {"fp32": 3.0}
    assert list(path.parent.iterdir()) == [path]


def test_a_cache_that_can_not_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_measure_cpu", lambda info: (2.0, {"fp32": 3.0}))
    (tmp_path / "file").write_text("in the way")
    assert rates.with_rates(device_info("cpu"), tmp_path / "file").measured_bandwidth == 2.0


def test_the_best_call_counts_and_a_slow_one_is_not_repeated_for_long() -> None:
    waits = iter([0.02, 0.03, 0.001] + [0.002] * 20)
    assert 0.001 <= rates._best_cpu(lambda: time.sleep(next(waits))) < 0.02
    calls: list[int] = []
    rates._best_cpu(lambda: (calls.append(1), time.sleep(0.2)))
    assert len(calls) == 2


@pytest.mark.gpu
def test_cuda_rates_are_below_the_datasheet(tmp_path: Path) -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    info = rates.with_rates(device_info("cuda"), tmp_path)
    assert torch.backends.cuda.matmul.allow_tf32 == before
    assert info.measured_bandwidth is not None
    assert set(info.measured_flops) == {"fp64", "fp32", "tf32", "bf16", "fp16"}
    assert info.measured_flops["fp32"] < info.measured_flops["tf32"] < info.measured_flops["bf16"]
    if info.peak_bandwidth is not None:
        assert 0.5 * info.peak_bandwidth < info.measured_bandwidth < info.peak_bandwidth
        for name, rate in info.measured_flops.items():
            assert 0.3 * info.peak_flops[name] < rate < 1.05 * info.peak_flops[name], name
