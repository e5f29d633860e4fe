from typing import Annotated, Any

import pytest
from pydantic import Field

from tools.edits import Edit
from tools.registry import ArgumentsError, Tool, as_tool
from tools.reports import Submitted


class Sample:
    def sample(
        self,
        edits: Annotated[list[Edit], Field(description="what to change")],
        id: Annotated[str | None, Field(description="which")] = None,
        often: int = 3,
    ) -> Submitted:
        """Do a thing.

        Over two lines."""
        raise AssertionError


@pytest.fixture
def tool() -> Tool:
    return as_tool(Sample().sample)


def test_name_and_description_come_from_the_method(tool: Tool):
    assert tool.name == "sample"
    assert tool.description == "Do a thing. Over two lines."


def test_the_schema_comes_from_the_signature(tool: Tool):
    schema = tool.parameters()
    assert schema["type"] == "object"
    assert schema["required"] == ["edits"]
    assert schema["properties"]["id"] == {"type": "string", "description": "which"}
    assert schema["properties"]["often"] == {"type": "integer", "default": 3}
    assert schema["properties"]["edits"]["description"] == "what to change"


def test_the_schema_has_no_references_and_no_titles(tool: Tool):
    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*(keys(item) for item in value.values()))
        return set().union(*(keys(item) for item in value)) if isinstance(value, list) else set()

    assert not keys(tool.parameters()) & {"$ref", "$defs", "title", "anyOf"}


def test_arguments_are_checked_and_converted(tool: Tool):
    parsed = tool.parse('{"edits": [{"old": "a", "new": "b"}], "often": 5}')
    assert parsed == {"edits": [Edit(old="a", new="b")], "id": None, "often": 5}


def test_a_raw_line_break_in_a_string_is_forgiven(tool: Tool):
    assert tool.parse('{"edits": [{"old": "a\nb", "new": ""}]}')["edits"][0].old == "a\nb"


@pytest.mark.parametrize("text", ['{"edits": [', "edits", '{"edits": [}', "[" * 100_000])
def test_broken_json_is_told_apart_from_wrong_arguments(tool: Tool, text: str):
    with pytest.raises(ArgumentsError) as caught:
        tool.parse(text)
    assert caught.value.code == "broken_json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not an object"),
        ("", "edits"),
        ("{}", "edits: Field required"),
        ('{"edits": [], "unknown": 1}', "unknown"),
        ('{"edits": [{"old": "", "new": "x"}]}', "edits.0.old"),
        ('{"edits": "x"}', "edits"),
    ],
)
def test_wrong_arguments_are_named(tool: Tool, text: str, said: str):
    with pytest.raises(ArgumentsError) as caught:
        tool.parse(text)
    assert caught.value.code == "bad_arguments"
    assert said in str(caught.value)
