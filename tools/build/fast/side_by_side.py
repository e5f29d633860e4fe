"""Runs one nvcc command with its host and its device half at the same time: `python -I -S side_by_side.py NVCC ARG…`.

nvcc runs its steps one after another, though those that make the host's source (preprocessor, cudafe++) and those that
make the device's code (preprocessor, cicc, ptxas, fatbinary) read nothing of each other but the module's id, a name
for what is internal to it, which can be given beforehand. `nvcc --dryrun` prints the steps. Here the two halves run
side by side, then the host compiler; what they print, in nvcc's order, and the exit status are those of plain nvcc. A
dry run with any other steps than these is left to nvcc itself, as is a step that a signal ended.

Runs in the sandbox, by path, and imports nothing of ours. The steps are started as argument lists, without a shell.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
# Words in which a shell would see nothing but quotes: whatever has more than that is nvcc's own to run.
_PLAIN = re.compile(r'[\w\s"+,./:=@%-]*')
_SHAPE = ("cc", "cudafe++", "cc", "cicc", "ptxas", "fatbinary", "cc")
_ID_FILE = "--module_id_file_name"


@dataclass
class Steps:
    """What nvcc would run: its environment, its own messages, and the command of each step as an argument list."""

    environment: dict[str, str]
    messages: str
    host: list[list[str]]
    device: list[list[str]]
    last: list[str]
    source: str
    id_file: str


def read_steps(dry_run: str, inherited: dict[str, str]) -> Steps | None:
    """The steps in what `nvcc --dryrun` printed; None where they are not exactly the known ones.

    `inherited` is the environment that the dry run was given. Of the module's id only the file is taken: cudafe++ is
    told to read it where nvcc would have it written.
    """
    environment, messages, commands = dict(inherited), "", list[list[str]]()
    for line in dry_run.splitlines(keepends=True):
        if not line.startswith("#$ "):
            messages += line
            continue
        text = line[3:].rstrip("\n")
        if not commands and (match := _ASSIGNMENT.fullmatch(text)):
            environment[match[1]] = match[2]
            continue
        text = _VARIABLE.sub(lambda match: environment.get(match[1], match[0]), text)
        if not _PLAIN.fullmatch(text) or text.count('"') % 2:
            return None
        if (argv := shlex.split(text)) and argv[0] != "rm":  # the temporary folder goes as a whole
            commands.append(argv)
    if len(commands) != len(_SHAPE):
        return None
    host_text, front, device_text, middle, assembler, bundle, last = commands
    cc = host_text[0]
    if any(
        Path(argv[0]).name != (name if name != "cc" else Path(cc).name)
        for argv, name in zip(commands, _SHAPE, strict=True)
    ):
        return None
    id_file, source = _after(front, _ID_FILE), _after(front, "--orig_src_file_name")
    flows = (
        "-E" in host_text and "-E" in device_text and "-c" in last and device_text[0] == last[0] == cc,
        front[-1] == _after(host_text, "-o"),
        middle.count(_after(device_text, "-o") or "") == 1,
        assembler.count(_after(middle, "-o") or "") == 1,
        any((_after(assembler, "-o") or "\0") in word for word in bundle),
        last.count(_after(front, "--gen_c_file_name") or "") == 1,
        front.count("--gen_module_id_file") == 1 and "--gen_module_id_file" not in middle,
        id_file is not None and id_file == _after(middle, _ID_FILE),
    )
    if id_file is None or source is None or not all(flows):
        return None
    front = [word for word in front if word != "--gen_module_id_file"]
    device = [device_text, middle, assembler, bundle]
    return Steps(environment, messages, [host_text, front], device, last, source, id_file)


def module_id(source: str) -> str:
    """An id for the file at this path, in nvcc's form; the same for the same name and text."""
    digest = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    name = re.sub(r"\W", "_", Path(source).name, flags=re.ASCII)
    return f"_{digest[:8]}_{len(name)}_{name}_{digest[8:16]}"


class _Half:
    """Steps that run one after another in a thread of their own, until one fails; what they print is kept."""

    def __init__(self, commands: list[list[str]], environment: dict[str, str], folder: str) -> None:
        self.commands = commands
        self.environment = environment
        # Both live as long as this program does.
        self.out: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self.err: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self.code = 0
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for argv in self.commands:
            try:
                with self._lock:
                    if self._stopped:
                        return
                    # A group of its own, so that a compiler driver's children end with it.
                    self._running = subprocess.Popen(
                        argv,
                        env=self.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=self.out,
                        stderr=self.err,
                        process_group=0,
                    )
                self.code = self._running.wait()
            except OSError:
                self.code = -1  # nvcc has its own words for it
            if self.code != 0:
                return

    def wait(self) -> int:
        """Exit code of the step that failed, or 0; negative where there is none."""
        self._thread.join()
        return self.code

    def stop(self) -> None:
        """End it now."""
        with self._lock:
            self._stopped = True
            if self._running is not None and self._running.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._running.pid, signal.SIGKILL)
        self._thread.join()

    def replay(self) -> None:
        """Print what its steps printed."""
        for kept, stream in ((self.out, sys.stdout.buffer), (self.err, sys.stderr.buffer)):
            kept.seek(0)
            shutil.copyfileobj(kept, stream)
            stream.flush()


def run(argv: list[str], folder: str) -> int | None:
    """Run the nvcc command `argv` with temporary files in `folder`; its exit code.

    None where plain nvcc has to run it; nothing is printed then.
    """
    environment = {**os.environ, "TMPDIR": folder}
    dry = subprocess.run(
        [argv[0], "--dryrun", *argv[1:]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    steps = read_steps(dry.stderr, environment) if dry.returncode == 0 and not dry.stdout else None
    if steps is None or not Path(steps.source).is_file():
        return None
    Path(steps.id_file).write_text(module_id(steps.source))
    host = _Half(steps.host, steps.environment, folder)
    device = _Half(steps.device, steps.environment, folder)
    done = [host]
    code = host.wait()
    if code == 0:
        done.append(device)
        code = device.wait()
    else:
        device.stop()
    if code == 0:
        last = _Half([steps.last], steps.environment, folder)
        done.append(last)
        code = last.wait()
    if code < 0:
        return None
    sys.stderr.write(steps.messages)
    for half in done:
        half.replay()
    return code


def main(argv: list[str]) -> NoReturn:
    """Run it and exit as nvcc would, or become nvcc."""
    code: int | None = None
    folder = tempfile.mkdtemp(prefix="nvcc-")
    try:
        code = run(argv, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code is None:
        os.execvp(argv[0], argv)
    sys.exit(code)


def _after(argv: list[str], flag: str) -> str | None:
    """The word behind `flag`."""
    return argv[argv.index(flag) + 1] if flag in argv[:-1] else None


if __name__ == "__main__":
    main(sys.argv[1:])
