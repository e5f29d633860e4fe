"""C++ names as people write them, by the demangler of the C++ runtime."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import lru_cache


@lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(ctypes.util.find_library("stdc++") or "libstdc++.so.6")
    except OSError:
        return None


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """`_Z3addPfi` as `add(float*, int)`; a name that is not mangled comes back as it is."""
    runtime = _runtime()
    if runtime is None or not name.startswith("_Z"):
        return name
    function = runtime.__cxa_demangle
    function.restype = ctypes.c_void_p
    status = ctypes.c_int(0)
    result = function(name.encode(), None, None, ctypes.byref(status))
    if not result or status.value != 0:
        return name
    text = ctypes.string_at(result).decode("utf-8", "replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(result))
    return text


def base_name(demangled: str) -> str:
    """`void ns::kernel<float>(float*)` as `kernel`."""
    text = demangled.split("<", 1)[0].split("(", 1)[0]
    return text.rsplit("::", 1)[-1].split(" ")[-1]
