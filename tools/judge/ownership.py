"""Whose work it is: the share of time in the candidate's own code, and what a lack of precision looks like in words.

Calling a library for part of the work is often right (a convolution by the library, a fused epilogue of one's own),
so the share is reported and only its absence is a verdict: no function of a built library is ever called, or not one
sample of many lies in the candidate's own binary, but for what the call itself takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.judge.findings import observe
from tools.judge.limits import is_truncated
from tools.types import Finding, PrecisionClass
from tools.worker.profile import own_samples

if TYPE_CHECKING:
    from tools.judge.bench import Bench
    from tools.judge.compare import Comparison
    from tools.judge.session import Program

ENOUGH_SAMPLES = 100
"""With none of 100 samples in own code, a true share of 3% has a chance of one in twenty."""

_HOUSEKEEPING = re.compile(r"Memcpy|Memset|fill_shared|check_guards|FillFunctor|copy_kernel|CatArray")

_LIBRARY_NAMESPACE = re.compile(r"(at|c10|cub|cutlass|cute|thrust|cudnn|cublas\w*|cufft\w*|nv\w*)::")


@dataclass(frozen=True)
class Profile:
    """`share` is None where it could not be measured."""

    built_calls: int
    share: float | None
    samples: int
    own_kernels: int | None = None
    has_kernels: bool | None = None
    """Whether the binaries hold any `__global__` function; None on the CPU, where there is no such thing."""

    @staticmethod
    def from_reply(reply: dict[str, Any], program: Program) -> Profile:
        calls = int(reply["built_calls"])
        if "kernels" in reply:
            names = program.kernels
            rows = [(str(k["name"]), float(k["us"]), int(k["calls"])) for k in reply["kernels"]]
            rows = [row for row in rows if not _HOUSEKEEPING.search(row[0])]
            own = [row for row in rows if is_own(row[0], names)]
            total = sum(us for _, us, _ in rows)
            share = sum(us for _, us, _ in own) / total if total > 0 else None
            return Profile(calls, share, sum(n for _, _, n in rows), sum(n for _, _, n in own), bool(names))
        samples = {name: int(n) for name, n in (reply.get("samples") or {"own": 0, "library": 0}).items()}
        own, library = own_samples(samples), samples["library"]
        return Profile(calls, own / (own + library) if own + library else None, own + library)

    def verdict(self, required: float | None) -> Finding | None:
        """The finding that makes the candidate no kernel, or None."""
        # A call by way of map() or a registered operator is not seen as one, but its time is.
        if self.built_calls == 0 and not self.own_kernels and not self.share:
            return observe("kernel_never_runs", "forward never calls a function of a library that was built")
        if self.has_kernels is False:
            return observe(
                "library_only",
                "none of the libraries that were built holds a kernel of its own: the work is a library's",
            )
        share = self.share
        if share == 0.0 and (self.own_kernels == 0 or self.samples >= ENOUGH_SAMPLES):
            return observe(
                "library_only", "no time is spent in the candidate's own kernels: the work is a library call", share=0.0
            )
        if required is not None and share is not None and share < required:
            summary = f"{share:.0%} of the time is in its own kernels, {required:.0%} is required"
            return observe("own_share_too_small", summary, share=share, required=required)
        return None


def is_own(kernel: str, names: frozenset[str]) -> bool:
    """Whether a kernel that ran, by its demangled or mangled name, is one of the functions in the candidate's
    binary. Of templates in a library's namespace the same instance must be there: whoever has another one there, or
    a function of that name, has not written the library's."""
    if kernel in names:
        return True
    bare = bare_name(kernel)
    return not _LIBRARY_NAMESPACE.match(bare) and any(bare == bare_name(name) for name in names)


def bare_name(demangled: str) -> str:
    """`void ns::k<float, 4>(float*)` becomes `ns::k`."""
    text = demangled.removeprefix("void ").strip()
    depth, out = 0, []
    for ch in text.replace("(anonymous namespace)", "_anonymous_"):
        if ch == "<":
            depth += 1
        elif ch == ">":
            depth -= 1
        elif ch == "(" and depth == 0:
            break
        elif depth == 0:
            out.append(ch)
    return "".join(out).strip().split(" ")[-1]


def precision_finding(bench: Bench, found: Comparison) -> Finding:
    """Words for an error that is everywhere, bounded, and larger than the reference's: shorter operands."""
    error, reference = found.result.error, found.result.reference_error
    assert error is not None and reference is not None
    ratio = error.rms / reference.rms if reference.rms else float("inf")
    facts: dict[str, Any] = {
        "candidate_rms": error.rms,
        "reference_rms": reference.rms,
        "ratio": round(ratio, 2) if ratio != float("inf") else None,
        "bias": error.bias,
    }
    tf32 = bench.floor.classes.get(PrecisionClass.TF32, (0.0, 0.0))[0] * error.scale
    bf16 = bench.floor.classes.get(PrecisionClass.BF16, (0.0, 0.0))[0] * error.scale
    measured = f"RMS error {error.rms:.3g} against {reference.rms:.3g} of the reference"
    if tf32 and 1.8 * tf32 < error.rms and (error.rms < 4.5 * tf32 or is_truncated(error.bias, error.rms, error.scale)):
        summary = f"{measured}: {error.rms / tf32:.1f} times that of rounded TF32, so operands look truncated"
        return observe("tf32_truncated", summary, **facts)
    if tf32 and error.rms <= 1.8 * tf32:
        return observe("tf32_like", f"{measured}: what operands of 10 mantissa bits (TF32, fp16) give", **facts)
    if bf16 and error.rms <= 2.0 * bf16:
        return observe("bf16_like", f"{measured}: what bf16 operands give ({bf16:.3g})", **facts)
    return observe("reduced_precision", measured, **facts)
