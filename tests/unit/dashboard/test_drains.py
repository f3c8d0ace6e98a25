"""Drain of a seed from its page: shown first as the scheduler plans it, begun once, and an Event."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.moves import ExplainedDrain, Immovable, Move
from gardenbus.common.errors import Conflict
from gardenbus.dashboard.domain.explained_drain import (
    outcome_words,
    shown_drain,
)
from gardenbus.dashboard.settings import DashboardSettings
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.dashboards import TOKEN, Dashboard

SAME: dict[str, Any] = {"origin": "http://127.0.0.1:8080", "X_Gardenbus_Token": TOKEN}
DRAIN = "/api/actions/drain/seed/_/aws-eu1"
CORDONED: Document = {"spec": {"settings": {"scheduling": {"visible": False}}}}


def a_move(name: str, target: str = "aws-eu2") -> dict[str, str]:
    return {"namespace": "garden-dev", "name": name, "source": "aws-eu1", "target": target}


async def writable(*moves: dict[str, str], seed: Document | None = None, **plan: Any) -> Dashboard:
    dashboard = Dashboard(DashboardSettings(dashboard_allow_writes=True))
    await dashboard.serve_api()
    dashboard.replies |= {
        "get.seed._.aws-eu1": seed or a_seed(),
        "patch.seed._.aws-eu1": {},
        "event.seed._.aws-eu1": {},
        "bind": {},
        "explain-drain.aws-eu1": {"seed": "aws-eu1", "shoots": len(moves), "moves": moves, "stays": [], **plan},
    }
    for move in moves:
        shoot = a_shoot(move["name"], spec={"seedName": "aws-eu1"}, metadata={"resourceVersion": "7"})
        dashboard.replies[f"get.shoot.garden-dev.{move['name']}"] = shoot
    return dashboard


def tails(dashboard: Dashboard) -> list[str]:
    return [subject.partition("api.")[2] for subject, _ in dashboard.requests]


async def test_the_plan_of_the_scheduler_is_shown_first_and_nothing_is_changed():
    stays = [
        {"namespace": "garden-dev", "name": "stuck", "reason": "no room", "waits": False},
        {"namespace": "garden-dev", "name": "moving", "reason": "it is on its way", "waits": True},
    ]
    moves = (a_move("a"), a_move("b", "aws-eu3"), a_move("c"))
    dashboard = await writable(*moves, stays=stays, notPlanned=4)
    shown = (await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)).json()
    assert shown["shown"] == ["it takes no new shoots", "3 shoots on it move to other seeds"]
    assert shown["does"] == [
        *shown["shown"],
        "as the scheduler would place them now: 2 to aws-eu2, 1 to aws-eu3",
        "garden-dev/stuck stays: no room",
        "1 shoot has an operation under way, and cannot move yet",
        "4 shoots more: drain it again once these have moved",
    ]
    assert tails(dashboard) == ["get.seed._.aws-eu1", "explain-drain.aws-eu1"]


async def test_it_cordons_binds_each_shoot_as_it_was_seen_and_is_one_event_by_the_persons_name():
    dashboard = await writable(a_move("a"), a_move("b"))
    shown = (await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)).json()["shown"]
    dashboard.requests.clear()
    done = await dashboard.send("POST", DRAIN, {"shown": shown}, **SAME)
    assert done.json()["words"] == "2 shoots are on the way to other seeds"
    assert tails(dashboard)[2:] == [
        "patch.seed._.aws-eu1",
        "event.seed._.aws-eu1",
        "get.shoot.garden-dev.a",
        "bind",
        "get.shoot.garden-dev.b",
        "bind",
    ]
    event, bound = dashboard.requests[3][1], dashboard.requests[5][1]
    assert event == {"reason": "Draining", "message": "dashboard drains it: 2 shoots to other seeds, on the dashboard"}
    assert bound == {"namespace": "garden-dev", "name": "a", "seed": "aws-eu2", "resourceVersion": "7"}


async def test_a_shoot_that_has_left_meanwhile_stays_where_it_is_and_no_event_is_of_nothing():
    dashboard = await writable(a_move("a"), seed=merged(a_seed(), CORDONED))
    dashboard.replies["get.shoot.garden-dev.a"] = a_shoot("a", spec={"seedName": "aws-eu3"})
    shown = (await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)).json()["shown"]
    done = await dashboard.send("POST", DRAIN, {"shown": shown}, **SAME)
    assert done.json()["words"] == "0 shoots are on the way to other seeds"
    assert not {"bind", "event.seed._.aws-eu1", "patch.seed._.aws-eu1"} & set(tails(dashboard))


async def test_a_shoot_that_cannot_be_bound_is_named_and_the_others_go_on():
    dashboard = await writable(a_move("a"), a_move("b"))
    del dashboard.replies["bind"]
    shown = (await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)).json()["shown"]
    done = (await dashboard.send("POST", DRAIN, {"shown": shown}, **SAME)).json()
    assert (
        done["words"] == "0 shoots are on the way to other seeds; not moved: garden-dev/a (bind not found), and 1 more"
    )


async def test_who_presses_twice_or_saw_another_plan_changes_nothing():
    dashboard = await writable(seed=merged(a_seed(), CORDONED))
    second = await dashboard.send("POST", DRAIN, {"shown": ["it takes no new shoots"]}, **SAME)
    assert (second.status, second.json()["error"]["reason"]) == (409, "Conflict")
    assert "it is cordoned, and it has no shoots" in second.json()["error"]["message"]
    unseen = await (await writable(a_move("a"))).send("POST", DRAIN, {}, **SAME)
    assert "has changed meanwhile" in unseen.json()["error"]["message"]
    assert not {"bind", "patch.seed._.aws-eu1"} & set(tails(dashboard))


async def test_a_drain_is_not_there_where_changes_are_not_allowed():
    dashboard = Dashboard()
    await dashboard.serve_api()
    assert (await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)).status == 403
    assert dashboard.requests == []


async def test_a_plan_that_cannot_be_read_is_an_error_and_nothing_is_changed():
    dashboard = await writable(a_move("a"))
    dashboard.replies["explain-drain.aws-eu1"] = {"moves": "many"}
    response = await dashboard.send("POST", DRAIN, {"dryRun": True}, **SAME)
    assert (response.status, response.json()["error"]["reason"]) == (503, "ServiceUnavailable")


def test_a_seed_whose_gardenlet_is_silent_is_not_drained_and_one_where_all_wait_says_so():
    move = Move("garden-dev", "a", "aws-eu1", "aws-eu2")
    with pytest.raises(Conflict, match="cannot hand its shoots over: its condition GardenletReady is Unknown"):
        shown_drain(
            ExplainedDrain("aws-eu1", "its condition GardenletReady is Unknown", shoots=1, moves=[move]), is_open=True
        )
    waits = ExplainedDrain("aws-eu1", shoots=1, stays=[Immovable("garden-dev", "a", "it moves", waits=True)])
    with pytest.raises(Conflict, match="none of its shoots can move now: 1 shoot has an operation under way"):
        shown_drain(waits, is_open=False)
    assert shown_drain(ExplainedDrain("aws-eu1"), is_open=True).does == ["it takes no new shoots"]


def test_many_targets_and_many_that_stay_are_counted():
    moves = [Move("garden-dev", f"s{n}", "aws-eu1", f"t{n}") for n in range(7)]
    stays = [Immovable("garden-dev", f"x{n}", "no room" * 100) for n in range(6)]
    follows = shown_drain(ExplainedDrain("aws-eu1", shoots=13, moves=moves, stays=stays), is_open=False).follows
    assert follows[0].endswith("1 to t4 and 2 more seeds")
    assert follows[-1] == "1 shoot more stays"
    assert follows[1].endswith("…")
    assert max(map(len, follows)) < 200
    assert outcome_words(1, []) == "1 shoot is on the way to other seeds"
