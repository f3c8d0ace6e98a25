"""Login at an OpenID Connect provider, which answers over HTTP."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc.jwk import ECKey, OctKey

from gardenbus.dashboard.settings import DashboardSettings, load_settings
from gardenbus.dashboard.web.oidc import Provider, provider_of
from tests.support.builders import a_seed
from tests.support.dashboards import Dashboard, HttpResponse
from tests.support.oidc_provider import CLIENT, SECRET, OidcProvider, running_provider

PUBLIC = "http://127.0.0.1:8080"


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with running_provider() as provider:
        yield provider


@pytest.fixture
async def dashboard(provider: OidcProvider) -> Dashboard:
    registered = Provider(provider.issuer, CLIENT, SECRET, f"{PUBLIC}/oidc/callback", "email")
    dashboard = Dashboard(DashboardSettings(dashboard_allow_writes=True), key=b"k" * 64, provider=registered)
    dashboard.replies["readable"] = {"role": "viewer", "kinds": ["seed"]}
    await dashboard.serve_api()
    await dashboard.follow_sessions()
    provider.now = int(dashboard.clock.now().timestamp())
    return dashboard


async def begun(dashboard: Dashboard) -> tuple[str, dict[str, str]]:
    """Where the provider sends the browser, and the cookie of the attempt."""
    start = await dashboard.get("/oidc/start")
    assert start.status == 303, start.body
    flags = start.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=lax" in flags
    async with httpx2.AsyncClient() as browser:
        sent_on = await browser.get(start.headers["location"])
    assert sent_on.status_code == 302, sent_on.text
    back = urlsplit(sent_on.headers["location"])
    return f"{back.path}?{back.query}", {"cookie": start.headers["set-cookie"].partition(";")[0]}


async def logged_in(dashboard: Dashboard) -> HttpResponse:
    back, cookie = await begun(dashboard)
    return await dashboard.get(back, **cookie)


def message(response: HttpResponse) -> str:
    return response.json()["error"]["message"]


async def test_whom_the_provider_names_gets_in_and_acts_as_that_user(dashboard: Dashboard):
    page = await logged_in(dashboard)
    assert page.status == 200, page.body
    assert b'http-equiv="refresh"' in page.body
    cookie = {"cookie": page.headers["set-cookie"].partition(";")[0]}
    assert "samesite=strict" in page.headers["set-cookie"].lower()
    session = (await dashboard.get("/api/session", **cookie)).json()
    assert session["user"] == "ann@example.org"
    dashboard.replies |= {"patch.seed._.aws-eu1": {}, "get.seed._.aws-eu1": a_seed()}
    body = {"shown": ["it takes no new shoots; those that are on it stay"]}
    same = {"origin": PUBLIC, "X_Gardenbus_Token": session["token"]}
    assert (await dashboard.send("POST", "/api/actions/cordon/seed/_/aws-eu1", body, **same, **cookie)).status == 200
    assert dashboard.requests[-2][0] == "garden.as.ann@example%2Eorg.api.patch.seed._.aws-eu1"


async def test_an_answer_counts_once_and_in_the_browser_that_began(dashboard: Dashboard):
    back, cookie = await begun(dashboard)
    assert "did not begin in this browser" in message(await dashboard.get(back))
    _, other = await begun(dashboard)
    assert "another login" in message(await dashboard.get(back, **other))
    assert (await dashboard.get(back, **cookie)).status == 200
    assert (await dashboard.get(back, **cookie)).status == 403


async def test_a_code_without_its_verifier_is_worth_nothing(dashboard: Dashboard, provider: OidcProvider):
    back, cookie = await begun(dashboard)
    provider.codes[parse_qs(urlsplit(back).query)["code"][0]]["code_challenge"] = "of another browser"
    assert "invalid_grant" in message(await dashboard.get(back, **cookie))


@pytest.mark.parametrize(
    "override",
    [
        {"iss": "https://evil.example.org"},
        {"aud": "another"},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT], "azp": "another"},
        {"aud": CLIENT, "azp": "another"},
        {"azp": ""},
        {"nonce": "of another login"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"email": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": "operator"},
        {"email": "managedseedset"},
        {"email": "seed:aws"},
        {"email": "scheduler:mine"},
        {"email": "*"},
        {"email": "system:anonymous"},
        {"email": "SYSTEM:anonymous"},
        {"email": "system:serviceaccount:garden-crew:robot"},
        {"email": "gardener.cloud:system:seed:aws"},
        {"email": "member:rome"},
        {"email": "bootstrap:4f2a91"},
        {"email": "\u212aatrin@example.org"},
        {"email": True},
        {"email": ["ann@example.org"]},
    ],
    ids=str,
)
async def test_a_token_that_does_not_hold_lets_nobody_in(
    dashboard: Dashboard, provider: OidcProvider, override: dict[str, Any]
):
    provider.overrides = override
    response = await logged_in(dashboard)
    assert response.status == 403, response.body
    assert "set-cookie" not in response.headers


async def test_a_token_of_another_key_lets_nobody_in(dashboard: Dashboard, provider: OidcProvider):
    for key in (ECKey.generate_key("P-256", {"kid": "one"}), OctKey.import_key(SECRET)):
        provider.signs_with = key
        assert "does not hold" in message(await logged_in(dashboard))


async def test_a_provider_that_is_away_or_calls_itself_something_else_is_named(
    dashboard: Dashboard, provider: OidcProvider
):
    back, cookie = await begun(dashboard)
    issuer, provider.issuer = provider.issuer, "https://other.example.org"
    response = await dashboard.get("/oidc/start")
    assert (response.status, "calls itself" in message(response)) == (503, True)
    provider.issuer = issuer
    rejected = await dashboard.get(re.sub(r"code=[^&]+", "error=access_denied", back), **cookie)
    assert "rejected the login: access_denied" in message(rejected)


def test_the_settings_name_the_provider():
    environ = {
        "GARDENBUS_DASHBOARD_OIDC_ISSUER": "https://login.example.org",
        "GARDENBUS_DASHBOARD_OIDC_CLIENT_ID": "garden",
        "GARDENBUS_DASHBOARD_PUBLIC_URL": "https://garden.example.org/",
        "GARDENBUS_DASHBOARD_KEY_FILE": "/none",
    }
    settings = load_settings([], environ)
    assert provider_of(settings).redirect_url == "https://garden.example.org/oidc/callback"
    assert "garden.example.org" in settings.allowed_hosts
