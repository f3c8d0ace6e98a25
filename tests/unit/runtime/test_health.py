from collections.abc import AsyncIterator

import aiohttp
import prometheus_client
import pytest

from gardenbus.common.runtime.health import Health


@pytest.fixture
async def health() -> AsyncIterator[Health]:
    health = Health(prometheus_client.CollectorRegistry())
    yield health
    await health.stop()


async def fetch(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_readyz_says_which_check_fails_and_why(health: Health):
    async def requested() -> str | None:
        return None

    health.add_readiness("nats", lambda: "disconnected")
    health.add_readiness("redis", requested)
    url = await health.start()

    status, body = await fetch(url + "/readyz")

    assert status == 503
    assert body == '{"ok":false,"checks":{"nats":"disconnected","redis":"ok"}}'
    assert (await fetch(url))[0] == 503
    assert (await fetch(url + "/livez"))[0] == 200

    health.remove_readiness("nats")
    assert (await fetch(url + "/readyz"))[0] == 200


async def test_checks_that_come_and_go_while_they_are_asked_do_no_harm(health: Health):
    async def connected() -> str | None:
        health.remove_readiness("starting")
        health.add_readiness("informer", lambda: None)
        return None

    health.add_readiness("starting", lambda: "not yet")
    health.add_readiness("nats", connected)

    assert await health.readyz() == (False, {"starting": "not yet", "nats": "ok"})
    assert await health.readyz() == (True, {"nats": "ok", "informer": "ok"})


async def test_a_check_that_raises_is_an_answer(health: Health):
    def broken() -> str | None:
        raise RuntimeError("no luck")

    health.add_readiness("luck", broken)

    assert (await health.readyz()) == (False, {"luck": "RuntimeError: no luck"})


async def test_metrics_shows_the_registry(health: Health):
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("bindings", "Shoots bound.", registry=registry).inc(3)
    counted = Health(registry)
    url = await counted.start()

    status, body = await fetch(url + "/metrics")
    await counted.stop()

    assert status == 200
    assert "bindings_total 3.0" in body


async def test_a_service_serves_a_page_of_its_own(health: Health):
    url = await health.start()
    health.add_page("/seeds", lambda: (500, "lease not renewed"))

    assert await fetch(url + "/seeds") == (500, "lease not renewed")
    assert (await fetch(url + "/nothing"))[0] == 404


async def test_each_agent_of_a_process_has_its_own_health(health: Health):
    agents: dict[str, str | None] = {"one": None, "two": "no renewal for 40 s"}
    health.add_readiness("nats", lambda: None)
    health.add_agents("heartbeats", healthy=lambda: agents, ready=lambda: agents)
    url = await health.start()

    assert await fetch(url + "/healthz/one") == (200, "ok\n")
    assert await fetch(url + "/healthz/two") == (500, "no renewal for 40 s\n")
    assert await fetch(url + "/readyz/one") == (200, '{"ok":true,"checks":{"nats":"ok","heartbeats":"ok"}}')
    assert await fetch(url + "/readyz/two") == (
        503,
        '{"ok":false,"checks":{"nats":"ok","heartbeats":"no renewal for 40 s"}}',
    )
    for path in ("/healthz/three", "/readyz/three", "/healthz/one/more", "/healthz/"):
        assert (await fetch(url + path))[0] == 404, path


async def test_one_agent_that_is_not_well_leaves_the_process_healthy(health: Health):
    agents: dict[str, str | None] = {"one": None, "two": "no renewal for 40 s"}
    health.add_agents("heartbeats", healthy=lambda: agents, ready=lambda: agents)
    url = await health.start()

    assert await fetch(url + "/healthz") == (200, "ok, except two: no renewal for 40 s\n")
    assert (await fetch(url + "/readyz"))[0] == 200
    agents["one"] = "no renewal for 41 s"
    assert await fetch(url + "/healthz") == (500, "one: no renewal for 41 s, two: no renewal for 40 s\n")
    assert (await fetch(url + "/readyz"))[0] == 503
    agents.clear()
    assert await fetch(url + "/healthz") == (200, "ok\n")


async def test_an_agent_is_not_ready_while_its_process_is_not(health: Health):
    health.add_readiness("nats", lambda: "not connected")
    health.add_agents("heartbeats", healthy=lambda: {"one": None}, ready=lambda: {"one": None})
    url = await health.start()

    assert (await fetch(url + "/readyz/one"))[0] == 503
    assert (await fetch(url + "/healthz/one"))[0] == 200


async def test_an_agent_that_has_not_begun_is_healthy_and_not_ready(health: Health):
    health.add_agents("heartbeats", healthy=lambda: {"one": None}, ready=lambda: {"one": "no heartbeat yet"})
    url = await health.start()

    assert [(await fetch(url + path))[0] for path in ("/healthz", "/healthz/one")] == [200, 200]
    assert [(await fetch(url + path))[0] for path in ("/readyz", "/readyz/one")] == [503, 503]


async def test_a_process_without_agents_has_no_pages_of_them(health: Health):
    url = await health.start()

    for path in ("/healthz", "/healthz/one", "/readyz/one"):
        assert (await fetch(url + path))[0] == 404, path


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example:80", 421), ("127.0.0.1.evil.example", 421), ("LOCALHOST:1", 200), ("[::1]:1", 200), ("", 421)],
)
async def test_on_the_loopback_it_is_read_by_the_loopbacks_names_only(health: Health, host: str, status: int):
    url = await health.start()
    async with aiohttp.ClientSession() as session, session.get(url + "/livez", headers={"Host": host}) as response:
        assert response.status == status
