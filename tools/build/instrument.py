"""Flags that a build gets behind a candidate's own, for a tool that looks at how the candidate runs."""

from __future__ import annotations

from pydantic import Field

from tools.build.calls import BuildCall
from tools.types import Record


class Instrument(Record):
    """What to add to the compilers' and the linker's arguments. Builds of other flags have other keys in the cache."""

    cflags: list[str] = Field(default_factory=list)
    cuda_cflags: list[str] = Field(default_factory=list)
    ldflags: list[str] = Field(default_factory=list)

    def applied(self, call: BuildCall) -> BuildCall:
        """`call` with these flags behind its own: where two contradict each other, compilers follow the last."""
        return call.model_copy(
            update={
                "cflags": [*call.cflags, *self.cflags],
                "cuda_cflags": [*call.cuda_cflags, *self.cuda_cflags],
                "ldflags": [*call.ldflags, *self.ldflags],
            }
        )


LINE_INFO = Instrument(cuda_cflags=["-lineinfo"])
"""Source lines in device code; the code itself stays as it is."""

HOST_LINES = Instrument(cflags=["-g1"])
"""Source lines in host code; the code itself stays as it is."""

# vptr checks ask for type information that torch's libraries do not export.
_SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize=vptr"]
HOST_SANITIZERS = Instrument(
    # Little optimisation, so that an access is still on the line that it was written on.
    cflags=["-O1", "-g", "-fno-omit-frame-pointer", *_SANITIZE, "-fsanitize-recover=all"],
    ldflags=_SANITIZE,
)
"""gcc's AddressSanitizer and UndefinedBehaviorSanitizer, which go on after an error and so tell of more than one."""
