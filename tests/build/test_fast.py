"""The parts of the fast route: what it reads out of torch's headers, what it supplies, and the kit it builds once."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from fast_corpus import compiled, load, settled

from tools.build.fast import FastKit, plan, prepare
from tools.build.fast.declarations import declare
from tools.build.fast.prelude import prelude, words
from tools.build.toolchain import Toolchain, find_toolchain

RELU = """
torch::Tensor leaky(torch::Tensor x, double slope) {
  TORCH_CHECK(x.dtype() == torch::kFloat32, "want float32, not ", x.dtype(), " of shape ", x.sizes());
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  const float* p = in.data_ptr<float>();
  float* q = out.data_ptr<float>();
  for (int64_t i = 0; i < in.numel(); ++i) q[i] = p[i] > 0 ? p[i] : slope * p[i];
  return out;
}
"""


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return find_toolchain(cuda=False)


@pytest.fixture(scope="module")
def include(toolchain: Toolchain) -> Path:
    return Path(toolchain.torch_include[0])


def built(toolchain: Toolchain, source: str, functions: list[str], name: str = "fast_test") -> Any:
    call = settled(toolchain, "cpu", name=name, cpp_sources=source, functions=functions)
    outcome, folder = compiled(call, "fast", toolchain)
    assert outcome.ok and outcome.library, outcome.log
    return load(name, folder / outcome.library)


def test_tensors_and_numbers_go_in_and_come_back(toolchain: Toolchain) -> None:
    module = built(toolchain, RELU, ["leaky"])
    x = torch.randn(3, 5).t()
    assert torch.equal(module.leaky(x, 0.5), torch.nn.functional.leaky_relu(x, 0.5))
    assert torch.equal(module.leaky(torch.nn.Parameter(x), 0), x.relu())


def test_errors_are_those_of_torch_and_pybind(toolchain: Toolchain) -> None:
    module = built(toolchain, RELU, ["leaky"])
    with pytest.raises(RuntimeError, match=r"^want float32, not double of shape \[2, 3\]$"):
        module.leaky(torch.ones(2, 3, dtype=torch.float64), 0.0)
    with pytest.raises(TypeError, match=r"leaky\(\): incompatible function arguments"):
        module.leaky(torch.ones(2), "x")
    with pytest.raises(TypeError, match=r"arg0: torch\.Tensor, arg1: float"):
        module.leaky(torch.ones(2))


def test_no_reference_to_a_tensor_is_lost_or_kept(toolchain: Toolchain) -> None:
    source = """
    std::vector<torch::Tensor> pass(torch::Tensor a, const std::vector<torch::Tensor>& more,
                                    std::optional<torch::Tensor> b) {
      torch::Tensor copy = a, moved = std::move(a), assigned;
      assigned = copy;
      assigned = std::move(moved);
      copy = copy;
      std::vector<torch::Tensor> out = more;
      out.push_back(assigned + 1);
      if (b) out.push_back(*b);
      out.push_back(at::relu_(copy));
      return out;
    }
    torch::Tensor fail(torch::Tensor a, std::vector<torch::Tensor> b) { return at::cat({a, b[0].view({77})}); }
    """
    module = built(toolchain, source, ["pass", "fail"], "references")
    x, y = torch.ones(3), torch.ones(3)

    def uses() -> tuple[int, int]:
        return torch._C._storage_Use_Count(x.untyped_storage()._cdata), x._use_count()

    before = uses()
    for _ in range(5):
        result = module.__dict__["pass"](x, [y, x], x)
        assert result[-1] is x and result[1] is x  # one Python object for one tensor, as torch has it
        del result
        with pytest.raises(RuntimeError, match="shape"):
            module.fail(x, [x])
    assert uses() == before


def test_what_the_thin_headers_lack_fails_to_compile(toolchain: Toolchain) -> None:
    source = "torch::Tensor f(torch::Tensor x) { return torch::nn::functional::relu(x); }"
    call = settled(toolchain, "cpu", name="lacks", cpp_sources=source, functions=["f"])
    outcome, _ = compiled(call, "fast", toolchain)
    assert not outcome.ok and outcome.library is None


def test_undefined_symbols_are_left_to_the_stock_route(toolchain: Toolchain) -> None:
    source = 'extern "C" int nowhere(int);\nint f(int x) { return nowhere(x); }'
    call = settled(toolchain, "cpu", name="undefined", cpp_sources=source, functions=["f"])
    outcome, _ = compiled(call, "fast", toolchain)
    assert not outcome.ok


def test_every_overload_of_a_named_operator_is_declared(include: Path) -> None:
    found = declare(include, {"var", "conv2d", "cat", "zeros", "add_", "nothing_of_torch"})
    assert "const ::std::optional<at::Tensor> & bias={}, at::IntArrayRef stride=1" in found.functions
    assert 'kf_find_operator("aten::conv2d", "padding")' in found.functions
    assert "at::Tensor & add_(const at::Scalar & other, const at::Scalar & alpha=1) const" in found.methods
    # Without this overload of torch's, var(0) would mean var(unbiased=false).
    assert re.search(r"Tensor var\(int dim\) const \{", found.methods)
    assert re.search(r"Tensor var\(const Tensor& self, int dim\) \{", found.functions)
    assert re.search(r"^inline at::Tensor zeros\(at::IntArrayRef size, at::TensorOptions options", found.factories)
    assert "nothing_of_torch" not in found.functions + found.methods + found.factories


def test_declarations_cover_every_function_of_the_headers(include: Path) -> None:
    """Each generated function is found by its name, unless it takes what the thin headers cannot pass along."""
    for path in sorted((include / "ATen" / "ops").glob("*.h"))[::40]:
        if path.stem.endswith(("_ops", "_native", "_dispatch", "_meta")) or path.stem == "from_blob":
            continue
        text = path.read_text(encoding="utf-8")
        heads = re.findall(r"^inline [^\n(]+? (\w+)\(([^\n]*)\) \{$", text, re.MULTILINE)
        for name in {n for n, _ in heads if "symint" not in n and "dispatch" not in n}:
            passable = [
                p for n, p in heads if n == name and not re.search(r"SymInt|Dimname|Storage|at::Generator |List<", p)
            ]
            declared = declare(include, {name}).functions
            assert declared.count(f" {name}(") >= len(passable), (path.name, name)


def test_prelude_includes_what_the_source_uses() -> None:
    text = prelude("std::sort(a); std::cout << std::numeric_limits<float>::max(); assert(x);", cuda=False)
    for header in ("algorithm", "iostream", "limits", "cassert", "math.h", "stdlib.h"):
        assert f"#include <{header}>" in text
    assert "#include <map>" not in text and "cuda_fp16" not in text
    assert "#include <map>" not in prelude("int map = 3;", cuda=False)
    assert "#include <map>" in prelude("using namespace std; map<int, int> m;", cuda=False)
    assert "#include <cuda_fp16.h>" in prelude("__global__ void f(half* x)", cuda=True)
    assert "#define KFAST_USES_HALF 1" in prelude("AT_DISPATCH_FLOATING_TYPES_AND_HALF(", cuda=True)


def test_words() -> None:
    assert words("at::add_(x2, 3e4f) /* relu */") >= {"at", "add_", "x2", "relu"}


def test_kit_is_built_once_for_all_threads(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools.build.fast import kit as kit_module

    built_folders: list[Path] = []

    def bridge_command(toolchain: Toolchain, folder: Path) -> list[str]:
        built_folders.append(folder)
        return ["/bin/sh", "-c", f"sleep 0.2; echo library > {folder / 'libkfast_bridge.so'}"]

    monkeypatch.setattr(kit_module, "_bridge_command", bridge_command)
    kits: list[FastKit | None] = []
    threads = [threading.Thread(target=lambda: kits.append(prepare(toolchain, tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built_folders) == 1 and len({k.key if k else None for k in kits}) == 1
    assert kits[0] is not None and Path(kits[0].bridge).read_text() == "library\n"
    assert list((tmp_path / "fast").iterdir()) == [Path(kits[0].folder)]


STARTER = """
import os, sys, threading, time
from pathlib import Path
from tools.build.fast import kit, prepare
from tools.build.toolchain import find_toolchain
folder = Path(sys.argv[1])
compiler = f"touch {folder}/begun; until test -e {folder}/go; do sleep 0.02; done; echo library > "
kit._bridge_command = lambda _, out: ["/bin/sh", "-c", f"{compiler} {out}/libkfast_bridge.so"]
threading.Thread(target=prepare, args=(find_toolchain(cuda=False), folder / "cache"), daemon=True).start()
while not (folder / "begun").exists():
    time.sleep(0.02)
"""


def test_a_kit_whose_starter_has_ended_is_waited_for_and_not_built_again(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools.build.fast import kit as kit_module

    # The program ends while its compiler runs, as `agent solve` does that ends early.
    subprocess.run(
        [sys.executable, "-c", STARTER, str(tmp_path)], cwd=Path(__file__).parents[2], check=True, timeout=60
    )
    again: list[Path] = []
    monkeypatch.setattr(kit_module, "_bridge_command", lambda _, folder: again.append(folder) or ["/bin/false"])
    found: list[FastKit | None] = []
    waiting = threading.Thread(target=lambda: found.append(prepare(toolchain, tmp_path / "cache")))
    waiting.start()
    waiting.join(0.3)
    assert found == []
    (tmp_path / "go").touch()
    waiting.join()
    assert again == []
    assert found[0] is not None and Path(found[0].bridge).read_text() == "library\n"
    assert list((tmp_path / "cache" / "fast").iterdir()) == [Path(found[0].folder)]


def test_bridge_that_does_not_compile_leaves_only_the_stock_route(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools.build.fast import kit as kit_module

    monkeypatch.setattr(kit_module, "_bridge_command", lambda *_: ["/bin/sh", "-c", "echo no such header; exit 1"])
    assert prepare(toolchain, tmp_path) is None
    assert prepare(toolchain, tmp_path) is None
    (left,) = (tmp_path / "fast").iterdir()
    assert left.suffix == ".failed" and "no such header" in left.read_text()


def test_plan_keeps_the_flags_and_drops_the_headers_of_torch(toolchain: Toolchain, tmp_path: Path) -> None:
    kit = FastKit(key="k", folder=str(tmp_path), torch_include=toolchain.torch_include[0])
    call = settled(
        toolchain, "cpu", name="planned", cpp_sources=RELU, functions=["leaky"], extra_cflags=["-O3", "-DX=1"]
    )
    made = plan(call, toolchain, kit, "sm_90a")
    (command,) = made.compiles
    assert {"-O3", "-DX=1", toolchain.std, "-DTORCH_EXTENSION_NAME=planned"} <= set(command)
    assert not set(toolchain.torch_include) & set(command)
    assert kit.bridge in made.link and "-ltorch_python" not in made.link
    assert made.files["main.cpp"].startswith("#include <torch/extension.h>")
