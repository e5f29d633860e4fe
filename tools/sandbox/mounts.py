"""The file system as a sandboxed child sees it: read-only, secrets covered, its own /tmp, /dev/shm, /proc and /dev.

Runs as the first process of a new mount namespace, with the capabilities that its user namespace gives.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from tools.sandbox import linux
from tools.sandbox.policy import Policy

_TMP, _DEV, _SHM, _PROC = Path("/tmp"), Path("/dev"), Path("/dev/shm"), Path("/proc")
_DEVICES = ("null", "zero", "full", "random", "urandom")
# NVIDIA's nodes, with nvidia-uvm and the folder of capability nodes; dxg is the same on Windows' Linux.
_GPU_DEVICES = ("nvidia*", "nvidia-caps/*", "dxg")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
_SECRETS = """
.ssh .aws .azure .config .docker .gnupg .kube .netrc .npmrc .pypirc .pgpass .git-credentials .gitconfig .anthropic
.openai .huggingface .cache/huggingface/token .bash_history .zsh_history .python_history .local/share/keyrings
"""
_SMALL = 1 << 20
_MACHINE_PROC = ("sys", "irq", "bus", "fs", "acpi", "scsi", "sysrq-trigger", "driver", "mtrr")
_ATTRIBUTES = {
    "ro": linux.MS_RDONLY,
    "nosuid": linux.MS_NOSUID,
    "nodev": linux.MS_NODEV,
    "noexec": linux.MS_NOEXEC,
    "noatime": linux.MS_NOATIME,
    "nodiratime": linux.MS_NODIRATIME,
    "relatime": linux.MS_RELATIME,
}


def build_view(policy: Policy) -> list[int]:
    """Arrange the mounts. Returns descriptors of the new /proc, /tmp and /dev/shm for the warden. Raises OSError."""
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    covers = _to_cover(policy)
    writable = [p for p in map(_real, policy.writable) if p.exists()]
    readable = {_real(p) for p in (*policy.readable, *_installation())}
    # To be shown /tmp itself means to be shown one's own.
    covered = [p for p in readable if p not in covers and any(p.is_relative_to(c) for c in (*covers, _DEV))]
    # Taken before anything is covered: a mount can be made from a descriptor when its path no longer leads there.
    handles = {p: _handle(p) for p in (*writable, *covered) if p.exists()}
    devices = {p: _handle(p) for p in _device_files()}
    null = _handle(Path("/dev/null"))

    _set_readonly_everywhere()
    size = policy.file_bytes or 1 << 30
    linux.mount("proc", str(_PROC), "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    _build_dev(devices, size)
    emptied: list[Path] = []
    # From the outside in: something hidden may lie in a folder that is shown, and something shown in a hidden one.
    for path in sorted({*covers, *handles}):
        handle = handles.get(path)
        if handle is not None:
            _make_place(path, folder=Path(f"/proc/self/fd/{handle}").is_dir())
            _bind(handle, path)
            _set_readonly(path, path not in writable)
        elif path.is_dir():
            _tmpfs(path, size if path == _TMP else _SMALL)
            emptied.append(path)
        elif path.exists():  # else it went with a cover above it
            _bind(null, path)
    for path in (*emptied, _DEV):
        if path != _TMP:
            _set_readonly(path, True)
    for handle in (*handles.values(), *devices.values(), null):
        os.close(handle)
    os.chdir(_TMP)
    return [os.open(p, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for p in (_PROC, _TMP, _SHM)]


def seal_proc() -> None:
    """Make the parts of /proc read-only that are the machine's: they would be writable to uid 0 without a capability.

    Not all of it: the CUDA driver writes to its own process's files there, and fails with "OS call failed" otherwise.
    """
    for name in _MACHINE_PROC:
        path = _PROC / name
        if path.exists():
            handle = _handle(path)
            _bind(handle, path)
            os.close(handle)
            _set_readonly(path, True)


def _to_cover(policy: Policy) -> set[Path]:
    """What is replaced by something empty."""
    paths = [Path("/run"), _TMP, *map(Path, policy.hidden)]
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        pass  # a user without an account, as in a container, has no home folder
    else:
        paths += [home / name for name in _SECRETS.split()]
    return {_real(p) for p in paths if _exists(p)} - {Path("/"), _DEV}


def _installation() -> list[str]:
    """Where Python, its packages and we ourselves are: these stay readable when they lie below a covered folder."""
    ours = str(Path(__file__).parents[2])
    return [p for p in (ours, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path) if p.startswith("/")]


def _device_files() -> list[Path]:
    gpu = [path for pattern in _GPU_DEVICES for path in _DEV.glob(pattern)]
    return [path for path in (*(_DEV / name for name in _DEVICES), *sorted(gpu)) if path.is_char_device()]


def _build_dev(devices: dict[Path, int], size: int) -> None:
    """A /dev with the harmless devices and the GPU's, and with no disk in it: as uid 0 a disk would be writable."""
    _tmpfs(_DEV, _SMALL)
    for path, handle in devices.items():
        _make_place(path, folder=False)
        _bind(handle, path)
        # The nodes work all the same: read-only says nothing of what is behind a device.
        _set_readonly(path, True)
    for name, target in _LINKS.items():
        (_DEV / name).symlink_to(target)
    _SHM.mkdir()
    _tmpfs(_SHM, size)


def _real(path: str | Path) -> Path:
    return Path(path).resolve()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False  # below what is closed to us, and so to the child


def _handle(path: Path) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _bind(handle: int, path: Path) -> None:
    linux.mount(f"/proc/self/fd/{handle}", str(path), None, linux.MS_BIND | linux.MS_REC)


def _tmpfs(path: Path, size: int) -> None:
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", str(path), "tmpfs", flags, f"size={size},nr_inodes=65536,mode=1777")


def _make_place(path: Path, *, folder: bool) -> None:
    """Somewhere to mount on, where a cover has left nothing."""
    if path.exists():
        return
    (path if folder else path.parent).mkdir(parents=True, exist_ok=True)
    if not folder:
        path.touch()


def _set_readonly(path: Path, readonly: bool) -> None:
    """For one mount, with the other flags as they are: a user namespace may not clear those it came with."""
    try:
        linux.set_mount_readonly(str(path), readonly)
    except OSError:
        kept = _mount_flags().get(path, 0) & ~linux.MS_RDONLY
        flags = linux.MS_REMOUNT | linux.MS_BIND | kept | (linux.MS_RDONLY if readonly else 0)
        linux.mount("none", str(path), None, flags)


def _set_readonly_everywhere() -> None:
    try:
        linux.set_mount_readonly("/", True, recursive=True)
    except OSError:  # before Linux 5.12
        for path in _mount_flags():
            if _exists(path):
                _set_readonly(path, True)


def _mount_flags() -> dict[Path, int]:
    """The flags of each mount by its place; the uppermost counts where several are stacked."""
    found: dict[Path, int] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        # Blanks in a path are written as octal escapes.
        path = Path(fields[4].encode().decode("unicode_escape"))
        found[path] = sum(_ATTRIBUTES.get(word, 0) for word in fields[5].split(","))
    return found
