"""Builds kept by content: one folder each, made aside and moved into place, so that no lock is ever needed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tools.build.calls import BuildCall, CompileOutcome
from tools.build.toolchain import Toolchain
from tools.build.visible import LENT

_RECORD = "build.json"
# Part of every key: a change in how we compile must not find old builds.
_FORMAT = 1
_STALE_SECONDS = 86400.0


def build_key(call: BuildCall, toolchain: Toolchain, arch: str, route: str, extra: str = "") -> str:
    """Identifies a build by all that decides its outcome: texts, flags, compilers, torch, target and route.

    `extra` is what a route adds, such as the version of its own headers.
    """
    meaning: dict[str, Any] = {
        "format": _FORMAT,
        "call": call.model_dump(exclude={"index", "call", "added"}),
        "cxx": [toolchain.cxx, toolchain.cxx_version],
        "nvcc": toolchain.nvcc.version if call.with_cuda and toolchain.nvcc else None,
        "torch": [toolchain.torch_dir, toolchain.torch_version, toolchain.std, toolchain.links_cuda],
        "python": toolchain.python_include,
        "arch": arch if call.with_cuda else None,
        "route": route,
        "extra": extra,
    }
    text = json.dumps(meaning, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class BuildCache:
    """A folder of finished builds, shared by all runs of a user. Safe for several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def find(self, key: str) -> CompileOutcome | None:
        """The finished build under `key`, None without a whole one."""
        place = self.place(key)
        try:
            outcome = CompileOutcome.model_validate_json((place / _RECORD).read_bytes())
        except (OSError, ValueError):
            return None
        if outcome.library is not None and not (place / outcome.library).is_file():
            return None
        with contextlib.suppress(OSError):
            os.utime(place)
        return outcome

    def place(self, key: str) -> Path:
        """Where the build under `key` lies, or would lie."""
        return self.folder / key[:2] / key

    @contextlib.contextmanager
    def workspace(self) -> Generator[Path]:
        """A fresh folder to build in; gone afterwards unless `keep` moved it."""
        parent = self.folder / "building"
        parent.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what builds and workers left that were killed with all their processes, a day after."""
        for name in ("building", LENT):
            with contextlib.suppress(OSError):
                for left in (self.folder / name).iterdir():
                    if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                        shutil.rmtree(left, ignore_errors=True)

    def keep(self, key: str, workspace: Path, outcome: CompileOutcome) -> Path:
        """Move a finished build into place, without its object files. One that came first stays, and serves as well."""
        for part in workspace.glob("*.o"):
            part.unlink()
        (workspace / _RECORD).write_text(outcome.model_dump_json(), encoding="utf-8")
        target = self.place(key)
        target.parent.mkdir(exist_ok=True)
        try:
            workspace.rename(target)
        except OSError:
            if self.find(key) is None:
                # What lies there is torn: put it aside and try once more.
                shutil.rmtree(target, ignore_errors=True)
                workspace.rename(target)
        return target
