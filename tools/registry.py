"""From a method to a tool: the JSON schema a model sees is read off the signature and the docstring."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from tools.reports import ToolRecord


class ArgumentsError(Exception):
    """A call's arguments do not fit the tool. `problems` says what is wrong, one line each."""

    def __init__(self, code: str, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.code = code
        self.problems = problems


@dataclass(frozen=True)
class Tool:
    """One thing that the model can call. `function` takes the arguments by name and returns a record."""

    name: str
    description: str
    arguments: type[BaseModel]
    function: Callable[..., ToolRecord]

    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, an object schema."""
        schema = self.arguments.model_json_schema()
        return _tidy(schema, schema.pop("$defs", {}))

    def parse(self, arguments: str) -> dict[str, Any]:
        """The arguments by name, checked. Raises `ArgumentsError`."""
        try:
            given = json.loads(arguments or "{}", strict=False)
        except (ValueError, RecursionError) as error:
            raise ArgumentsError("broken_json", [str(error)]) from None
        if not isinstance(given, dict):
            raise ArgumentsError("bad_arguments", [f"the arguments are a JSON {type(given).__name__}, not an object"])
        try:
            checked = self.arguments.model_validate(given)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:8]]
            raise ArgumentsError("bad_arguments", problems) from None
        return {name: getattr(checked, name) for name in self.arguments.model_fields}


def as_tool(function: Callable[..., ToolRecord]) -> Tool:
    """Read a tool off a bound method: name, docstring, parameters with their annotations and defaults."""
    name = function.__name__
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (hints[parameter.name], ... if parameter.default is parameter.empty else parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    }
    arguments = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return Tool(name, " ".join((inspect.getdoc(function) or "").split()), arguments, function)


def _tidy(schema: Any, definitions: dict[str, Any]) -> Any:
    """Drop what costs a model tokens and tells it nothing (titles, null alternatives, null defaults, the names of our
    own records), and write definitions where they are used: some servers follow no references."""
    if isinstance(schema, list):
        return [_tidy(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    if "$ref" in kept:
        named = definitions[kept.pop("$ref").rpartition("/")[2]]
        kept = {key: value for key, value in named.items() if key not in ("title", "description")} | kept
    if kept.get("default", 0) is None:
        del kept["default"]
    choices = [choice for choice in kept.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        del kept["anyOf"]
        kept = {**choices[0], **kept}
    return {key: _tidy(value, definitions) for key, value in kept.items()}
