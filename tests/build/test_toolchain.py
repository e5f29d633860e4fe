"""Compilers are found where they are, and a missing one is told with what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.build import target, toolchain
from tools.build.toolchain import Nvcc, ToolchainError, find_all_nvcc, find_nvcc, find_toolchain
from tools.device.nvml import Gpu


@pytest.fixture(autouse=True)
def fresh():
    """Nothing found before counts."""
    for function in (find_toolchain, find_nvcc):
        function.cache_clear()
    yield
    for function in (find_toolchain, find_nvcc):
        function.cache_clear()


def test_this_machine_builds_cpp():
    import torch

    found = find_toolchain(cuda=False)
    assert found.torch_version == torch.__version__
    assert found.torch_cuda == torch.version.cuda
    assert found.nvcc is None
    assert "g++" in found.describe(cuda=False) or "c++" in found.describe(cuda=False)


def test_standard_and_flags_are_those_of_torch():
    from torch.utils import cpp_extension

    found = find_toolchain(cuda=False)
    assert cpp_extension.include_paths("cpu") == found.torch_include
    assert cpp_extension.library_paths("cpu") == [found.torch_lib]
    text = open(cpp_extension.__file__).read()  # noqa: SIM115, PTH123
    assert f"'{found.std}'" in text


@pytest.mark.nvcc
def test_nvcc_is_found_behind_links_and_scripts(tmp_path, monkeypatch):
    if not find_all_nvcc():
        pytest.skip("no nvcc")
    real = find_all_nvcc()[0]
    script = tmp_path / "nvcc"
    script.write_text(f'#!/bin/sh\nexec {real.path} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    toolchain.find_nvcc.cache_clear()
    found = toolchain.find_nvcc()
    assert found is not None
    assert (found.home, found.version) == (real.home, real.version)
    assert found.short == ".".join(real.version.split(".")[:2])


def test_missing_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ToolchainError, match=r"apt install g\+\+"):
        find_toolchain(cuda=False)


def test_missing_nvcc_says_what_to_install(monkeypatch):
    monkeypatch.setattr(toolchain, "find_all_nvcc", list)
    with pytest.raises(ToolchainError, match=r'pip install "kernel-agent\[nvcc\]"'):
        find_toolchain(cuda=True)


def test_broken_compiler_is_told(tmp_path, monkeypatch):
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho no licence\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(ToolchainError, match=r"does not run as a C\+\+ compiler.*no licence"):
        find_toolchain(cuda=False)


def test_builds_never_import_torch_in_the_agent():
    code = "import sys, tools.build; tools.build.find_toolchain(cuda=False); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("visible", "arch"),
    [
        (None, "sm_80"),
        ("1", "sm_90a"),
        ("1,0", "sm_90a"),
        ("GPU-bb", "sm_90a"),
        ("", "sm_90a"),
        ("7", "sm_90a"),
    ],
)
def test_target_is_the_first_visible_device_s_own(monkeypatch, visible, arch):
    found = [Gpu(0, "A100", "GPU-aa-1", 1, (8, 0)), Gpu(1, "H200", "GPU-bb-2", 1, (9, 0))]
    monkeypatch.setattr(target, "gpus", lambda: found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert target.device_arch() == arch


def nvcc(version: str, folder: Path) -> Nvcc:
    return Nvcc(path="nvcc", version=version, home=str(folder), include="i", library_dir=str(folder), origin="pip")


def test_the_nvcc_that_fits_torch_goes_first(monkeypatch, tmp_path):
    found = [nvcc("12.8.93", tmp_path), nvcc("13.0.88", tmp_path)]
    monkeypatch.setattr(toolchain, "find_all_nvcc", lambda: found)
    assert toolchain.find_nvcc("13.0") == found[1]
    assert toolchain.find_nvcc("11.8") == found[0]
    assert toolchain.find_nvcc(None) == found[0]


def test_the_runtime_of_a_package_is_linked_by_its_versioned_name(tmp_path):
    (tmp_path / "libcudart.so.13").touch()
    assert nvcc("13.0.88", tmp_path).cudart == "-l:libcudart.so.13"
    (tmp_path / "libcudart.so").touch()
    assert nvcc("13.0.88", tmp_path).cudart == "-lcudart"
