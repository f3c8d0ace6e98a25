"""Who gets into the dashboard, and as whom."""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.errors import BadRequest, Forbidden, SettingsInvalid
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.dashboard.settings import DashboardSettings, load_settings
from gardenbus.diagnostics.login_keys import new_claims, new_link, read_key
from gardenbus.diagnostics.login_tokens import Claims, check_key, cookie_name, signed, verified
from tests.support.builders import a_seed
from tests.support.clocks import FakeClock
from tests.support.dashboards import Dashboard, HttpResponse, scope_of
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.bus import MemoryServer

KEY = b"k" * 64
URL = "http://127.0.0.1:8080"
SAME = {"origin": URL, "content_type": "application/json"}


async def guarded(clock: Clock | None = None, **settings: Any) -> Dashboard:
    server = MemoryServer(SystemClock())  # whose messages do not age with the test's clock
    dashboard = Dashboard(DashboardSettings(**settings), key=KEY, clock=clock or FakeClock(), server=server)
    dashboard.replies["readable"] = {"role": "viewer", "kinds": ["seed"]}
    await dashboard.serve_api()
    await dashboard.follow_sessions()
    return dashboard


async def replica_of(dashboard: Dashboard, key: bytes = KEY) -> Dashboard:
    """Another process on the same landscape."""
    replica = Dashboard(key=key, clock=dashboard.clock, server=dashboard.bus.server)
    await replica.follow_sessions()
    return replica


def pass_time(dashboard: Dashboard, seconds: float) -> None:
    assert isinstance(dashboard.clock, FakeClock)
    dashboard.clock.advance(seconds)


def link(dashboard: Dashboard, user: str = "operator") -> str:
    return new_link(KEY, dashboard.clock, URL, user).partition("#")[2]


async def log_in(dashboard: Dashboard, token: str, **headers: str) -> HttpResponse:
    return await dashboard.send("POST", "/api/login", {"token": token}, **(SAME | headers))


async def cookie_of(dashboard: Dashboard, user: str = "operator") -> dict[str, str]:
    response = await log_in(dashboard, link(dashboard, user))
    assert response.status == 200, response.body
    return {"cookie": response.headers["set-cookie"].partition(";")[0]}


async def test_without_a_session_there_is_nothing_but_the_way_in():
    dashboard = await guarded(dashboard_allow_writes=True)
    dashboard.put(a_seed())
    for path in ("/api/seeds", "/api/session", "/api/changes", "/api/object/seed/_/aws-eu1", "/api/rejected"):
        response = await dashboard.get(path)
        assert (response.status, response.json()["error"]["reason"]) == (401, "Unauthorized")
    start = await dashboard.get("/")
    assert (start.status, start.headers["location"]) == (303, "/login")
    assert (await dashboard.send("POST", "/api/actions/cordon/seed/_/aws-eu1", **SAME)).status == 401
    assert (await dashboard.send("POST", "/api/logout", **SAME)).status == 401
    page = await dashboard.get("/login")
    assert page.status == 200
    assert b"script-src 'self'" in page.headers["content-security-policy"].encode()
    assert (await dashboard.get("/static/login.js")).status == 200
    assert dashboard.requests == []


async def test_a_link_lets_in_once_for_eight_hours():
    dashboard = await guarded()
    token = link(dashboard)
    first = await log_in(dashboard, token)
    again = await log_in(dashboard, token)
    assert (first.status, again.status) == (200, 403)
    assert "used before" in again.json()["error"]["message"]
    assert "set-cookie" not in again.headers
    flags = {flag.strip().lower() for flag in first.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", "max-age=28800"} <= flags
    cookie = {"cookie": first.headers["set-cookie"].partition(";")[0]}
    assert (await dashboard.get("/api/seeds", **cookie)).status == 200
    assert (await dashboard.get("/api/session", **cookie)).json()["user"] == "operator"
    pass_time(dashboard, 8 * 3600 - 1)
    assert (await dashboard.get("/api/seeds", **cookie)).status == 200
    pass_time(dashboard, 2)
    assert (await dashboard.get("/api/seeds", **cookie)).status == 401


async def test_a_link_is_old_after_a_minute():
    dashboard = await guarded()
    token = link(dashboard)
    pass_time(dashboard, 60)
    response = await log_in(dashboard, token)
    assert response.status == 403
    assert "it has expired. For a new one run `gardenbus dashboard`" in response.json()["error"]["message"]


async def test_of_many_that_bring_one_link_at_once_one_gets_in():
    dashboard = await guarded()
    another = await replica_of(dashboard)
    token = link(dashboard)
    responses = await asyncio.gather(*(log_in(each, token) for each in (dashboard, another) * 10))
    assert sorted(each.status for each in responses) == [200, *[403] * 19]


async def test_a_session_holds_at_every_replica_with_the_key_and_at_no_other():
    dashboard = await guarded()
    cookie = await cookie_of(dashboard)
    for key, status in ((KEY, 200), (b"another" * 10, 401)):
        replica = await replica_of(dashboard, key)
        pass_time(dashboard, 60)
        assert (await replica.get("/api/seeds", **cookie)).status == status


async def test_what_nobody_signed_for_it_lets_nobody_in():
    dashboard = await guarded()
    claims = new_claims(dashboard.clock, "operator", timedelta(hours=1))
    for token in ("", ".", "a.b", "x" * 8_000, signed(b"z" * 64, "link", claims), signed(KEY, "session", claims)):
        assert (await log_in(dashboard, token)).status == 403
    as_cookie = {"cookie": f"{cookie_name(KEY)}={link(dashboard)}"}
    assert (await dashboard.get("/api/seeds", **as_cookie)).status == 401
    assert (await dashboard.get("/api/seeds", cookie="=;;\x00=a")).status == 401
    assert (await dashboard.send("POST", "/api/login", "no object", **SAME)).status == 400


async def test_a_foreign_page_logs_nobody_in_and_changes_nothing_in_a_session():
    dashboard = await guarded(dashboard_allow_writes=True)
    assert (await log_in(dashboard, link(dashboard), origin="http://evil.example.org")).status == 403
    assert (await log_in(dashboard, link(dashboard), sec_fetch_site="cross-site")).status == 403
    cookie = await cookie_of(dashboard)
    cordon = "/api/actions/cordon/seed/_/aws-eu1"
    assert (await dashboard.send("POST", cordon, **SAME, **cookie)).status == 403
    assert (await dashboard.send("POST", cordon, **SAME, **cookie, X_Gardenbus_Token="the-token")).status == 403


async def test_requests_are_made_as_the_user_of_the_session():
    dashboard = await guarded(dashboard_allow_writes=True)
    dashboard.replies |= {"patch.seed._.aws-eu1": {}, "get.seed._.aws-eu1": a_seed()}
    cookie = await cookie_of(dashboard, "ann@example.org")
    token = (await dashboard.get("/api/session", **cookie)).json()["token"]
    headers = SAME | cookie | {"X_Gardenbus_Token": token}
    body = {"shown": ["it takes no new shoots; those that are on it stay"]}
    assert (await dashboard.send("POST", "/api/actions/cordon/seed/_/aws-eu1", body, **headers)).status == 200
    assert (await dashboard.get("/api/object/seed/_/aws-eu1", **cookie)).status == 200
    assert {subject.partition(".api.")[0] for subject, _ in dashboard.requests} == {"garden.as.ann@example%2Eorg"}


async def test_whoever_has_no_role_does_not_get_in():
    dashboard = await guarded()
    dashboard.replies["readable"] = {"role": "user", "kinds": ["seed"]}
    rejected = await log_in(dashboard, link(dashboard, "ann@example.org"))
    assert (rejected.status, "ann@example.org has no role here" in rejected.json()["error"]["message"]) == (403, True)
    assert (await log_in(dashboard, link(dashboard))).status == 200


async def test_a_page_that_only_shows_lets_people_out():
    dashboard = await guarded()
    cookie = await cookie_of(dashboard)
    session = (await dashboard.get("/api/session", **cookie)).json()
    assert not session["allowWrites"]
    headers = SAME | cookie | {"X_Gardenbus_Token": session["token"]}
    response = await dashboard.send("POST", "/api/logout", **headers)
    assert re.search(r"max-age=0", response.headers["set-cookie"], re.IGNORECASE)


async def test_the_stream_of_changes_ends_with_the_session():
    dashboard = await guarded()
    cookie = await cookie_of(dashboard)
    began, sent = asyncio.Event(), list[Any]()

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)
        began.set()

    streaming = asyncio.create_task(dashboard.app(scope_of("/api/changes", headers=cookie), receive, send))
    await asyncio.wait_for(began.wait(), HANG_SECONDS)
    pass_time(dashboard, 8 * 3600 + 1)
    await asyncio.wait_for(streaming, HANG_SECONDS)
    assert sent[0]["status"] == 200


def test_a_dashboard_that_others_reach_needs_logins(tmp_path: Path):
    for host in ("0.0.0.0", "10.1.2.3", "::", "garden.example.org"):
        with pytest.raises(SettingsInvalid, match="GARDENBUS_DASHBOARD_KEY_FILE: others reach"):
            load_settings([], {"GARDENBUS_DASHBOARD_HOST": host})
        file = str(tmp_path / "key")
        assert load_settings([], {"GARDENBUS_DASHBOARD_HOST": host, "GARDENBUS_DASHBOARD_KEY_FILE": file})
    for host in ("127.0.0.1", "::1", "localhost"):
        assert load_settings([], {"GARDENBUS_DASHBOARD_HOST": host})


def test_a_provider_needs_what_a_login_needs():
    with pytest.raises(SettingsInvalid) as raised:
        load_settings([], {"GARDENBUS_DASHBOARD_OIDC_ISSUER": "http://login.example.org"})
    assert len(raised.value.problems) == 4
    assert "GARDENBUS_DASHBOARD_OIDC_ISSUER: write https://" in str(raised.value)


def test_a_key_is_made_once_for_its_owner(tmp_path: Path):
    file = tmp_path / "dashboard.key"
    key = read_key(file)
    assert read_key(file) == key
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["dashboard.key"]
    file.write_text("short")
    with pytest.raises(SettingsInvalid, match="holds no key"):
        read_key(file)
    with pytest.raises(SettingsInvalid, match="cannot be made"):
        read_key(tmp_path / "nowhere" / "key")


@given(st.text(max_size=80), st.integers(min_value=0, max_value=200), st.text(min_size=1, max_size=3))
def test_a_token_that_was_changed_anywhere_is_no_token(user: str, position: int, other: str):
    clock = FakeClock()
    claims = new_claims(clock, "ann", timedelta(hours=1))
    token = signed(KEY, "session", claims)
    assert verified(KEY, "session", token, clock.now(), Claims) == claims
    changed = token[:position] + other + token[position + len(other) :]
    if changed != token:
        with pytest.raises(Forbidden):
            verified(KEY, "session", changed, clock.now(), Claims)
    with pytest.raises(Forbidden):
        verified(KEY, "session", json.dumps({"user": user}), clock.now(), Claims)


def test_a_key_that_can_be_guessed_is_refused():
    with pytest.raises(BadRequest):
        check_key("secret\n")
