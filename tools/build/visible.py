"""What of the build cache a sandboxed process may see: our own libraries and headers, and the builds it was given.

The cache holds what every candidate of every problem was built from, and so other answers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

OURS = ("fast", "helpers")
"""Folders of the cache that hold no candidate's work: the fast route's bridge and headers, and our small libraries."""

LENT = "lent"
NEW_SECONDS = 60.0

Module = dict[str, str]


def visible(cache_dir: Path, libraries: Iterable[str] = ()) -> list[Path]:
    """Paths to keep readable where the cache is hidden: our own parts, and the build folders of `libraries`."""
    builds = dict.fromkeys(Path(library).parent for library in libraries if library)
    ours = [cache_dir / part for part in OURS]
    for folder in ours:
        # What comes into a folder later is seen, a folder that comes later is not.
        folder.mkdir(parents=True, exist_ok=True)
    return [*ours, *builds]


class LentBuilds:
    """A folder through which one process sees libraries that are chosen only after its start, when its view is fixed.

    It lies in the cache, so that a library is lent by a hard link: no copy, and the process has it read-only. It is
    locked as long as its owner lives; what one leaves behind that was killed, a later one removes.
    """

    def __init__(self, cache_dir: Path) -> None:
        parent = cache_dir.absolute() / LENT
        parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(parent)
        self.folder = Path(tempfile.mkdtemp(dir=parent))
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def lend(self, modules: Sequence[Module]) -> list[Module]:
        """Make the modules' libraries visible. Returns the modules with the paths under which they are. Raises OSError
        where a library is gone or the disk is full."""
        lent: list[Module] = []
        for number, module in enumerate(modules):
            source = Path(module["library"])
            place = self.folder / str(number) / source.name
            place.parent.mkdir(exist_ok=True)
            if not place.exists():
                _link(source, place)
            lent.append({**module, "library": str(place)})
        return lent

    def close(self) -> None:
        """Remove the folder; what was linked stays in the cache."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned(parent: Path) -> None:
    """Folders whose owner is gone; a new one may not be locked yet."""
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime < NEW_SECONDS:
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _link(source: Path, place: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems know no hard links, and none go from one to another
        os.link(source, place)
        return
    shutil.copyfile(source, place)
