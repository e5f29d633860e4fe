"""Which weight of a candidate is which of the reference's: by name, by value, by shape, and when nothing is sure."""

from __future__ import annotations

import torch

from tools.judge.weights import Mapping, entries, match
from tools.worker.trees import digest

NOTHING: tuple[dict[str, str], dict[str, str]] = ({}, {})


def held(reference: torch.nn.Module, candidate: torch.nn.Module) -> Mapping:
    """As a session does it: digests of the values on both sides."""
    ours, theirs = reference.state_dict(), candidate.state_dict()
    digests = ({n: digest(v) for n, v in ours.items()}, {n: digest(v) for n, v in theirs.items()})
    return match(entries(reference), entries(candidate), digests)


class Weights(torch.nn.Module):
    """A module whose parameters are those given, by name."""

    def __init__(self, **parameters: torch.Tensor) -> None:
        super().__init__()
        for name, value in parameters.items():
            self.register_parameter(name, torch.nn.Parameter(value))


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_entries_tell_name_dtype_and_shape_of_parameters_and_buffers():
    norm = torch.nn.BatchNorm1d(3)
    assert entries(norm) == [
        ("weight", "float32", (3,)),
        ("bias", "float32", (3,)),
        ("running_mean", "float32", (3,)),
        ("running_var", "float32", (3,)),
        ("num_batches_tracked", "int64", ()),
    ]


def test_the_same_names_are_copied_by_name_whatever_their_order():
    a, b = drawn(3, 4), drawn(4, seed=1)
    found = held(Weights(a=a, b=b), Weights(b=drawn(4, seed=2), a=drawn(3, 4, seed=3)))
    assert found.complete
    assert found.pairs == [("a", "a"), ("b", "b")]
    assert found.how == "2 of 2 weights copied by name"


def test_other_names_are_told_by_their_values_though_shapes_are_the_same():
    a, b = drawn(4, 4), drawn(4, 4, seed=1)
    found = held(Weights(first=a, second=b), Weights(u=b.clone(), v=a.clone()))
    assert found.complete
    assert found.pairs == [("v", "first"), ("u", "second")]
    assert found.how == "0 of 2 weights copied by name, 2 by value or shape (their names differ)"


def test_what_is_left_is_told_by_a_shape_that_occurs_once():
    found = held(Weights(w=drawn(4, 3), b=drawn(4)), Weights(matrix=drawn(4, 3, seed=5), b=drawn(4)))
    assert found.complete
    assert sorted(found.pairs) == [("b", "b"), ("matrix", "w")]


def test_a_shape_that_occurs_twice_with_other_values_is_not_guessed():
    found = held(Weights(a=drawn(4), b=drawn(4, seed=1)), Weights(u=drawn(4, seed=2), v=drawn(4, seed=3)))
    assert not found.complete
    assert found.pairs == []
    assert found.how == "2 of 2 weights have no counterpart: judged on seeded construction alone"


def test_equal_values_are_not_guessed_either():
    """Two gains of ones: each may be either."""
    found = held(Weights(a=torch.ones(4), b=torch.ones(4)), Weights(u=torch.ones(4), v=torch.ones(4)))
    assert not found.complete


def test_a_name_with_another_shape_is_another_weight():
    reference = Weights(weight=drawn(4, 3))
    assert not held(reference, Weights(weight=drawn(3, 4))).complete
    other_dtype = Weights(weight=drawn(4, 3).double())
    assert not held(reference, other_dtype).complete


def test_more_weights_than_the_reference_has_do_no_harm():
    found = held(Weights(a=drawn(4)), Weights(a=drawn(4), scratch=drawn(4, seed=1)))
    assert found.complete
    assert found.pairs == [("a", "a")]


def test_fewer_weights_than_the_reference_has_are_not_all():
    found = held(Weights(a=drawn(4), b=drawn(3)), Weights(a=drawn(4)))
    assert not found.complete
    assert "1 of 2 weights have no counterpart" in found.how


def test_a_problem_without_weights():
    assert match([], [("scratch", "float32", (3,))], NOTHING) == Mapping(
        [], "the problem has no weights", complete=True
    )


def test_what_a_candidate_claims_of_its_values_can_only_cost_itself():
    """Digests come from the candidate: a false one leads to a wrong copy, never to none of the reference's."""
    reference = Weights(a=drawn(4), b=drawn(4, seed=1))
    ours = {n: digest(v) for n, v in reference.state_dict().items()}
    swapped = {"u": ours["b"], "v": ours["a"]}
    found = match(entries(reference), [("u", "float32", (4,)), ("v", "float32", (4,))], (ours, swapped))
    assert found.complete
    assert found.pairs == [("v", "a"), ("u", "b")]
    forged = match(entries(reference), [("u", "float32", (4,)), ("v", "float32", (4,))], (ours, {"u": "x", "v": "x"}))
    assert not forged.complete
