"""What people see in the dashboard: what the apiserver says that they may read, and nothing else."""

import asyncio
from typing import Any

import pytest

from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.web.views import IDLE_SECONDS
from gardenbus.diagnostics.login_keys import new_link
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.dashboards import Dashboard, HttpResponse, scope_of
from tests.support.manual_clock import ManualClock

KEY = b"k" * 64
URL = "http://127.0.0.1:8080"
GLOBAL = ["cloudprofile", "exposureclass", "seed"]
OWN: dict[str, Any] = {
    "role": "user",
    "kinds": GLOBAL,
    "namespaces": {"garden-dev": ["event", "shoot", "configmap"]},
    "projects": ["dev"],
}


def an_event(name: str, namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.1", "namespace": namespace},
        "involvedObject": {"kind": "Shoot", "namespace": namespace, "name": name},
        "type": "Normal",
        "reason": "Said",
        "message": f"about {name}",
        "count": 1,
    }


class Visited(Dashboard):
    """A dashboard with two projects, and sessions of people."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(DashboardSettings(**settings), key=KEY, clock=ManualClock())
        self.replies["readable"] = OWN
        self.streams: list[asyncio.Task[None]] = []
        self.put(a_seed("aws"), a_project("dev", "garden-dev"), a_project("prod", "garden-prod"))
        for namespace, name in (("garden-dev", "apollo"), ("garden-prod", "zeus")):
            self.put(a_shoot(name, namespace, spec={"seedName": "aws"}))
            waiting = {
                "lastOperation": {"type": "Create", "state": "Pending", "description": "0/1 seeds available: 1 is full"}
            }
            self.put(a_shoot(f"{name}-waits", namespace, status=waiting))
            self.cache.add_event(an_event(name, namespace))
        self.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note", "namespace": "garden-dev"}})
        self.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note", "namespace": "garden-prod"}})
        self.put(
            {"kind": "ManagedSeedSet", "metadata": {"name": "set", "namespace": "garden"}, "spec": {"replicas": 1}}
        )
        self.cache.mark_synced()

    async def visit(self, user: str, path: str, *, method: str = "GET", body: object = None) -> HttpResponse:
        response = await self.send("POST", "/api/login", {"token": self.link(user)}, origin=URL)
        assert response.status == 200, response.body
        cookie = {"cookie": response.headers["set-cookie"].partition(";")[0]}
        if method == "GET":
            return await self.get(path, **cookie)
        session = (await self.get("/api/session", **cookie)).json()
        return await self.send(method, path, body, origin=URL, x_gardenbus_token=session["token"], **cookie)

    def turn(self, seconds: float) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    def link(self, user: str) -> str:
        return new_link(KEY, self.clock, URL, user).partition("#")[2]


async def visited(**settings: Any) -> Visited:
    found = Visited(**settings)
    await found.serve_api()
    await found.follow_sessions()
    return found


PATHS = (
    "/api/landscape", "/api/places", "/api/seeds", "/api/shoots", "/api/shoots?seed=aws", "/api/shoots?search=z",
    "/api/growth", "/api/events", "/api/search?q=garden", "/api/search?q=zeus", "/api/search?q=note",
    "/api/search?q=prod", "/api/waiting", "/api/fleet", "/api/placements", "/api/clusters",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_no_list_has_anything_of_another_project(path: str):
    dashboard = await visited()
    response = await dashboard.visit("vera", path)
    assert response.status == 200
    for foreign in (b"zeus", b"prod"):
        assert foreign not in response.body.replace(b'"provider', b"")


async def test_what_is_ones_own_is_there_as_for_everybody():
    dashboard = await visited()
    shoots = (await dashboard.visit("vera", "/api/shoots")).json()
    assert [(row["namespace"], row["name"]) for row in shoots["items"]] == [
        ("garden-dev", "apollo"),
        ("garden-dev", "apollo-waits"),
    ]
    summary = (await dashboard.visit("vera", "/api/landscape")).json()["summary"]
    assert (summary["shoots"], summary["seeds"], summary["used"], summary["sets"]) == (2, 1, 1, 0)
    (seed,) = (await dashboard.visit("vera", "/api/seeds")).json()["items"]
    assert (seed["name"], seed["used"], seed["heartbeat"]) == ("aws", 1, None)
    assert (await dashboard.visit("vera", "/api/waiting")).json()["total"] == 1
    (event,) = (await dashboard.visit("vera", "/api/events")).json()["items"]
    assert event["name"] == "apollo"
    found = (await dashboard.visit("vera", "/api/search?q=dev")).json()["items"]
    assert {(each["kind"], each["name"]) for each in found} >= {("project", "dev"), ("shoot", "apollo")}


@pytest.mark.parametrize(("role", "sets"), [("viewer", 1), ("operator", 1)])
async def test_with_a_role_in_the_landscape_everything_is_there(role: str, sets: int):
    dashboard = await visited()
    dashboard.replies["readable"] = {"role": role, "kinds": GLOBAL}
    summary = (await dashboard.visit("eve", "/api/landscape")).json()["summary"]
    assert (summary["shoots"], summary["sets"]) == (4, sets)
    checks = await dashboard.visit("eve", "/api/rejected")
    assert checks.status == (200 if role == "operator" else 403), checks.body


@pytest.mark.parametrize("path", ["/api/checks", "/api/queues", "/api/services", "/api/rejected", "/api/rejected/1"])
async def test_servers_and_messages_are_the_operators(path: str):
    dashboard = await visited(dashboard_allow_writes=True)
    response = await dashboard.visit("vera", path)
    assert (response.status, "role operator" in response.json()["error"]["message"]) == (403, True)
    replay = await dashboard.visit("vera", "/api/rejected/1/replay", method="POST")
    assert replay.status == 403


async def test_events_of_an_object_are_for_those_who_may_read_events_there():
    dashboard = await visited()
    dashboard.replies["get.seed._.aws"] = a_seed("aws")
    shown = await dashboard.visit("vera", "/api/object/seed/_/aws")
    assert (shown.status, shown.json()["events"]) == (200, [])
    assert ("garden.as.vera.api.get.seed._.aws", None) in dashboard.requests


async def test_changes_are_ones_own_alone():
    dashboard = await visited()
    await dashboard.visit("vera", "/api/shoots")
    sent = await _stream(dashboard, "vera")
    dashboard.put(a_shoot("zeus", "garden-prod", spec={"seedName": "aws", "region": "new"}))
    dashboard.put(a_shoot("apollo", "garden-dev", spec={"seedName": "aws", "region": "new"}))
    dashboard.cache.add_event(an_event("zeus-2", "garden-prod"))
    publishing = asyncio.create_task(dashboard.views.run())
    await _until(dashboard, lambda: any("apollo" in each for each in sent))
    assert not any("zeus" in each or "prod" in each.replace("provider", "") for each in sent)
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)


async def test_a_role_that_is_withdrawn_ends_the_stream_and_the_lists_and_leads_to_the_login():
    dashboard = await visited()
    login = await dashboard.send("POST", "/api/login", {"token": dashboard.link("vera")}, origin=URL)
    cookie = {"cookie": login.headers["set-cookie"].partition(";")[0]}
    sent = await _stream(dashboard, "vera")
    dashboard.replies["readable"] = {"role": "user", "kinds": GLOBAL}
    await _until(dashboard, lambda: sent[-1:] == ["end"])
    for path in ("/api/session", "/api/seeds", "/api/shoots", "/api/changes"):
        ended = await dashboard.get(path, **cookie)
        assert (ended.status, ended.json()["error"]["message"]) == (401, "vera has no role here any more")
    rejected = await dashboard.send("POST", "/api/login", {"token": dashboard.link("vera")}, origin=URL)
    assert (rejected.status, "has no role here" in rejected.json()["error"]["message"]) == (403, True)


async def test_nobody_looks_and_nothing_is_kept():
    dashboard = await visited()
    await dashboard.visit("vera", "/api/shoots")
    callbacks = dashboard.cache.subscribers
    publishing = asyncio.create_task(dashboard.views.run())
    await asyncio.sleep(0)
    dashboard.turn(IDLE_SECONDS + 1)
    await _until(dashboard, lambda: dashboard.cache.subscribers == callbacks - 1)
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)


async def _stream(dashboard: Visited, user: str) -> list[str]:
    """Begin to follow changes; what is sent, and `end`."""
    response = await dashboard.send("POST", "/api/login", {"token": dashboard.link(user)}, origin=URL)
    sent: list[str] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message.get("body", b"").decode())

    async def serve() -> None:
        headers = {"cookie": response.headers["set-cookie"].partition(";")[0]}
        await dashboard.app(scope_of("/api/changes", headers=headers), receive, send)
        sent.append("end")

    dashboard.streams.append(asyncio.create_task(serve()))
    await _until(dashboard, lambda: bool(sent))
    return sent


async def _until(dashboard: Visited, is_met: Any) -> None:
    for _ in range(400):
        if is_met():
            return
        dashboard.turn(0.25)
        for _ in range(10):
            await asyncio.sleep(0)
    assert is_met()
