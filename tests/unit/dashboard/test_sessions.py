"""When sessions end, how many there are, and what is kept of requests."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from gardenbus.common.api.budgets import BUDGETS, DEFAULT_BUDGET, Budget, OverBudget
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.revocations import REVOCATIONS, revocation
from gardenbus.common.errors import TooManyRequests
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.dashboard.watch import session_registry
from gardenbus.dashboard.watch.session_registry import SILENT_SECONDS
from gardenbus.dashboard.web import open_pages
from gardenbus.dashboard.web.body_limit import MOST_BODY_BYTES, MOST_BODY_BYTES_BEFORE_LOGIN
from gardenbus.dashboard.web.open_pages import OpenPages
from tests.support.dashboards import Dashboard, HttpResponse, scope_of, send_request
from tests.support.eventually import HANG_SECONDS, eventually
from tests.unit.dashboard.test_login import SAME, cookie_of, guarded, link, log_in, pass_time, replica_of

ANN = "ann@example.org"


async def log_out(dashboard: Dashboard, cookie: dict[str, str]) -> HttpResponse:
    token = (await dashboard.get("/api/session", **cookie)).json()["token"]
    return await dashboard.send("POST", "/api/logout", **(SAME | cookie | {"X_Gardenbus_Token": token}))


async def revoke(dashboard: Dashboard, user: str) -> None:
    await dashboard.announce({**revocation(user, dashboard.clock.now(), "stolen"), "kind": "ConfigMap"})


async def status_of(dashboard: Dashboard, cookie: dict[str, str]) -> int:
    return (await dashboard.get("/api/seeds", **cookie)).status


async def is_out(dashboard: Dashboard, cookie: dict[str, str]) -> None:
    assert await status_of(dashboard, cookie) == 401


@asynccontextmanager
async def open_page(dashboard: Dashboard, cookie: dict[str, str]) -> AsyncGenerator[asyncio.Task[None]]:
    began = asyncio.Event()

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(_: Any) -> None:
        began.set()

    page = asyncio.create_task(dashboard.app(scope_of("/api/changes", headers=cookie), receive, send))
    await asyncio.wait_for(began.wait(), HANG_SECONDS)
    try:
        yield page
    finally:
        page.cancel()
        await asyncio.wait({page})


async def test_a_copied_cookie_is_worth_nothing_after_logout_at_any_replica():
    dashboard = await guarded()
    another = await replica_of(dashboard)
    cookie = await cookie_of(dashboard)
    other_session = await cookie_of(dashboard)
    assert await status_of(another, cookie) == 200

    assert (await log_out(dashboard, cookie)).status == 200

    assert await status_of(dashboard, cookie) == 401
    await eventually(lambda: is_out(another, cookie))
    assert await status_of(await replica_of(dashboard), cookie) == 401  # one that starts later
    pass_time(dashboard, 3600)
    for each in (dashboard, another, await replica_of(dashboard)):
        assert (await status_of(each, cookie), await status_of(each, other_session)) == (401, 200)


async def test_a_logout_that_cannot_be_stored_says_so_and_the_session_goes_on():
    dashboard = await guarded()
    cookie = await cookie_of(dashboard)
    token = (await dashboard.get("/api/session", **cookie)).json()["token"]
    dashboard.bus.cut()

    response = await dashboard.send("POST", "/api/logout", **(SAME | cookie | {"X_Gardenbus_Token": token}))

    assert response.status == 503
    assert "set-cookie" not in response.headers


async def test_a_revoked_person_is_out_at_every_replica_and_gets_in_again_with_what_is_issued_later():
    dashboard = await guarded()
    another = await replica_of(dashboard)
    cookie, others = await cookie_of(dashboard, ANN), await cookie_of(dashboard, "bob@example.org")
    issued_before = link(dashboard, ANN)
    pass_time(dashboard, 5)

    await revoke(dashboard, ANN)

    for each in (dashboard, another):
        await eventually(lambda each=each: is_out(each, cookie))
        assert await status_of(each, others) == 200
    assert await status_of(await replica_of(dashboard), cookie) == 401
    rejected = await log_in(dashboard, issued_before)
    assert (rejected.status, "were revoked" in rejected.json()["error"]["message"]) == (403, True)
    pass_time(dashboard, 2)
    assert await status_of(another, await cookie_of(dashboard, ANN)) == 200


async def test_revocations_that_cannot_be_read_leave_those_of_before():
    dashboard = await guarded()
    cookie = await cookie_of(dashboard, ANN)
    pass_time(dashboard, 5)
    await revoke(dashboard, ANN)
    await eventually(lambda: is_out(dashboard, cookie))
    broken: Document = {"kind": "ConfigMap", "metadata": {"namespace": "garden", "name": REVOCATIONS.name}, "data": 7}

    await dashboard.announce(broken, version=2)
    await asyncio.sleep(0.1)

    assert await status_of(dashboard, cookie) == 401


@pytest.mark.parametrize("end", ["logout", "revoked"])
async def test_open_pages_end_with_their_session(end: str):
    dashboard = await guarded(SystemClock())
    another = await replica_of(dashboard)
    cookie = await cookie_of(dashboard, ANN)
    async with open_page(dashboard, cookie) as here, open_page(another, cookie) as there:
        if end == "logout":
            await log_out(dashboard, cookie)
        else:
            await revoke(dashboard, ANN)
        await asyncio.wait_for(asyncio.gather(here, there), HANG_SECONDS)


async def test_a_session_is_not_served_while_nobody_can_tell_if_it_has_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_registry, "WAIT_SECONDS", 0.05)
    dashboard = await guarded()
    young = Dashboard(key=b"k" * 64, clock=dashboard.clock)  # which has read nothing yet
    cookie = await cookie_of(dashboard)

    assert await status_of(young, cookie) == 503
    assert (await young.get("/api/seeds")).status == 401
    assert await status_of(dashboard, cookie) == 200
    monkeypatch.setattr(session_registry, "SILENT_SECONDS", -1.0)
    assert (await dashboard.get("/api/seeds", **cookie)).json()["error"]["reason"] == "ServiceUnavailable"
    assert SILENT_SECONDS <= 15


async def test_the_oldest_session_of_a_user_ends_when_there_are_more_than_the_budget_has():
    dashboard = await guarded()
    first = await cookie_of(dashboard, ANN)
    bobs = await cookie_of(dashboard, "bob@example.org")
    last = first
    for _ in range(DEFAULT_BUDGET.sessions - 1):
        last = await cookie_of(dashboard, ANN)
    assert await status_of(dashboard, first) == 200
    await cookie_of(dashboard, ANN)
    pass_time(dashboard, 60)

    for each in (dashboard, await replica_of(dashboard)):
        statuses = [await status_of(each, cookie) for cookie in (first, last, bobs)]
        assert statuses == [401, 200, 200]


async def test_logins_of_years_do_not_pile_up():
    dashboard = await guarded()
    for number in range(2000):
        dashboard.registry.begin(ANN, f"s{number}", dashboard.clock.now())
        dashboard.registry.end(ANN, f"s{number}")
        pass_time(dashboard, 1)

    kept = vars(dashboard.registry)
    assert len(kept["_ended"]) < 20
    assert kept["_sessions"] == {}


async def test_pages_beyond_the_budget_of_their_user_are_rejected_and_others_are_served():
    dashboard = await guarded(SystemClock())
    cookie, bobs = await cookie_of(dashboard, ANN), await cookie_of(dashboard, "bob@example.org")
    settings = json.dumps({"users": {ANN: {"pages": 2}}})
    config_map: Document = {"kind": "ConfigMap", "metadata": {"namespace": BUDGETS.namespace, "name": BUDGETS.name}}
    await dashboard.announce(config_map | {"data": {"budgets": settings}})

    async def budget_is_there() -> None:
        assert dashboard.registry.budget(ANN).pages == 2

    await eventually(budget_is_there)
    async with open_page(dashboard, cookie), open_page(dashboard, cookie):
        rejected = await dashboard.get("/api/changes", **cookie)
        assert (rejected.status, rejected.headers["retry-after"]) == (429, "5")
        assert f"'{ANN}' has used up its budget of pages (2)" in rejected.json()["error"]["message"]
        async with open_page(dashboard, bobs):
            pass
    async with open_page(dashboard, cookie):
        pass


def test_all_pages_together_have_room_and_nobodys_count_for_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_pages, "MOST_PAGES", 4)
    pages = OpenPages(lambda _user, _projects: Budget(pages=2))
    with pages.page(""), pages.page(""), pages.page(""), pages.page(ANN), pytest.raises(TooManyRequests, match="4"):
        pages.page("bob").__enter__()
    with pages.page(ANN), pages.page(ANN), pytest.raises(OverBudget):
        pages.page(ANN).__enter__()
    assert vars(pages)["_open"] == {}


async def chunked(dashboard: Dashboard, path: str, size: int, **headers: str) -> tuple[HttpResponse, int]:
    """Send a body in chunks, without its length; returns the response, and the bytes that were received."""
    received = 0
    sent: list[Any] = []

    async def receive() -> Any:
        nonlocal received
        received += 1024
        return {"type": "http.request", "body": b"x" * 1024, "more_body": received < size}

    async def send(message: Any) -> None:
        sent.append(message)

    await dashboard.app(scope_of(path, method="POST", headers=headers), receive, send)
    shown = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return HttpResponse(sent[0]["status"], shown, b"".join(each.get("body", b"") for each in sent[1:])), received


async def test_before_login_a_body_of_more_than_8_kib_is_rejected_whatever_its_length_says():
    dashboard = await guarded()
    large = json.dumps({"token": "x" * MOST_BODY_BYTES_BEFORE_LOGIN}).encode()

    named = await send_request(
        dashboard.app, "/api/login", method="POST", body=b"", headers=SAME | {"content-length": str(len(large))}
    )
    unnamed, received = await chunked(dashboard, "/api/login", 400 * 1024 * 1024, **SAME)

    for response in (named, unnamed):
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert "8 KiB" in response.json()["error"]["message"]
    assert received <= MOST_BODY_BYTES_BEFORE_LOGIN + 1024
    for length in ("-1", "x", "9" * 400):
        response = await dashboard.get("/api/login", content_length=length)
        assert response.status == 413


async def test_in_a_session_bodies_have_a_limit_too():
    dashboard = await guarded(dashboard_allow_writes=True)
    cookie = await cookie_of(dashboard)
    token = (await dashboard.get("/api/session", **cookie)).json()["token"]
    headers = SAME | cookie | {"X_Gardenbus_Token": token}

    response, received = await chunked(dashboard, "/api/login", 400 * 1024 * 1024, **headers)
    named = await dashboard.send(
        "POST", "/api/actions/cordon/seed/_/a", **headers, content_length=str(MOST_BODY_BYTES + 1)
    )

    assert (response.status, named.status) == (413, 413)
    assert received <= MOST_BODY_BYTES + 1024
    assert timedelta(seconds=SILENT_SECONDS) <= timedelta(seconds=15)
