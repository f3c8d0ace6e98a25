"""Actions: what they will do is shown first, they are done once, and stand in the Events."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest, Conflict
from gardenbus.dashboard.domain.actions import planned
from gardenbus.dashboard.settings import DashboardSettings
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.dashboards import TOKEN, Dashboard

SAME: dict[str, Any] = {"origin": "http://127.0.0.1:8080", "X_Gardenbus_Token": TOKEN}
CORDON = "/api/actions/cordon/seed/_/aws-eu1"


async def writable(seed: Document) -> Dashboard:
    dashboard = Dashboard(DashboardSettings(dashboard_allow_writes=True))
    await dashboard.serve_api()
    dashboard.put(seed, a_seed("aws-eu2", shoots="10"), a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    dashboard.replies |= {"get.seed._.aws-eu1": seed, "patch.seed._.aws-eu1": {}, "event.seed._.aws-eu1": {}}
    return dashboard


def tails(dashboard: Dashboard) -> list[str]:
    return [subject.partition("api.")[2] for subject, _ in dashboard.requests]


async def test_what_it_will_do_is_shown_first_and_nothing_is_recorded():
    dashboard = await writable(a_seed())
    shown = (await dashboard.send("POST", CORDON, {"dryRun": True}, **SAME)).json()
    assert shown["does"] == [
        "it takes no new shoots; those that are on it stay",
        "1 shoots are on it",
        "1 other seeds of aws/eu-west-1 are open, with 10 places left",
    ]
    assert tails(dashboard) == ["get.seed._.aws-eu1", "patch.seed._.aws-eu1"]


async def test_it_is_done_as_it_was_shown_and_is_an_event_by_the_persons_name():
    dashboard = await writable(a_seed())
    shown = (await dashboard.send("POST", CORDON, {"dryRun": True}, **SAME)).json()["shown"]
    assert (await dashboard.send("POST", CORDON, {"shown": shown}, **SAME)).status == 200
    event = dashboard.requests[-1][1]
    assert (event["reason"], event["message"]) == ("Cordoned", "dashboard cordons it, on the dashboard")


async def test_who_comes_second_is_not_heard_and_what_was_not_shown_is_not_done():
    cordoned = merged(a_seed(), {"spec": {"settings": {"scheduling": {"visible": False}}}})
    dashboard = await writable(cordoned)
    second = await dashboard.send("POST", CORDON, {"shown": ["it takes no new shoots"]}, **SAME)
    assert (second.status, second.json()["error"]["reason"]) == (409, "Conflict")
    assert "cordoned already" in second.json()["error"]["message"]
    unseen = await dashboard.send("POST", CORDON.replace("/cordon/", "/uncordon/"), {}, **SAME)
    assert "has changed meanwhile" in unseen.json()["error"]["message"]
    assert "patch.seed._.aws-eu1" not in tails(dashboard)


def test_an_annotation_is_set_changed_and_removed():
    shoot = a_shoot(metadata={"annotations": {"example.org/owner": "ann"}})
    changed = planned("annotate", "shoot", shoot, annotation="example.org/owner", value="bob")
    assert changed.does == ["sets the annotation example.org/owner to bob, which was ann"]
    removed = planned("annotate", "shoot", shoot, annotation="example.org/owner")
    assert removed.patch == {"metadata": {"annotations": {"example.org/owner": None}}}
    with pytest.raises(Conflict, match="is so already"):
        planned("annotate", "shoot", shoot, annotation="example.org/owner", value="ann")
    for wrong in ("", "no name", "/x", "a/b/c"):
        with pytest.raises(BadRequest, match="annotation: write its name"):
            planned("annotate", "shoot", shoot, annotation=wrong, value="x")


def test_a_deletion_is_confirmed_once_and_other_actions_are_none():
    assert planned("confirm-deletion", "shoot", a_shoot()).reason == "DeletionConfirmed"
    confirmed = a_shoot(metadata={"annotations": {"confirmation.gardener.cloud/deletion": "true"}})
    with pytest.raises(Conflict, match="confirmed already"):
        planned("confirm-deletion", "shoot", confirmed)
    for action, kind in (("cordon", "shoot"), ("explode", "seed")):
        with pytest.raises(BadRequest, match="no such action"):
            planned(action, kind, a_shoot())
