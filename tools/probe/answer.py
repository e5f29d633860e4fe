"""In an untrusted process: find the function that was asked for, call it, and turn what it raises into data."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tools.worker.failure import describe
from tools.worker.poison import Poison

Message = dict[str, Any]


def answer(target: str, args: Message, guard: Poison) -> Message:
    """`{"reply": …}` of the function `target` ("package.module:function"), or `{"error": …}`."""
    module, _, name = target.partition(":")
    function: Callable[[Message, Poison], Message] = getattr(importlib.import_module(module), name)
    try:
        return {"reply": function(args, guard)}
    except SystemExit as leaving:
        return {"error": {"kind": "exited", "type": "SystemExit", "message": str(leaving)[:500]}}
    except BaseException as error:
        return {"error": describe(error)}
