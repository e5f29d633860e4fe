"""The mailbox: prompts that a person can read, replies that a person can write, mistakes that cost nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.budget import Budget, Limits
from agent.models import BadRequest, ReplyAwaited, ToolSpec
from agent.models.mailbox import MailboxClient
from agent.models.mailbox_form import Malformed, parse_json, parse_markdown
from agent.stops import Stop, StopReason
from transcripts.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

TOOLS = [
    ToolSpec(
        "evaluate_kernel",
        "Build, check and time.",
        {"type": "object", "properties": {"source": {"type": "string"}, "id": {"type": "string"}}},
    ),
    ToolSpec(
        "edit_kernel",
        "Edit one.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "which one"},
                "edits": {"type": "array"},
                "evaluate": {"type": "boolean"},
            },
            "required": ["id", "edits"],
        },
    ),
]
START: list[Message] = [SystemMessage(text="You write kernels."), UserMessage(text="Make\n\n\nit   fast.  ")]

SOURCE = """import torch


class ModelNew(torch.nn.Module):
    pass
"""

MARKDOWN = f"""I try a tiled kernel.

```tool evaluate_kernel
```

```python
{SOURCE}```

Then I look at a snippet, which is only prose:

```python
x = 1
```

```tool edit_kernel
id: 7
evaluate: false
```
```python old
    pass
```
```python new
```
"""


def test_markdown_form() -> None:
    reply = parse_markdown(MARKDOWN, TOOLS)
    assert reply.text.startswith("I try a tiled kernel.")
    assert "x = 1" in reply.text
    assert "ModelNew" not in reply.text
    first, second = reply.calls
    assert (first.name, first.arguments) == ("evaluate_kernel", {"source": SOURCE})
    # `id` is text by the tool's schema, `evaluate` is not.
    assert second.arguments == {"id": "7", "evaluate": False, "edits": [{"old": "    pass\n", "new": ""}]}


def test_longer_fences_hold_shorter_ones() -> None:
    inner = '"""\n```\ncode\n```\n"""\n'
    reply = parse_markdown(f"```tool evaluate_kernel\n{{}}\n```\n````python\n{inner}````\n", TOOLS)
    assert reply.calls[0].arguments == {"source": inner}


def test_json_form() -> None:
    reply = parse_json('{"text": "t", "tool_calls": [{"name": "a", "arguments": {"x": 1}}, {"name": "b"}]}')
    assert (reply.text, reply.calls[0].arguments, reply.calls[1].arguments) == ("t", {"x": 1}, {})


@pytest.mark.parametrize(
    ("parse", "content", "problem"),
    [
        (lambda text: parse_markdown(text, TOOLS), "a\n```tool x\nid: 1\n", "Line 2.*never closed"),
        (lambda text: parse_markdown(text, TOOLS), "```tool\n```\n", "one name of a tool"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\n{'a': 1}\n```\n", "Line 1: the JSON"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\nid: k1\njust words\n```\n", "Line 3.*key: value"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\nsource: a\n```\n```python\nb\n```\n", "given twice"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\n```\n```python new\nb\n```\n", "in pairs"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\n```\n```c old\nb\n```\n```c old\nb\n```\n", "in pairs"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\nedits: 3\n```\n```c old\nb\n```\n", "other `edits`"),
        (lambda text: parse_markdown(text, TOOLS), "```tool x\n```\n```c old\nb\n```\n", "no block `new`"),
        (parse_json, '{"text": ', "JSON"),
        (parse_json, '{"txt": ""}', "txt"),
        (parse_json, '{"tool_calls": [{"arguments": {}}]}', "name"),
    ],
)
def test_malformed_replies_say_where(parse: Callable[[str], object], content: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        parse(content)


def test_first_prompt_is_readable_and_complete(tmp_path: Path) -> None:
    with pytest.raises(ReplyAwaited) as caught:
        MailboxClient(tmp_path, wait=False).reply(START, TOOLS)
    assert caught.value.exit_code == 75
    assert (caught.value.prompt, caught.value.reply) == (tmp_path / "001-prompt.md", tmp_path / "001-reply.md")
    assert "001-reply.md" in str(caught.value)
    prompt = caught.value.prompt.read_text()
    # Word for word: an edit must be able to quote it.
    assert "Make\n\n\nit   fast.  \n" in prompt
    assert "You write kernels." in prompt
    assert "## edit_kernel" in prompt
    assert "`id` (string): which one" in prompt
    assert "`evaluate` (boolean, optional)" in prompt
    data = json.loads((tmp_path / "001-prompt.json").read_text())
    assert [message["text"] for message in data["messages"]] == [START[0].text, START[1].text]
    assert data["tools"][1]["parameters"] == TOOLS[1].parameters
    assert sorted(path.name for path in tmp_path.iterdir()) == ["001-prompt.json", "001-prompt.md"]


def test_the_form_in_the_prompt_is_one_that_is_understood(tmp_path: Path) -> None:
    with pytest.raises(ReplyAwaited) as caught:
        MailboxClient(tmp_path, wait=False).reply(START, TOOLS)
    example = caught.value.prompt.read_text().split("````\n")[1]
    calls = parse_markdown(example, TOOLS).calls
    assert [call.name for call in calls] == ["evaluate_kernel", "edit_kernel"]
    assert [set(call.arguments) for call in calls] == [{"source"}, {"id", "edits"}]


def test_same_command_goes_on_through_two_turns(tmp_path: Path) -> None:
    (tmp_path / "001-reply.md").write_text(MARKDOWN)
    pieces: list[str] = []
    reply = MailboxClient(tmp_path, wait=False).reply(START, TOOLS, on_text=pieces.append)
    assert pieces == [reply.text]
    assert [call.id for call in reply.tool_calls] == ["mail_001_1", "mail_001_2"]
    assert json.loads(reply.tool_calls[0].arguments) == {"source": SOURCE}
    assert (reply.model, reply.finish_reason, reply.cost_usd) == ("mailbox", "tool_calls", None)
    result = ToolMessage(call_id="mail_001_1", name="evaluate_kernel", text="k1 is wrong")
    talk = [*START, reply.message(), result]
    (tmp_path / "002-reply.json").write_text('{"text": "I see."}')
    second = MailboxClient(tmp_path, wait=False).reply(talk, TOOLS)
    assert (second.text, second.tool_calls, second.finish_reason) == ("I see.", (), "stop")
    prompt = (tmp_path / "002-prompt.md").read_text()
    assert "# tool: evaluate_kernel\n\nk1 is wrong" in prompt
    assert "You write kernels." not in prompt
    assert "`evaluate_kernel`, `edit_kernel`" in prompt
    assert len(json.loads((tmp_path / "002-prompt.json").read_text())["messages"]) == 4


def test_malformed_reply_is_answered_in_a_file(tmp_path: Path) -> None:
    reply = tmp_path / "001-reply.md"
    reply.write_text("```tool evaluate_kernel\n")
    told: list[str] = []
    client = MailboxClient(tmp_path, wait=False, tell=told.append)
    with pytest.raises(ReplyAwaited) as caught:
        client.reply(START, TOOLS)
    assert caught.value.prompt == tmp_path / "001-problem.md"
    assert "never closed" in caught.value.prompt.read_text()
    assert "001-problem.md" in told[0]
    reply.write_text("```tool evaluate_kernel\n```\n")
    assert len(client.reply(START, TOOLS).tool_calls) == 1
    assert not (tmp_path / "001-problem.md").exists()


def test_not_utf8_and_json_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "001-reply.md").write_bytes(b"caf\xe9")
    with pytest.raises(ReplyAwaited):
        MailboxClient(tmp_path, wait=False).reply(START, TOOLS)
    assert "UTF-8" in (tmp_path / "001-problem.md").read_text()
    (tmp_path / "001-reply.json").write_text("{")
    with pytest.raises(ReplyAwaited):
        MailboxClient(tmp_path, wait=False).reply(START, TOOLS)
    assert "001-reply.json" in (tmp_path / "001-problem.md").read_text()


def test_waits_for_a_reply_and_does_not_take_an_empty_or_broken_one(tmp_path: Path) -> None:
    reply = tmp_path / "001-reply.md"
    told: list[str] = []
    asked, complained = threading.Event(), threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        (complained if "cannot be read" in line else asked).set()

    def person() -> None:
        assert asked.wait(30)
        reply.touch()
        reply.write_text("~~~tool edit_kernel\nid: k1\n")
        assert complained.wait(30)
        reply.write_text("~~~tool edit_kernel\nid: k1\n~~~\n")

    thread = threading.Thread(target=person)
    thread.start()
    got = MailboxClient(tmp_path, tell=tell).reply(START, TOOLS)
    thread.join()
    assert json.loads(got.tool_calls[0].arguments) == {"id": "k1"}
    assert len(told) == 2
    assert str(tmp_path / "001-prompt.md") in told[0]


def test_replies_of_another_run_are_not_taken(tmp_path: Path) -> None:
    with pytest.raises(ReplyAwaited):
        MailboxClient(tmp_path, wait=False).reply(START, TOOLS)
    (tmp_path / "001-reply.md").write_text("hello")
    other = [START[0], UserMessage(text="Another problem.")]
    with pytest.raises(BadRequest, match="another run"):
        MailboxClient(tmp_path, wait=False).reply(other, TOOLS)
    assert MailboxClient(tmp_path, wait=False).reply(START, TOOLS).text == "hello"
    # With no reply yet the prompt is simply written anew.
    (tmp_path / "001-reply.md").unlink()
    with pytest.raises(ReplyAwaited):
        MailboxClient(tmp_path, wait=False).reply(other, TOOLS)
    assert "Another problem." in (tmp_path / "001-prompt.md").read_text()


def test_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadRequest, match="it is a file"):
        MailboxClient(tmp_path / "file")


def test_what_the_model_said_wrongly_can_be_written_down(tmp_path: Path) -> None:
    call = ToolCall(id="a", name="x", arguments="{")
    talk = [*START, AssistantMessage(tool_calls=(call,)), ToolMessage(call_id="a", name="x", text="bad \ud83d text")]
    with pytest.raises(ReplyAwaited):
        MailboxClient(tmp_path, wait=False).reply(talk, TOOLS)
    assert "bad ? text" in (tmp_path / "002-prompt.md").read_text()


def test_a_wait_ends_when_the_budget_does(tmp_path: Path):
    budget = Budget(Limits(max_minutes=0.3 / 60))
    with pytest.raises(Stop) as stopped:
        MailboxClient(tmp_path).reply(START, TOOLS, check=budget.check)
    assert stopped.value.reason is StopReason.MINUTES
    assert (tmp_path / "001-prompt.md").exists()
