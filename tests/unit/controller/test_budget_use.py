"""What users hold of their budgets: counted by services, reported in STATS, shown for a landscape."""

from typing import Any

from prometheus_client import REGISTRY

from gardenbus.cli.diagnostics.budget_use import uses_of
from gardenbus.common.api.budgets import Budget, LimitUse
from gardenbus.common.api.document import Document
from gardenbus.common.controller.budget_use import MOST_USES, BudgetUse


def budget_of(user: str) -> Budget:
    return Budget(watches=4 if user == "ann" else 16)


def a_response(*uses: LimitUse, prefix: str = "garden") -> Document:
    budgets = [{"user": use.user, "limit": use.limit, "held": use.held, "most": use.most} for use in uses]
    return {"metadata": {"prefix": prefix}, "data": {"budgets": budgets}}


def test_the_highest_shares_come_first_and_are_read_when_somebody_looks() -> None:
    use, watches, sessions = BudgetUse(budget_of), {"ann": 1, "bob": 2}, {"bob": 20}
    use.count("watches", lambda: watches)
    use.count("sessions", lambda: sessions)
    watches["ann"] = 3
    assert use.report()["budgets"] == [
        {"user": "bob", "limit": "sessions", "held": 20, "most": 20},
        {"user": "ann", "limit": "watches", "held": 3, "most": 4},
        {"user": "bob", "limit": "watches", "held": 2, "most": 16},
    ]
    assert REGISTRY.get_sample_value("gardenbus_budget_used_ratio", {"limit": "watches"}) == 0.75
    watches.clear()
    assert REGISTRY.get_sample_value("gardenbus_budget_used_ratio", {"limit": "watches"}) == 0.0


def test_what_is_held_may_be_compared_with_a_part_of_the_budget() -> None:
    use = BudgetUse(budget_of)
    use.count("waitingBytes", lambda: {"ann": 7.9}, lambda budget: budget.waiting_bytes // 4)
    assert use.report()["budgets"] == [{"user": "ann", "limit": "waitingBytes", "held": 7, "most": 64 * 2**20}]


def test_a_report_has_a_bound_whatever_the_number_of_users() -> None:
    use, held = BudgetUse(budget_of), {f"u{number}": 1 for number in range(2 * MOST_USES)}
    use.count("watches", lambda: {**held, "ann": 1})
    budgets: list[Any] = use.report()["budgets"]
    assert (len(budgets), budgets[0]["user"]) == (MOST_USES, "ann")


def test_of_replicas_the_one_counts_where_the_share_is_highest_and_of_landscapes_the_own() -> None:
    few, many = LimitUse("ann", "watches", 1, 4), LimitUse("ann", "watches", 2, 4)
    sessions, foreign = LimitUse("bob", "sessions", 1, 20), LimitUse("eve", "watches", 16, 16)
    responses = [a_response(few), a_response(many, sessions), a_response(few), a_response(foreign, prefix="other")]
    assert uses_of([*responses, {"metadata": {"prefix": "garden"}}], "garden") == [many, sessions]


def test_reports_that_cannot_be_read_are_left_out() -> None:
    strange: list[Any] = [5, [7], [{"user": "ann"}], [{"user": "ann", "limit": "watches", "held": 1, "most": 0}]]
    responses = [{"metadata": {"prefix": "garden"}, "data": {"budgets": each}} for each in strange]
    assert uses_of(responses, "garden") == []
