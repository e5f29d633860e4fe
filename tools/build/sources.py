"""Source texts as a model passes them: strings, lists, tuples, dicts, nothing, or files for `load`."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from tools.build.calls import CaughtCall
from tools.build.draft import Draft, Part, fail

CUDA_SUFFIXES = (".cu",)
HEADER_SUFFIXES = (".h", ".hpp", ".hh", ".cuh", ".inl", ".inc", ".hxx")


def source_parts(argument: str, value: Any) -> list[Part]:
    """The texts of `cpp_sources` or `cuda_sources`; what is empty or None is left out.

    A plain string is labelled by the argument's name, an entry of a list by name and index.
    """
    if value is None:
        return []
    if isinstance(value, str):
        entries = [(argument, value)]
    elif isinstance(value, dict):
        entries = [(f"{argument}[{key!r}]", text) for key, text in value.items()]
    elif isinstance(value, (list, tuple)):
        entries = [(f"{argument}[{index}]", text) for index, text in enumerate(value)]
    else:
        raise fail("bad_sources", f"{argument} is a {type(value).__name__}: pass the source text as a string")
    parts: list[Part] = []
    for label, text in entries:
        if isinstance(text, (list, tuple)):
            text = "\n".join(str(piece) for piece in text)
        if text is not None and str(text).strip():
            parts.append(Part(label, str(text)))
    return parts


def load_draft(caught: CaughtCall) -> Draft:
    """The draft of a `load(name, sources=[…])` whose files were read when it was caught."""
    from tools.build.plumbing import module_name

    value = caught.arguments.get("sources")
    named = [str(v) for v in value] if isinstance(value, (list, tuple)) else [str(value)] if value else []
    draft = Draft(name=module_name(caught.name), cpp=[], cuda=[], functions=None)
    draft.headers = [Part(label, text) for label, text in caught.files.items() if label.endswith(HEADER_SUFFIXES)]
    for path in named:
        label = PurePosixPath(path).name
        if label not in caught.files:
            raise fail(
                "missing_file",
                f"load(name={caught.name!r}) names {path}, which does not exist when the file is run: write it before "
                "the call, or pass the text with load_inline",
            )
        (draft.cuda if label.endswith(CUDA_SUFFIXES) else draft.cpp).append(Part(label, caught.files[label]))
    return draft
