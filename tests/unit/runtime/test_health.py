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
    async def asked() -> str | None:
        return None

    health.add_readiness("nats", lambda: "disconnected")
    health.add_readiness("redis", asked)
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
    health.add_page("/healthz", lambda: (500, "lease not renewed"))

    assert await fetch(url + "/healthz") == (500, "lease not renewed")
    assert (await fetch(url + "/nothing"))[0] == 404
