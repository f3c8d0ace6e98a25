"""What browsers are answered, and what they are refused."""

from typing import Any
from urllib.parse import quote

import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.dashboard.settings import DashboardSettings, load_settings
from gardenbus.dashboard.web.security import host_name
from tests.support.builders import a_seed, a_shoot
from tests.support.dashboards import TOKEN, Dashboard

SAME: dict[str, Any] = {"origin": "http://127.0.0.1:8080", "X_Gardenbus_Token": TOKEN}


async def writable() -> Dashboard:
    dashboard = Dashboard(DashboardSettings(dashboard_allow_writes=True))
    await dashboard.serve_api()
    return dashboard


async def test_lists_come_from_memory_and_nobody_is_asked():
    dashboard = Dashboard()
    dashboard.put(a_seed(), a_shoot("apollo", spec={"seedName": "aws-eu1"}), a_shoot("artemis"))
    assert (await dashboard.get("/api/landscape")).json()["summary"]["shoots"] == 2
    [seed] = (await dashboard.get("/api/seeds")).json()["items"]
    assert (seed["name"], seed["used"], seed["capacity"]) == ("aws-eu1", 1, 250)
    page = (await dashboard.get("/api/shoots?sort=-name&limit=1")).json()
    assert (page["total"], page["items"][0]["name"]) == (2, "artemis")
    found = (await dashboard.get("/api/search?q=apo")).json()["items"]
    assert found == [{"kind": "shoot", "namespace": "garden-dev", "name": "apollo"}]


async def test_a_query_that_makes_no_sense_is_answered_with_why():
    response = await Dashboard().get("/api/shoots?sort=colour")
    assert response.status == 400
    assert "colour" in response.json()["error"]["message"]


async def test_an_object_comes_with_what_is_around_it_and_without_secrets():
    dashboard = await writable()
    dashboard.put(a_seed())
    dashboard.replies["get.shoot.garden-dev.apollo"] = a_shoot("apollo", spec={"seedName": "aws-eu1"})
    dashboard.replies["get.secret.garden.backup"] = {"kind": "Secret", "metadata": {}, "data": {"key": "aGlkZGVu"}}
    shown = (await dashboard.get("/api/object/shoot/garden-dev/apollo")).json()
    assert {"role": "seed", "kind": "seed", "namespace": "", "name": "aws-eu1", "known": True} in shown["related"]
    assert shown["yaml"].startswith("apiVersion:")
    secret = await dashboard.get("/api/object/secret/garden/backup")
    assert b"aGlkZGVu" not in secret.body
    assert (await dashboard.get("/api/object/shoot/garden-dev/nobody")).status == 404


async def test_an_address_at_which_there_is_nothing_says_so_and_leads_back():
    page = await Dashboard().get("/landscapes/one")
    assert page.status == 404
    assert b'<a href="/">' in page.body
    response = await Dashboard().get("/api/colours")
    assert (response.status, response.json()["error"]["code"]) == (404, 404)


async def test_every_answer_carries_the_policy_and_allows_no_script_but_ours():
    response = await Dashboard().get("/")
    assert response.status == 200
    policy = response.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert b"http://" not in response.body.replace(b"http://www.w3.org", b"")


async def test_a_file_that_the_browser_has_is_not_sent_again():
    dashboard = Dashboard()
    first = await dashboard.get("/")
    again = await dashboard.get("/", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert (await dashboard.get("/static/../settings.py")).status == 404


async def test_a_foreign_name_is_not_answered():
    assert (await Dashboard().get("/api/seeds", host="evil.example.org")).status == 421
    named = Dashboard(DashboardSettings(dashboard_allowed_hosts="Garden.example.org"))
    assert (await named.get("/api/seeds", host="garden.example.org:443")).status == 200
    assert host_name("[::1]:80") == "[::1]"


async def test_nothing_can_be_changed_unless_that_was_allowed():
    dashboard = Dashboard()
    await dashboard.serve_api()
    for method, path in (
        ("POST", "/api/actions/cordon/seed/_/aws-eu1"),
        ("DELETE", "/api/object/shoot/garden-dev/apollo"),
    ):
        assert (await dashboard.send(method, path, {"confirm": "apollo"}, **SAME)).status == 403
    assert dashboard.requests == []
    assert (await dashboard.get("/api/session")).json()["token"] is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:8080"},
        SAME | {"X_Gardenbus_Token": "guessed"},
        SAME | {"origin": "http://evil.example.org"},
        SAME | {"origin": "null"},
        SAME | {"sec_fetch_site": "cross-site"},
    ],
)
async def test_a_foreign_page_changes_nothing(headers: dict[str, str]):
    dashboard = await writable()
    response = await dashboard.send("POST", "/api/actions/cordon/seed/_/aws-eu1", **headers)
    assert response.status == 403
    assert dashboard.requests == []


async def test_a_seed_is_cordoned_as_the_user_dashboard():
    dashboard = await writable()
    dashboard.replies |= {"patch.seed._.aws-eu1": {}, "get.seed._.aws-eu1": a_seed()}
    body = {"shown": ["it takes no new shoots; those that are on it stay"]}
    assert (await dashboard.send("POST", "/api/actions/cordon/seed/_/aws-eu1", body, **SAME)).status == 200
    _, (subject, patch), _ = dashboard.requests
    assert subject == "garden.as.dashboard.api.patch.seed._.aws-eu1"
    assert patch["spec"] == {"settings": {"scheduling": {"visible": False}}}


async def test_a_shoot_is_deleted_only_by_its_name():
    dashboard = await writable()
    dashboard.replies |= {"patch.shoot.garden-dev.apollo": {}, "delete.shoot.garden-dev.apollo": {}}
    path = "/api/object/shoot/garden-dev/apollo"
    assert (await dashboard.send("DELETE", path, {"confirm": "appollo"}, **SAME)).status == 400
    assert dashboard.requests == []
    assert (await dashboard.send("DELETE", path, {"confirm": "apollo"}, **SAME)).status == 200
    assert [subject.rpartition("api.")[2] for subject, _ in dashboard.requests] == [
        "patch.shoot.garden-dev.apollo",
        "delete.shoot.garden-dev.apollo",
    ]


async def test_a_shoot_that_waits_is_tried_by_its_scheduler_and_a_failed_one_by_its_gardenlet():
    dashboard = await writable()
    failed = a_shoot("b", spec={"seedName": "s"}, status={"lastOperation": {"state": "Failed"}})
    dashboard.put(a_shoot("a"), failed)
    dashboard.replies |= {"retry.shoot.garden-dev.a": {}, "get.shoot.garden-dev.b": failed}
    dashboard.replies["patch.shoot.garden-dev.b"] = {}
    assert (await dashboard.send("POST", "/api/shoots/garden-dev/a/retry", **SAME)).status == 200
    assert (await dashboard.send("POST", "/api/shoots/garden-dev/b/retry", **SAME)).status == 200
    assert dashboard.requests[-1][1] == {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}


def test_settings_come_from_the_environment_and_one_option():
    assert not load_settings([], {}).dashboard_allow_writes
    assert load_settings(["--allow-writes"], {}).dashboard_allow_writes
    assert load_settings([], {"GARDENBUS_DASHBOARD_ALLOW_WRITES": "true"}).dashboard_allow_writes
    with pytest.raises(SettingsInvalid):
        load_settings(["--what"], {})


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 19, "٣"], ids=["5000", "19", "Arabic"])
@pytest.mark.parametrize(
    "address",
    [
        "/api/waiting?offset=%s",
        "/api/waiting?limit=%s",
        "/api/rejected?before=%s",
        "/api/rejected/%s",
    ],
)
async def test_a_number_that_is_too_long_to_be_one_is_a_bad_request(address: str, digits: str) -> None:
    assert (await Dashboard().get(address % quote(digits))).status == 400


async def test_a_rejected_message_of_a_number_too_long_to_be_one_is_not_sent_again() -> None:
    response = await (await writable()).send("POST", f"/api/rejected/{'9' * 5000}/replay", **SAME)
    assert response.status == 400
