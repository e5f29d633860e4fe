"""New values for every timed call: drawn as the problem draws them, or, where that takes long, mixed from some draws.

A draw keeps what the problem's inputs have in common: offsets ascend, a second input resembles the first. Mixing is
only for problems with one input, of values that are not tied to each other, whose draws would take most of a timing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from tools.judge import variants
from tools.judge.inputs import OWN, put_outlier
from tools.judge.mixing import exchange
from tools.judge.slots import MOST_IN_ROW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.judge.bench import Bench
    from tools.judge.domain import Invariant

QUICK_DRAW_SECONDS = 0.06
DRAWING_SECONDS = 0.12
"""So long may drawing the inputs of a row of calls take."""

POOL = 4
POOL_BYTES = {"cpu": 1 << 30, "cuda": 16 << 30}
FIRST_SEED = 1100
FEW = 100_000
"""Seeds of timed calls do not reach those of anything else."""

OUTLIER_SHARE = 0.5


@dataclass(frozen=True)
class Sets:
    """The inputs of the calls of a row, by number; `outliers` are the numbers of those that hold one."""

    make: Callable[[int], list[torch.Tensor]]
    outliers: frozenset[int]

    def __call__(self, number: int) -> list[torch.Tensor]:
        """The same each time, if need be drawn once more."""
        return self.make(number)


class FreshInputs:
    """Inputs of timed calls. With `outlier`, which is for outputs that sum a lot up, one element outweighs the others
    in about every other call, so that no call may leave any out. In the others outputs are held to the precision of a
    check, which such an element would hide the lack of."""

    def __init__(self, bench: Bench, *, outlier: bool) -> None:
        self._bench = bench
        self._random = random.Random(bench.seed_of(1004))
        self._generator = torch.Generator(bench.device).manual_seed(bench.seed_of(1000) % (2**31))
        self._drawn = 0
        first = bench.trial(OWN, 0)
        self.spec = first.spec
        # Of these single values may be others without the whole making no sense.
        loose = [i for i, t in enumerate(first.tensors) if _loose(t, bench.domain[i])]
        self._outliers = [i for i in loose if outlier and variants.takes_outlier(bench, i)]
        mixed = bench.problem.draw_seconds > QUICK_DRAW_SECONDS and len(first.tensors) == len(loose) == 1
        size = sum(t.nbytes for t in first.tensors)
        most = max(2, min(POOL, POOL_BYTES[bench.device] // max(size, 1)))
        self._pool = [self._draw() for _ in range(most)] if mixed else []
        self.has_outlier = False
        """Whether the values made last hold one."""

        self._put: tuple[torch.Tensor, tuple[int, ...], float] | None = None

    def next(self) -> list[torch.Tensor]:
        """Values never seen before."""
        found = self._plain()
        self.has_outlier = self._takes_outlier()
        if self.has_outlier:
            which = found[self._random.choice(self._outliers)]
            self._put = which, *put_outlier(which, self._generator, None)
        return found

    def several(self, count: int) -> Sets:
        """So many sets of values never seen before."""
        self._restore()
        chosen = {i: self._random.choice(self._outliers) for i in range(count) if self._takes_outlier()}
        seeds = [self._random.getrandbits(31) for _ in range(count)]
        numbers = [] if self._pool else [self._number() for _ in range(count)]

        def make(i: int) -> list[torch.Tensor]:
            found = _copies(self._plain()) if self._pool else self._numbered(numbers[i])
            if i in chosen:
                # A copy: some problems give the same tensor each time.
                found[chosen[i]] = found[chosen[i]].clone(memory_format=torch.preserve_format)
                put_outlier(found[chosen[i]], torch.Generator(self._bench.device).manual_seed(seeds[i]), None)
            return found

        if self._bench.device == "cuda" and not self._pool:  # there may be no room for all of them
            return Sets(make, frozenset(chosen))
        kept = [make(i) for i in range(count)]
        return Sets(lambda i: kept[i], frozenset(chosen))

    @property
    def most(self) -> int:
        """How many sets are had in little time."""
        if self._pool:
            return MOST_IN_ROW
        return max(1, min(int(DRAWING_SECONDS / max(self._bench.problem.draw_seconds, 1e-6)), MOST_IN_ROW))

    def _takes_outlier(self) -> bool:
        return bool(self._outliers) and self._random.random() < OUTLIER_SHARE

    def _plain(self) -> list[torch.Tensor]:
        self._restore()
        return self._mix() if self._pool else self._draw()

    def _restore(self) -> None:
        """Take the outlier away: others may be made of the same tensor."""
        if self._put is not None:
            tensor, index, before = self._put
            tensor[index] = before
        self._put, self.has_outlier = None, False

    def _draw(self) -> list[torch.Tensor]:
        return self._numbered(self._number())

    def _number(self) -> int:
        self._drawn += 1
        return self._drawn

    def _numbered(self, number: int) -> list[torch.Tensor]:
        return self._bench.problem.inputs(self._bench.seed_of(FIRST_SEED + FEW * number))[1]

    def _mix(self) -> list[torch.Tensor]:
        chosen, donor = self._random.sample(range(len(self._pool)), 2)
        for target, other in zip(self._pool[chosen], self._pool[donor], strict=True):
            exchange(target, other, self._random)
        return self._pool[chosen]


def _copies(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [t.clone(memory_format=torch.preserve_format) for t in tensors]


def _loose(tensor: torch.Tensor, invariant: Invariant | None) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0 and (invariant is None or not invariant.structured)
