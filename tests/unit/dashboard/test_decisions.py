"""Explanations of thousands of seeds: shown in numbers, and a page at a time."""

from typing import Any

from gardenbus.dashboard.domain.decisions import FIRST_SEEDS, MOST_RANKED, MOST_REASONS, outline_of, rejections_by
from tests.support.dashboards import Dashboard


def an_explanation(ranked: int = 0, **rejected: list[str]) -> dict[str, Any]:
    """An explanation with so many seeds in the ranking, and for each rule the details of the seeds that it rejects."""
    ranking = [{"seed": f"seed-{number:05}", "rank": number + 1} for number in range(ranked)]
    rejections = [
        {"seed": f"{rule}-{number:05}", "rule": rule, "detail": detail}
        for rule, details in rejected.items()
        for number, detail in enumerate(details)
    ]
    return {"shoot": "garden-dev/a", "considered": {"strategy": "x", "ranking": ranking, "rejections": rejections}}


def test_seeds_are_counted_by_filter_and_by_reason_the_most_frequent_first() -> None:
    explained = an_explanation(usable=["late"] * 30 + ["gone"] * 4 + ["late"], taints=[f"taint {n}" for n in range(9)])
    groups = {group.rule: group for group in outline_of(explained)["considered"]["rejected"]}
    assert {rule: group.total for rule, group in groups.items()} == {"usable": 35, "taints": 9}
    assert [(each.detail, each.seeds) for each in groups["usable"].reasons] == [("late", 31), ("gone", 4)]
    assert list(groups["taints"].reasons) == [], "each seed has a reason of its own, which stands beside it"
    assert len(groups["usable"].items) == FIRST_SEEDS
    many = an_explanation(zones=["a", "b", "c", "d", "e", "f", "f"])
    assert len(outline_of(many)["considered"]["rejected"][0].reasons) == MOST_REASONS


def test_what_is_shown_does_not_grow_with_the_number_of_seeds() -> None:
    considered = outline_of(an_explanation(ranked=10_000, usable=["late"] * 10_000))["considered"]
    assert (len(considered["ranking"]), considered["ranked"]) == (MOST_RANKED, 10_000)
    assert "rejections" not in considered
    assert considered["strategy"] == "x"


def test_what_nobody_explains_stays_as_it_is() -> None:
    undecided = {"shoot": "garden-dev/a", "considered": None, "unanswered": "no scheduler answers"}
    assert outline_of(undecided) == undecided


async def test_the_seeds_of_one_filter_come_in_pages() -> None:
    dashboard = Dashboard()
    await dashboard.serve_api()
    explained = an_explanation(3, usable=["late"] * 45, taints=["x"])
    dashboard.replies["explain.shoot.garden-dev.a"] = explained
    outline = (await dashboard.get("/api/explain/garden-dev/a")).json()["considered"]
    assert [(group["rule"], group["total"]) for group in outline["rejected"]] == [("usable", 45), ("taints", 1)]
    seen = list(outline["rejected"][0]["items"])
    while len(seen) < 45:
        path = f"/api/explain/garden-dev/a/rejections?rule=usable&offset={len(seen)}&limit=20"
        page = (await dashboard.get(path)).json()
        assert (page["total"], page["offset"]) == (45, len(seen))
        seen += page["items"]
    assert seen == rejections_by(explained, "usable")
    assert (await dashboard.get("/api/explain/garden-dev/a/rejections?rule=unknown")).json()["items"] == []
    assert (await dashboard.get("/api/explain/garden-dev/a/rejections?limit=0")).status == 400
