"""The file system as a sandboxed child sees it: all of it read-only, private /tmp, /dev/shm, /proc and /dev, secrets covered.

Runs as the first process of a new mount namespace, with the capabilities that its user namespace gives.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from pathlib import Path

from tools.sandbox import linux
from tools.sandbox.policy import Policy

_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
_SECRETS = (
    ".ssh .aws .azure .config .docker .gnupg .kube .netrc .npmrc .pypirc .pgpass .git-credentials .gitconfig .anthropic "
    ".openai .huggingface .cache/huggingface/token .bash_history .zsh_history .python_history .local/share/keyrings"
).split()
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
    home = pwd.getpwuid(os.getuid()).pw_dir if _has_account() else "/nonexistent"
    covers = {os.path.realpath(p) for p in [*policy.hidden, *(f"{home}/{name}" for name in _SECRETS), "/run", "/tmp"]}
    covers = {p for p in covers if os.path.exists(p) and p != "/"} - {"/dev"}
    writable = [os.path.realpath(p) for p in policy.writable]
    shown = sorted({*writable, *(os.path.realpath(p) for p in [*policy.readable, *_installation()])})
    # To be shown /tmp itself means to be shown one's own.
    shown = [p for p in shown if p in writable or (p != "/tmp" and any(_inside(p, c) for c in covers))]
    # Taken before anything is covered: a mount can be made from a descriptor when its path no longer leads there.
    handles = {p: os.open(p, os.O_PATH | os.O_CLOEXEC) for p in shown if os.path.exists(p)}
    devices = {p: os.open(p, os.O_PATH | os.O_CLOEXEC) for p in _device_files()}
    null = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)

    _set_readonly_everywhere()
    size = policy.file_bytes or 1 << 30
    for path in sorted(covers):
        if not os.path.exists(path):
            continue  # went with a cover above it
        if os.path.isdir(path):
            _tmpfs(path, size if path == "/tmp" else 1 << 20)
        else:
            linux.mount(f"/proc/self/fd/{null}", path, None, linux.MS_BIND)
    _build_dev(devices, size)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    for path, handle in handles.items():
        _make_place(path, os.path.isdir(f"/proc/self/fd/{handle}"))
        linux.mount(f"/proc/self/fd/{handle}", path, None, linux.MS_BIND | linux.MS_REC)
        _set_readonly(path, path not in writable)
    for path in covers - {"/tmp"}:
        if os.path.isdir(path) and path not in writable:
            _set_readonly(path, True)
    _set_readonly("/dev", True)
    for handle in (*handles.values(), *devices.values(), null):
        os.close(handle)
    os.chdir("/tmp")
    return [os.open(p, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for p in ("/proc", "/tmp", "/dev/shm")]


def seal_proc() -> None:
    """Make /proc read-only: its settings would be writable to uid 0 even without a capability."""
    _set_readonly("/proc", True)


def _has_account() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _installation() -> list[str]:
    """Where Python, its packages and we ourselves are: these stay readable when they lie below a covered folder."""
    ours = str(Path(__file__).parents[2])
    return [p for p in (ours, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path) if os.path.isabs(p)]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _device_files() -> list[str]:
    names = [f"/dev/{name}" for name in _DEVICES]
    # NVIDIA's nodes, with nvidia-uvm and the folder of capability nodes; dxg is the same on Windows' Linux.
    names += sorted(str(p) for pattern in ("nvidia*", "nvidia-caps/*", "dxg") for p in Path("/dev").glob(pattern))
    return [n for n in names if os.path.exists(n) and stat.S_ISCHR(os.stat(n).st_mode)]


def _build_dev(devices: dict[str, int], size: int) -> None:
    """A /dev with the harmless devices and the GPU's, and with no disk in it: as uid 0 a disk would be writable."""
    _tmpfs("/dev", 1 << 20)
    for path, handle in devices.items():
        _make_place(path, False)
        linux.mount(f"/proc/self/fd/{handle}", path, None, linux.MS_BIND)
        # The nodes work all the same: read-only says nothing of what is behind a device.
        _set_readonly(path, True)
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")
    _tmpfs("/dev/shm", size)


def _tmpfs(path: str, size: int) -> None:
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", path, "tmpfs", flags, f"size={size},nr_inodes=65536,mode=1777")


def _make_place(path: str, folder: bool) -> None:
    """Somewhere to mount on, where a cover has left nothing."""
    if os.path.exists(path):
        return
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _set_readonly(path: str, readonly: bool) -> None:
    """For one mount, with the other flags as they are: a user namespace may not clear those it came with."""
    try:
        linux.set_mount_readonly(path, readonly)
    except OSError:
        kept = _mount_flags().get(path, 0) & ~linux.MS_RDONLY
        flags = linux.MS_REMOUNT | linux.MS_BIND | kept | (linux.MS_RDONLY if readonly else 0)
        linux.mount("none", path, None, flags)


def _set_readonly_everywhere() -> None:
    try:
        linux.set_mount_readonly("/", True, recursive=True)
    except OSError:  # before Linux 5.12
        for path in _mount_flags():
            if os.path.exists(path):
                _set_readonly(path, True)


def _mount_flags() -> dict[str, int]:
    """The flags of each mount by its place; the uppermost counts where several are stacked."""
    found: dict[str, int] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        path = fields[4].encode().decode("unicode_escape")
        found[path] = sum(_ATTRIBUTES.get(word, 0) for word in fields[5].split(","))
    return found
