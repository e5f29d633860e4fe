"""Sources that compile without torch's headers, and loading what was built."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util

from tools.types import BuildResult

# pybind11 alone compiles in three seconds, torch/extension.h in twenty.
LIGHT = """
import torch
from torch.utils.cpp_extension import load_inline

source = r'''
#include <pybind11/pybind11.h>
{code}
'''
ext = load_inline(name="{name}", cpp_sources=source, functions=["f"], no_implicit_headers=True,
                  with_pytorch_error_handling=False{more})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.f(x)
"""


def light(code: str, more: str = "") -> str:
    """A candidate whose C++ source is `code`, which defines `f`; `more` are further arguments of the call.

    Its module has a name of its own: pybind11 gives back the first module of a name that a process loaded.
    """
    name = f"light_{hashlib.sha256(code.encode()).hexdigest()[:8]}"
    return LIGHT.replace("{name}", name).replace("{code}", code).replace("{more}", f", {more}" if more else "")


def load(result: BuildResult, index: int = 0):
    """The built module, imported as a worker imports it."""
    import torch  # noqa: F401 - brings the libraries that a module links to

    module = result.modules[index]
    loader = importlib.machinery.ExtensionFileLoader(module.name, module.library)
    spec = importlib.util.spec_from_file_location(module.name, module.library, loader=loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded
