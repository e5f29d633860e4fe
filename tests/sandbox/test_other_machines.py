"""The same promises for a user without privileges, on older kernels, and for a home folder with secrets in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.nursery import Nursery
from tools.types import SandboxLevel

NOBODY = 65534
WAIT = 60
ROOT = Path(__file__).parents[2]

UNPRIVILEGED = """
import json, os, sys
from pathlib import Path
from tools.channel import receive_json
from tools.nursery import Limits, Nursery
from tools.sandbox import probe_level, run_sandboxed
from tools.types import SandboxLevel

found = {"uid": os.getuid(), "level": probe_level(), "attempts": {}}
writable = Path(sys.argv[1])
for level in SandboxLevel:
    done = run_sandboxed(
        ["sh", "-c", "id -u; echo x > file; echo x > /usr/file; exit 5"],
        cwd=writable, env={"PATH": "/usr/bin:/bin"}, limits=Limits(seconds=60), writable=[writable], level=level,
    )
    found[level] = [done.returncode, done.stdout.decode(), (writable / "file").exists()]
    (writable / "file").unlink()
with Nursery.start(SandboxLevel.NAMESPACES) as nursery:
    for what, args in {
        "status": {}, "fork": {}, "connect": {"port": 9}, "write": {"path": "/usr/x"}, "kill": {"pid": 1},
        "allocate": {"bytes": 256 << 20},
    }.items():
        limits = Limits(seconds=60, memory_bytes=128 << 20)
        target = "tests.sandbox.sandbox_targets:attempt"
        with nursery.spawn(target, {"what": what, **args}, sandboxed=True, limits=limits) as child:
            reply = None if what == "allocate" else receive_json(child.sock, timeout=60)
            found["attempts"][what] = [reply, child.wait(60).model_dump()]
print(json.dumps(found))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def python_of_nobody(open_folder: Path) -> Path:
    """An interpreter that user nobody may run, with this one's packages: ours may lie in a closed home folder."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = next((p for p in map(Path, ("/usr/bin", "/usr/local/bin")) if (p / name).exists()), None)
    if os.geteuid() != 0 or base is None:
        pytest.skip(f"needs root and a {name} of the system")
    (open_folder / "bin").mkdir()
    (open_folder / "bin" / "python").symlink_to(base / name)
    (open_folder / "pyvenv.cfg").write_text(f"home = {base}\n")
    (open_folder / "lib" / name).mkdir(parents=True)
    (open_folder / "lib" / name / "site-packages").symlink_to(sysconfig.get_path("purelib"))
    return open_folder / "bin" / "python"


def test_a_user_without_privileges_has_the_same_sandbox(python_of_nobody: Path, open_folder: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    imports = [python_of_nobody, "-c", "import pydantic, tools"]
    tried = subprocess.run(imports, user=NOBODY, group=NOBODY, extra_groups=[], env=environment, cwd="/", check=False)
    if tried.returncode != 0:
        pytest.skip("this checkout lies in a folder that is closed to others")
    own = open_folder / "own"
    own.mkdir()
    shutil.chown(own, NOBODY, NOBODY)
    done = subprocess.run(
        [python_of_nobody, "-c", UNPRIVILEGED, str(own)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if found["level"] != "namespaces":
        pytest.skip("this kernel gives namespaces to root only")
    assert found["uid"] == NOBODY
    for level in SandboxLevel:
        assert found[level] == [5, f"{NOBODY}\n", True]
    attempts = found["attempts"]
    assert attempts["status"][0][1]["Uid"].split() == [str(NOBODY)] * 4
    assert int(attempts["status"][0][1]["CapEff"], 16) == 0
    for what in ("fork", "connect", "write", "kill"):
        assert attempts[what][0][0] is False
        assert len(attempts[what][1]["violations"]) == 1
    assert attempts["allocate"][1]["out_of_memory"]


# The newer calls are taken away for good, as an older kernel would.
OLDER_KERNEL = """
import sys
from tools.sandbox import linux, mounts

def missing(*_, **__):
    raise OSError(38, "Function not implemented")

linux.set_mount_readonly = missing
"""

VIEW = """
import json, os, pwd, sys
from pathlib import Path
from tools.sandbox import isolation, linux, mounts
from tools.sandbox.policy import Policy

home, kept = Path(sys.argv[1]), Path(sys.argv[2])
account = list(pwd.getpwuid(os.getuid()))
account[5] = str(home)
pwd.getpwuid = lambda _: pwd.struct_passwd(account)
user = os.geteuid(), os.getegid()
pid = linux.fork_into(isolation.NAMESPACES)
if pid == 0:
    isolation._map_user(*user)
    mounts.build_view(Policy("namespaces", readable=[str(home)], writable=[str(kept)]))
    mounts.seal_proc()
    found = {str(p.relative_to(home)): p.read_text() for p in sorted(home.rglob("*")) if p.is_file()}
    refused = []
    for path in map(Path, (home / "new", home / ".ssh/new", "/usr/new", "/proc/sys/kernel/hostname", kept / "new")):
        try:
            path.write_text("new")
        except OSError as error:
            refused.append(error.strerror)
        else:
            refused.append("")
    print(json.dumps([found, (home / ".netrc").read_text(), refused]), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("kernel", ["", OLDER_KERNEL], ids=["this kernel", "before 5.12"])
def test_secrets_of_the_home_folder_are_covered(tmp_path: Path, kernel: str) -> None:
    files = {".ssh/id_ed25519": "key", ".aws/credentials": "key", ".netrc": "key", ".config/gh/hosts.yml": "token"}
    for name, text in (files | {"code.py": "code", "work/data": "data"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", kernel + VIEW, str(tmp_path), str(tmp_path / "work")],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    found, netrc, refused = json.loads(done.stdout)
    assert found == {"code.py": "code", "work/data": "data"}
    assert netrc == ""
    assert refused == ["Read-only file system"] * 4 + [""]
    assert (tmp_path / "work" / "new").read_text() == "new"
    assert (tmp_path / ".ssh" / "id_ed25519").read_text() == "key"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery.start(SandboxLevel.LIMITS) as started:
        yield started


@pytest.mark.parametrize("what", ["fork", "connect", "exec", "kill"])
def test_without_supervision_an_attempt_ends_the_process(nursery: Nursery, what: str) -> None:
    """Kernels before 5.7 have filters but nobody to ask."""
    args = {"what": what, "port": 9, "pid": 1}
    with nursery.spawn("tests.sandbox.sandbox_targets:attempt_unsupervised", args, sandboxed=True) as child:
        status = child.wait(WAIT)
    assert status is not None
    assert status.signal == 31
    assert status.violations == ["a forbidden system call (killed by the filter)"]
