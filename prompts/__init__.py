"""Every text that the model reads, one Jinja2 template each, and the one renderer.

Templates get the typed results as they are. A name that a template uses and nobody gave is an error (StrictUndefined),
so a text can never have a hole in it. Imports nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from prompts import formats

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("prompts", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # the reader is a language model, not a browser
    )
    filters: dict[str, Callable[..., str]] = {
        "duration": formats.duration,
        "quantity": formats.quantity,
        "size": formats.size,
        "number": formats.number,
        "percent": formats.percent,
        "speedup": formats.speedup,
        "fact": formats.fact,
        "fenced": formats.fenced,
    }
    environment.filters.update(filters)  # pyright: ignore[reportArgumentType]
    return environment


def render(name: str, **context: object) -> str:
    """The text of template `name` (without `.j2`). Raises `jinja2.UndefinedError` if a value it needs is missing."""
    text = _environment().get_template(f"{name}.j2").render(**context)
    return formats.tidy(text)


__all__ = ["render"]
