"""The kit: what the fast route needs once per installation, above all the bridge library."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path

from tools.build.toolchain import Toolchain
from tools.types import Record

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
BRIDGE = HERE / "bridge"
BRIDGE_SECONDS = 600.0
_NAME = "libkfast_bridge.so"
_lock = threading.Lock()
# Runs the compiler given behind the target folder, and moves what it made into place, or away.
_FINISH = 'to=$1; shift; if "$@"; then mv -T "$PWD" "$to" || true; else code=$?; rm -rf "$PWD"; exit $code; fi'


class FastKit(Record):
    """A built bridge and the headers made for this torch.

    `key` changes whenever anything does that decides what the fast route makes of a source.
    """

    key: str
    folder: str
    torch_include: str

    @property
    def include(self) -> list[str]:
        """Folders to search before any other: the thin headers, then those made for this torch."""
        return [str(INCLUDE), str(Path(self.folder) / "include")]

    @property
    def bridge(self) -> str:
        """Absolute path of the bridge library; modules of the fast route are linked to it by that path."""
        return str(Path(self.folder) / _NAME)


class KitError(Exception):
    """The bridge cannot be built with this torch and compiler. The message holds the compiler's words."""


# What a compiler says when the machine, and not its input, is the reason: worth another try on another day.
_PASSING = re.compile(r"No space left|Killed|out of memory|Cannot allocate|internal compiler error", re.IGNORECASE)


def find(toolchain: Toolchain, cache_dir: Path) -> FastKit | None:
    """The kit for `toolchain` if it is there already."""
    kit = _kit(toolchain, cache_dir)
    return kit if Path(kit.bridge).is_file() else None


def prepare(toolchain: Toolchain, cache_dir: Path) -> FastKit | None:
    """The kit for `toolchain`, built into `cache_dir` if need be (about 15 s on one core, once per installation).

    None when it cannot be built: then only the stock route serves, and a file beside the other kits, named by the key
    and `.failed`, holds the compiler's words. Safe for several threads and processes: one builds and the others wait,
    also for a compiler whose starter has ended meanwhile.
    """
    with _lock:
        kit = _kit(toolchain, cache_dir)
        failed = Path(kit.folder + ".failed")
        if Path(kit.bridge).is_file() or failed.is_file():
            return find(toolchain, cache_dir)
        failed.parent.mkdir(parents=True, exist_ok=True)
        with _alone(failed.parent) as held:
            if Path(kit.bridge).is_file() or failed.is_file():
                return find(toolchain, cache_dir)
            try:
                _build(toolchain, kit, held)
            except KitError as error:
                if not _PASSING.search(str(error)):
                    failed.write_text(str(error), encoding="utf-8")
        return find(toolchain, cache_dir)


@contextlib.contextmanager
def _alone(folder: Path) -> Generator[int]:
    """A descriptor of `folder` that locks it. Who waits longer than a build may take goes on without the lock, as
    where the file system knows none: builds are made aside, so the worst is that one is made twice."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        give_up = time.monotonic() + BRIDGE_SECONDS
        while time.monotonic() < give_up:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                break
        yield descriptor
    finally:
        os.close(descriptor)


def _kit(toolchain: Toolchain, cache_dir: Path) -> FastKit:
    facts = [toolchain.cxx, toolchain.cxx_version, toolchain.torch_dir, toolchain.torch_version, toolchain.std]
    facts += [toolchain.python_include, toolchain.nvcc.version if _with_cuda(toolchain) and toolchain.nvcc else None]
    bridge = _digest([INCLUDE / "kfast" / "bridge.h", *_files(BRIDGE), Path(__file__)], json.dumps(facts))
    return FastKit(
        key=_digest([p for p in _files(HERE) if p.suffix != ".pyc"], bridge),
        folder=str(cache_dir.absolute() / "fast" / bridge),
        torch_include=str(Path(toolchain.torch_dir) / "include"),
    )


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def _digest(paths: list[Path], more: str) -> str:
    digest = hashlib.sha256(more.encode())
    for path in paths:
        digest.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _with_cuda(toolchain: Toolchain) -> bool:
    return toolchain.links_cuda and toolchain.nvcc is not None


def _build(toolchain: Toolchain, kit: FastKit, held: int) -> None:
    """Compile the bridge into its place. The compiler holds the descriptor `held` too, and with it the lock."""
    target = Path(kit.folder)
    workspace = Path(tempfile.mkdtemp(prefix="building-", dir=target.parent))
    try:
        _write_headers(toolchain, workspace / "include")
        argv = _bridge_command(toolchain, workspace)
        environment = {k: v for k, v in os.environ.items() if k in {"PATH", "LD_LIBRARY_PATH"}} | {"LC_ALL": "C"}
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", _FINISH, "sh", str(target), *argv],
                pass_fds=[held],
                cwd=workspace,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=BRIDGE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KitError(f"{' '.join(argv)}\nKilled after {BRIDGE_SECONDS:.0f} s") from error
        if done.returncode != 0:
            raise KitError(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _bridge_command(toolchain: Toolchain, folder: Path) -> list[str]:
    cuda = _with_cuda(toolchain)
    system = [*toolchain.torch_include, toolchain.python_include]
    if cuda and toolchain.nvcc is not None:
        system.append(toolchain.nvcc.include)
        # torch's pip packages carry the headers of the CUDA libraries that a bare compiler package lacks.
        site = Path(sysconfig.get_path("purelib")) / "nvidia"
        system += sorted(str(p) for p in site.glob("cu*/include"))
    libraries = ["-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"] + (["-lc10_cuda", "-ltorch_cuda"] if cuda else [])
    return [
        toolchain.cxx,
        toolchain.std,
        *("-O1", "-fPIC", "-shared", "-fvisibility-inlines-hidden", "-w"),
        "-DTORCH_EXTENSION_NAME=kfast_bridge",
        f"-I{folder / 'include'}",
        *(flag for path in system for flag in ("-isystem", path)),
        str(BRIDGE / "bridge.cpp"),
        *("-o", str(folder / _NAME)),
        f"-L{toolchain.torch_lib}",
        *libraries,
        f"-Wl,-rpath,{toolchain.torch_lib}",
    ]


def _write_headers(toolchain: Toolchain, folder: Path) -> None:
    """`kfast_config.h`, and links to those headers of torch that stand alone."""
    include = Path(toolchain.torch_dir) / "include"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "headeronly").symlink_to(include / "torch" / "headeronly")
    (folder / "kfast_torch").symlink_to(include)
    scalar_types = include / "torch" / "headeronly" / "core" / "ScalarType.h"
    if not scalar_types.is_file():
        raise KitError(f"{scalar_types} is missing: this torch is older than the fast route supports")
    (folder / "kfast_config.h").write_text(_config(scalar_types.read_text(encoding="utf-8"), _with_cuda(toolchain)))


def _config(scalar_types: str, cuda: bool) -> str:
    """The numbering of this torch's dtypes. The bridge's build checks it against the enumeration itself."""
    head = "#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(_)"
    start = scalar_types.index(head) + len(head)
    end = scalar_types.index("\n\n", start)
    names = re.findall(r"_\([^\n]*?(\w+)\)", scalar_types[start:end])
    floating = [n for n in names if n in {"Half", "Float", "Double", "BFloat16"} or n.startswith("Float")]
    every = " ".join(f"_({i}, {n})" for i, n in enumerate(names))
    some = " ".join(f"_({names.index(n)}, {n})" for n in floating)
    return (
        "#pragma once\n"
        f"#define KFAST_WITH_CUDA {int(cuda)}\n"
        f"#define KFAST_SCALAR_TYPES(_) {every}\n"
        f"#define KFAST_FLOATING_TYPES(_) {some}\n"
        f"#define KFAST_UNDEFINED_DTYPE {len(names)}\n"
    )
