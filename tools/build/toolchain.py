"""Finds the compilers and what torch's own `load_inline` would give them, without importing torch."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tools.types import Record

Origin = Literal["CUDA_HOME", "PATH", "pip", "/usr/local/cuda"]


class ToolchainError(Exception):
    """A compiler or torch is missing or unusable. The message says what to install."""


class Nvcc(Record):
    """A CUDA compiler. `version` is such as 13.0.88; `origin` tells where it was found."""

    path: str
    version: str
    home: str
    include: str
    library_dir: str
    origin: Origin
    cuobjdump: str | None = None

    @property
    def cudart(self) -> str:
        """How to link the CUDA runtime. Packages have only the versioned file, which -lcudart does not find."""
        folder = Path(self.library_dir)
        versioned = sorted(path.name for path in folder.glob("libcudart.so.*"))
        return f"-l:{versioned[0]}" if versioned and not (folder / "libcudart.so").exists() else "-lcudart"

    @property
    def short(self) -> str:
        """Major and minor version, such as 13.0."""
        return ".".join(self.version.split(".")[:2])


class Toolchain(Record):
    """Everything that decides how a source is compiled on this machine, besides the source."""

    cxx: str
    cxx_version: str
    torch_dir: str
    torch_version: str
    torch_cuda: str | None
    links_cuda: bool
    std: str
    python_include: str
    nvcc: Nvcc | None = None

    @property
    def torch_include(self) -> list[str]:
        include = Path(self.torch_dir) / "include"
        return [str(include), str(include / "torch" / "csrc" / "api" / "include")]

    @property
    def torch_lib(self) -> str:
        return str(Path(self.torch_dir) / "lib")

    @property
    def program_folders(self) -> list[str]:
        """Where the compilers find the programs that they start."""
        return [str(Path(path).parent) for path in (*([self.nvcc.path] if self.nvcc else []), self.cxx)]

    @property
    def readable(self) -> list[Path]:
        """Folders that a sandbox must not hide, wherever they lie."""
        return [Path(self.torch_dir), Path(self.cxx).parent, *([Path(self.nvcc.home)] if self.nvcc else [])]

    @property
    def nvcc_fits_torch(self) -> bool | None:
        """Whether the CUDA major versions of nvcc and torch agree; None when there is nothing to compare."""
        if self.nvcc is None or self.torch_cuda is None:
            return None
        return self.nvcc.version.split(".")[0] == self.torch_cuda.split(".")[0]

    def describe(self, *, cuda: bool) -> str:
        """One line for results: such as `nvcc 13.0.88 (g++ 12.2.0)`."""
        host = f"{Path(self.cxx).name} {self.cxx_version}"
        return f"nvcc {self.nvcc.version} ({host})" if cuda and self.nvcc else host


@lru_cache(maxsize=2)
def find_toolchain(*, cuda: bool) -> Toolchain:
    """The toolchain of this machine; with `cuda` an nvcc is part of it.

    Raises ToolchainError with what to install when something is missing.
    """
    cxx = _find_cxx()
    torch_dir = _torch_dir()
    version, torch_cuda = _torch_version(torch_dir)
    nvcc = find_nvcc(torch_cuda)
    if cuda and nvcc is None:
        raise ToolchainError(
            "no nvcc was found (CUDA_HOME, PATH, /usr/local/cuda and the Python packages were searched): "
            'run pip install "kernel-agent[nvcc]", or install the CUDA toolkit and set CUDA_HOME to it'
        )
    return Toolchain(
        cxx=cxx,
        cxx_version=_cxx_version(cxx),
        torch_dir=str(torch_dir),
        torch_version=version,
        torch_cuda=torch_cuda,
        links_cuda=(torch_dir / "lib" / "libc10_cuda.so").exists(),
        std=_torch_std(torch_dir),
        python_include=_python_include(),
        nvcc=nvcc if cuda else None,
    )


def _find_cxx() -> str:
    """The C++ compiler that torch would take: `$CXX`, else `c++`; g++ besides."""
    for name in (os.environ.get("CXX"), "c++", "g++"):
        if name and (path := shutil.which(name)):
            return path
    raise ToolchainError(
        "no C++ compiler was found (CXX and PATH were searched): run apt install g++ (Debian, Ubuntu), "
        "dnf install gcc-c++ (Fedora) or conda install gxx, or set CXX to one"
    )


def _cxx_version(cxx: str) -> str:
    text = _output([cxx, "-dumpfullversion", "-dumpversion"])
    if not re.match(r"\d", text):
        raise ToolchainError(f"{cxx} does not run as a C++ compiler (it printed {text[:80]!r}): set CXX to g++")
    return text.split()[0]


def _python_include() -> str:
    include = sysconfig.get_path("include", scheme="posix_prefix")
    if not (Path(include) / "Python.h").exists():
        raise ToolchainError(
            f"Python.h is missing under {include}: run apt install python3-dev (the package for this Python version)"
        )
    return include


def _torch_dir() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ToolchainError("torch is not installed in this Python: run pip install torch")
    return Path(spec.origin).resolve().parent


def _torch_version(torch_dir: Path) -> tuple[str, str | None]:
    text = (torch_dir / "version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__\s*=\s*'([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
    return (version.group(1) if version else "unknown", cuda.group(1) if cuda else None)


def _torch_std(torch_dir: Path) -> str:
    """The C++ standard that this torch passes to its own builds, such as `-std=c++20`, read off its text."""
    text = (torch_dir / "utils" / "cpp_extension.py").read_text(encoding="utf-8")
    found = re.findall(r"'(-std=c\+\+\d\d)'", text)
    return max(set(found), key=found.count) if found else "-std=c++17"


@lru_cache(maxsize=2)
def find_nvcc(torch_cuda: str | None = None) -> Nvcc | None:
    """The first usable nvcc of CUDA_HOME, PATH, this Python's packages and /usr/local/cuda; None without one.

    One of the CUDA major version that torch was built with (`torch_cuda`, such as 13.0) goes before the others.
    """
    found = find_all_nvcc()
    fitting = (nvcc for nvcc in found if torch_cuda and nvcc.version.split(".")[0] == torch_cuda.split(".")[0])
    return next(fitting, found[0] if found else None)


def find_all_nvcc() -> list[Nvcc]:
    """Every nvcc that this machine has, in the order in which they are searched."""
    places: list[tuple[Path, Origin]] = []
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            places.append((Path(home) / "bin" / "nvcc", "CUDA_HOME"))
    if found := shutil.which("nvcc"):
        places.append((Path(found), "PATH"))
    site = Path(sysconfig.get_path("purelib")) / "nvidia"
    for path in (*sorted(site.glob("cu*/bin/nvcc"), reverse=True), *site.glob("cuda_nvcc/bin/nvcc")):
        places.append((path, "pip"))
    places.append((Path("/usr/local/cuda/bin/nvcc"), "/usr/local/cuda"))
    result: list[Nvcc] = []
    for path, origin in places:
        if not os.access(path, os.X_OK):
            continue
        home = _real_home(path)
        if home is None or any(home == Path(n.home) for n in result):
            continue
        if nvcc := _describe(home, origin):
            result.append(nvcc)
    return result


def _real_home(nvcc: Path) -> Path | None:
    """The toolkit folder behind an nvcc, which may be a link or a script that starts another.

    nvcc names its own folder as TOP in what `--dryrun` prints.
    """
    text = _output([str(nvcc), "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"])
    top = re.search(r"^#\$ TOP=(.+)$", text, re.MULTILINE)
    return Path(top.group(1).strip()).resolve() if top else None


def _describe(home: Path, origin: Origin) -> Nvcc | None:
    nvcc = home / "bin" / "nvcc"
    version = re.search(r"\bV(\d+\.\d+\.\d+)", _output([str(nvcc), "--version"]))
    include = next((p for p in (home / "include", home / "targets/x86_64-linux/include") if p.is_dir()), None)
    library = next((p for p in (home / "lib64", home / "lib") if p.is_dir()), home / "lib64")
    if version is None or include is None:
        return None
    return Nvcc(
        path=str(nvcc),
        version=version.group(1),
        home=str(home),
        include=str(include),
        library_dir=str(library),
        origin=origin,
        cuobjdump=_find_cuobjdump(home),
    )


def _find_cuobjdump(home: Path) -> str | None:
    """The disassembler beside nvcc, on PATH, or among this Python's packages; it needs an nvdisasm beside it or on
    PATH."""
    packages = sorted((Path(sysconfig.get_path("purelib")) / "nvidia").glob("*/bin/cuobjdump"), reverse=True)
    found = shutil.which("cuobjdump")
    places = [home / "bin" / "cuobjdump", *([Path(found)] if found else []), *packages]
    on_path = shutil.which("nvdisasm") is not None
    whole = (place for place in places if on_path or os.access(place.with_name("nvdisasm"), os.X_OK))
    return next((str(place) for place in whole if os.access(place, os.X_OK)), None)


def _output(argv: list[str]) -> str:
    """Standard output and error of a short command; empty when it can't be run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
