import pytest

from agent.budget import Budget, Limits
from agent.stops import Abandoned, Stop, StopReason


def stopped(budget: Budget) -> StopReason | None:
    try:
        budget.check()
    except Stop as stop:
        return stop.reason
    return None


def test_turns_are_counted_to_the_limit():
    budget = Budget(Limits(max_turns=2))
    budget.spend_turn(None, 10)
    assert (budget.turns_left, stopped(budget)) == (1, None)
    budget.spend_turn(None, 10)
    assert (budget.turns_left, stopped(budget)) == (0, StopReason.TURNS)


def test_what_earlier_processes_spent_counts():
    assert stopped(Budget(Limits(max_turns=5), turns=5)) is StopReason.TURNS
    assert stopped(Budget(Limits(max_minutes=1), seconds=61)) is StopReason.MINUTES
    assert stopped(Budget(Limits(max_cost=1.0), cost=1.5)) is StopReason.COST


def test_a_run_goes_on_under_a_larger_limit():
    assert stopped(Budget(Limits(max_turns=6), turns=5)) is None


def test_costs_add_up():
    budget = Budget(Limits(max_cost=1.0))
    budget.spend_turn(0.6, 10)
    assert budget.cost_left == pytest.approx(0.4)
    budget.spend_turn(0.6, 10)
    assert stopped(budget) is StopReason.COST


def test_without_limits_nothing_is_left_to_say():
    budget = Budget(Limits())
    assert (budget.minutes_left, budget.cost_left) == (None, None)


def test_a_cost_limit_that_cannot_be_kept_is_not_silently_dropped():
    with pytest.raises(Abandoned, match="price of this model is not known"):
        Budget(Limits(max_cost=1.0)).spend_turn(None, 100)


def test_replies_that_cost_nothing_by_nature_keep_a_cost_limit():
    Budget(Limits(max_cost=1.0)).spend_turn(None, None)
