"""A Redis that refuses writes for want of replicas (NOREPLICAS): what callers are told, and what `doctor` says."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from tests.contract.operating.conftest import SESSION, a_session_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape, a_landscape
from tests.support.servers import start_redis

pytestmark = pytest.mark.slow


@asynccontextmanager
async def with_a_redis_of_its_own(place: Path) -> AsyncGenerator[tuple[Landscape, Redis]]:
    """A landscape, and its Redis, whose settings may be changed."""
    server = start_redis(place / "redis")
    files = (part for name in ("landscape.yaml", "gardenlet.yaml") for part in ("-f", str(SESSION / name)))
    try:
        async with a_landscape(place / "state", *files, "--redis-url", f"{server.url}/0") as landscape:
            with Redis(port=server.port) as redis:
                yield landscape, redis
    finally:
        server.kill()


def demand(redis: Redis, replicas: int) -> None:
    """Have Redis refuse writes with fewer replicas than this."""
    cast("Any", redis).config_set("min-replicas-to-write", replicas)


async def test_a_write_is_unavailable_with_the_reason_and_an_order_waits(tmp_path: Path) -> None:
    requested, ordered = a_session_shoot("asked"), a_session_shoot("ordered")
    async with with_a_redis_of_its_own(tmp_path) as (landscape, redis):
        demand(redis, 1)
        response = await landscape.client.request(
            "garden.api.apply", json.dumps(requested).encode(), timeout=HANG_SECONDS
        )
        error = json.loads(response.data)["error"]
        assert error["code"] in (503, "Unavailable"), error
        assert "too few replicas (min-replicas-to-write)" in error["message"]
        await landscape.publish("garden.apply", [ordered])

        async def is_delivered_and_waits() -> None:
            info = await landscape.client.request("$JS.API.CONSUMER.INFO.REQUESTS.apiserver", timeout=HANG_SECONDS)
            assert json.loads(info.data)["num_ack_pending"] == 1

        await eventually(is_delivered_and_waits)
        doctor = await landscape.command("doctor", "-o", "json")
        found = {each["check"]: each for each in json.loads(doctor.stdout)["findings"]}
        assert found["redis replicas"]["state"] == "failed"
        assert "0 of 1 that min-replicas-to-write demands" in found["redis replicas"]["found"]
        assert "CONFIG SET min-replicas-to-write" in found["redis replicas"]["remedy"]
        assert [each["metadata"]["name"] for each in await landscape.list("shoot.garden-session")] == []
        demand(redis, 0)

        async def is_there() -> None:
            names = [each["metadata"]["name"] for each in await landscape.list("shoot.garden-session")]
            assert names == ["ordered"]

        await eventually(is_there)
        assert json.loads((await landscape.command("rejected", "-o", "json")).stdout)["items"] == []
