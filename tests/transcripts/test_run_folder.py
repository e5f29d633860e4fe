"""The run folder: what is written stays whole, whatever happens to the writer."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from transcripts import (
    RunFolder,
    RunLocked,
    TranscriptError,
    find_example,
    find_unfinished,
    is_live,
    read_events,
    read_header,
)
from transcripts.events import (
    EVENT,
    BudgetSpent,
    CandidateSeen,
    MessagesAdded,
    ReplyReceived,
    Resumed,
    RunFinished,
    RunStarted,
    ToolResult,
)
from transcripts.log import write_atomic
from transcripts.messages import AssistantMessage, Reply, SystemMessage, ToolCall, ToolMessage, UserMessage

STARTED = RunStarted(
    problem="problems/seeds/pointwise conv.py",
    model="m",
    config={"size": "small", "turns": 3},
    time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
)


def test_create_writes_header_and_first_event(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "runs", STARTED) as run:
        assert run.path.name == "20260102-030405-pointwise-conv"
        assert read_header(run.path) == STARTED
        assert read_events(run.path) == [STARTED]
        with RunFolder.create(tmp_path / "runs", STARTED) as second:
            assert second.path.name == "20260102-030405-pointwise-conv-2"
    assert json.loads((run.path / "run.json").read_text())["config"] == STARTED.config


def test_every_event_survives_the_file(tmp_path: Path) -> None:
    call = ToolCall(id="a", name="t", arguments="{broken")
    events = [
        MessagesAdded(
            messages=(
                SystemMessage(text="s\u2028\x00é"),
                UserMessage(text="u"),
                AssistantMessage(reasoning="r", reasoning_key="reasoning", tool_calls=(call,)),
                ToolMessage(call_id="a", name="t", text="x\ny\r\n"),
            )
        ),
        ReplyReceived(turn=1, reply=Reply(tool_calls=(call,), cost_usd=0.1)),
        ToolResult(turn=1, call_id="a", name="t", record={"kind": "x", "n": [1, None, {"a": 2.5}]}, text="", seconds=1),
        CandidateSeen(id="k1", source_path="kernels/k001/source.py"),
        BudgetSpent(name="turns", spent=1, limit=None),
    ]
    with RunFolder.create(tmp_path, STARTED) as run:
        for event in events:
            run.append(event)
    assert read_events(run.path) == [STARTED, *events]


def test_lone_surrogates_and_infinities_are_written(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, STARTED) as run:
        run.append(MessagesAdded(messages=(UserMessage(text="a\ud83d"),)))
        run.write_solution("x = '\ud83d'\n")
        run.write_result({"speedup": float("inf")})
    last = read_events(run.path)[-1]
    assert isinstance(last, MessagesAdded)
    assert last.messages[0].text == "a?"
    assert (run.path / "solution.py").read_text() == "x = '?'\n"
    assert json.loads((run.path / "result.json").read_text()) == {"speedup": None}


@pytest.mark.parametrize("torn", [b'{"schema_version":1,"ev', b"\x00\x00\x00\x00\n", b'{"half": \n'])
def test_torn_last_line_is_ignored_then_cut(tmp_path: Path, torn: bytes) -> None:
    with RunFolder.create(tmp_path, STARTED) as run:
        pass
    file = run.path / "events.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + torn)
    assert read_events(run.path) == [STARTED]
    with RunFolder.open(run.path) as again:
        assert file.read_bytes() == whole
        resumed = Resumed()
        again.append(resumed)
    assert read_events(run.path) == [STARTED, resumed]


def test_damaged_line_and_newer_version_are_told_apart(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, STARTED) as run:
        run.append(Resumed())
    file = run.path / "events.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b'{"event": "no such"}\n' + second)
    with pytest.raises(TranscriptError, match="line 2 is damaged"):
        read_events(run.path)
    file.write_bytes(first + second.replace(b'"schema_version":1', b'"schema_version":9') + second)
    with pytest.raises(TranscriptError, match=r"newer version.*Upgrade"):
        read_events(run.path)


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, STARTED) as run:
        assert is_live(run.path)
        code = f"from transcripts import RunFolder; from pathlib import Path; RunFolder.open(Path({str(run.path)!r}))"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert other.returncode == 1
        assert "RunLocked" in other.stderr
        with pytest.raises(RunLocked, match="Another process"):
            RunFolder.open(run.path)
        # A child of the writer does not hold the lock after it.
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    RunFolder.open(run.path).close()
    assert not is_live(run.path)
    child.communicate(b"\n")


WRITER = """
import sys
from pathlib import Path
from transcripts import RunFolder
from transcripts.events import BudgetSpent, RunStarted
run = RunFolder.create(Path(sys.argv[1]), RunStarted(problem="p", model="m", config={}))
for number in range(10**9):
    run.append(BudgetSpent(name="turns", spent=number))
    print(run.path, number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_written(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(50)]
    writer.send_signal(signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.wait()
    path, said = Path(lines[-1].split()[0]), [int(line.split()[1]) for line in lines if line.endswith("\n")]
    with RunFolder.open(path):
        kept = [event.spent for event in read_events(path) if isinstance(event, BudgetSpent)]
    assert kept == list(range(len(kept)))
    assert len(kept) >= len(said) >= 50


FULL = """
import sys
from pathlib import Path
from transcripts import RunFolder, TranscriptError, read_events
from transcripts.events import MessagesAdded, RunFinished, RunStarted
from transcripts.messages import UserMessage
root = Path(sys.argv[1])
run = RunFolder.create(root, RunStarted(problem="p", model="m", config={}))
filler = root / "filler"
count = 0
try:
    while True:
        run.append(MessagesAdded(messages=(UserMessage(text="x" * 3000),)))
        count += 1
except TranscriptError as error:
    print(error)
assert count > 5
assert len(read_events(run.path)) == 1 + count, "the torn line was taken back"
try:
    run.write_solution("x" * 50_000)
    raise SystemExit("there was room after all")
except TranscriptError as error:
    assert "disk is full" in str(error)
assert not [path for path in run.path.iterdir() if path.name.startswith(".")], "no draft is left"
try:
    RunFolder.create(root / "more", RunStarted(problem="p", model="m", config={}))
    raise SystemExit("there was room for a run")
except TranscriptError as error:
    assert "disk is full" in str(error)
(root / "blocker").unlink()
run.append(RunFinished(reason="submitted", result={}))
assert len(read_events(run.path)) == 2 + count, "it goes on once there is room"
print("done")
"""


def test_full_disk(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare to mount a small disk")
    mount = f"mount -t tmpfs -o size=128k tmpfs {tmp_path} && head -c 20000 /dev/zero > {tmp_path}/blocker"
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("may not mount a small disk here")
    command = f'{mount} && exec "$0" -c "$1" {tmp_path}'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, sys.executable, FULL], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "The disk is full" in done.stdout
    assert "run the same command again" in done.stdout
    assert done.stdout.endswith("done\n")


LIMITED = """
import resource, sys
from pathlib import Path
from transcripts import RunFolder, TranscriptError, read_events
from transcripts.events import MessagesAdded, RunStarted
from transcripts.messages import UserMessage
run = RunFolder.create(Path(sys.argv[1]), RunStarted(problem="p", model="m", config={}))
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
try:
    run.append(MessagesAdded(messages=(UserMessage(text="x" * 9000),)))
except TranscriptError as error:
    print(error)
assert len(read_events(run.path)) == 1
assert (run.path / "events.jsonl").read_bytes().endswith(b"}\\n")
"""


def test_short_write_is_taken_back(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "could not be written" in done.stdout


def test_write_atomic_leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomic(path, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(TranscriptError, match="could not be written"):
            write_atomic(path, "new" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.json"]  # noqa: PTH208


def test_find_unfinished_takes_the_newest_of_the_same_command(tmp_path: Path) -> None:
    def run(second: int, config: dict[str, object], reason: str | None) -> Path:
        started = STARTED.model_copy(update={"config": config, "time": STARTED.time.replace(second=second)})
        with RunFolder.create(tmp_path, started) as folder:
            if reason is not None:
                folder.append(RunFinished(reason=reason, result={}))
        return folder.path

    assert find_unfinished(tmp_path / "none", {}) is None
    run(1, {"a": 1}, None)
    wanted = run(2, {"a": 1}, None)
    run(3, {"a": 1}, "submitted")
    run(4, {"a": 2}, None)
    damaged = run(5, {"a": 1}, None)
    (damaged / "run.json").write_text("{")
    (tmp_path / "something else").mkdir()
    assert find_unfinished(tmp_path, {"a": 1}) == wanted
    assert find_unfinished(tmp_path, {"a": 3}) is None
    stopped = run(6, {"a": 1}, "interrupted")
    assert find_unfinished(tmp_path, {"a": 1}) == stopped


def test_not_a_run_folder(tmp_path: Path) -> None:
    for function in (read_events, read_header, RunFolder.open, is_live):
        with pytest.raises(TranscriptError, match="no run folder"):
            function(tmp_path)
    with pytest.raises(TranscriptError, match="no bundled transcript"):
        find_example("nonesuch")


def test_bundled_examples_are_whole() -> None:
    root = Path(__file__).parents[2] / "transcripts" / "examples"
    for file in root.glob("*/events.jsonl"):
        events = read_events(find_example(file.parent.name))
        assert isinstance(events[0], RunStarted), file
        assert any(isinstance(event, ReplyReceived) for event in events), file


def test_lines_are_what_the_schema_says(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, STARTED) as run:
        run.append(Resumed())
    for line in (run.path / "events.jsonl").read_text().splitlines():
        data = json.loads(line)
        assert data["schema_version"] == 1
        assert EVENT.validate_python(data).event == data["event"]
