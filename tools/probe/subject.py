"""In an untrusted process: one candidate with the problem's own inputs, to be looked at and never judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tools.judge.reference import Reference
from tools.worker.loader import BuiltLibraries, construct, run_module
from tools.worker.trees import flatten, unflatten


@dataclass(frozen=True)
class Subject:
    """`call` runs the candidate on tensors in the places of the problem's `inputs` and returns its output tensors.

    `bytes_touched` are those of the inputs, of the parameters and of one call's outputs: the least that a call moves.
    """

    call: Callable[[list[torch.Tensor]], list[torch.Tensor]]
    inputs: list[torch.Tensor]
    libraries: BuiltLibraries
    bytes_touched: int

    def forward(self) -> list[torch.Tensor]:
        """One call on the same inputs each time."""
        return self.call(self.inputs)

    def copies(self) -> list[torch.Tensor]:
        """The inputs anew, for a candidate that writes to them."""
        return [t.clone() for t in self.inputs]


def load(args: dict[str, Any]) -> Subject:
    """Import the candidate, construct it under `args["seed"]` and draw inputs. Runs the candidate once.

    `args` are those of `tools.probe.host.Host.arguments`. Raises whatever the candidate raises.
    """
    device, seed = str(args["device"]), int(args["seed"])
    problem = Reference(args["problem"], args["size"], device)
    spec, tensors = problem.inputs(seed)
    libraries = BuiltLibraries(args["modules"])
    libraries.install()
    module = run_module(args["source"], libraries)
    init_spec, init_tensors = flatten(problem.init_args)
    init_args = unflatten(init_spec, [t.to(device) for t in init_tensors])
    model = construct(module, "ModelNew", init_args, seed, device)

    def call(given: list[torch.Tensor]) -> list[torch.Tensor]:
        return flatten(model(*unflatten(spec, given)))[1]

    outputs = call([t.clone() for t in tensors])
    if device == "cuda":
        torch.cuda.synchronize()
    touched = [*tensors, *model.state_dict().values(), *outputs]
    return Subject(
        call=call,
        inputs=tensors,
        libraries=libraries,
        bytes_touched=sum(t.nbytes for t in touched),
    )
