"""A scheduler of a user's own, on nothing but the bus's contracts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from nats.aio.client import Client

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.gardenlets import conditions
from tests.support.landscape import a_landscape

ROOT = Path(__file__).parents[2]


async def own_scheduler(client: Client, user: str = "") -> None:
    """Bind every Shoot with `schedulerName: mine` to the last seed by name that takes it.

    `user`: the one who comes in by issued credentials; "" on servers without identities.
    """
    api, streams = (f"garden.as.{user}.api", "IN.API") if user else ("garden.api", "$JS.API")
    jetstream = client.jetstream(prefix=streams)  # pyright: ignore[reportUnknownMemberType]
    work = await jetstream.pull_subscribe("garden.queue.scheduling.mine.>", durable="scheduling-mine", stream="QUEUES")

    async def query(tail: str, body: object = None) -> Any:
        payload = json.dumps(body).encode() if body else b""
        return json.loads((await client.request(f"{api}.{tail}", payload, timeout=HANG_SECONDS)).data)

    while True:
        try:
            messages = await work.fetch(10, timeout=1)
        except TimeoutError:
            continue
        for message in messages:
            namespace, name = message.subject.split(".", 5)[4:]
            shoot = (await query(f"get.shoot.{namespace}.{name}")).get("result")
            if not shoot or shoot["spec"].get("seedName"):  # it is gone, or placed already
                await message.ack()
                continue
            version = shoot["metadata"]["resourceVersion"]  # a bind that comes late must not move a placed shoot
            seeds = [seed["metadata"]["name"] for seed in (await query("list.seed"))["result"]["items"]]
            for seed in sorted(seeds, reverse=True):
                wanted = {"namespace": namespace, "name": name, "seed": seed, "resourceVersion": version}
                if (await query("bind", wanted))["ok"]:
                    await message.ack()
                    break
            else:  # no seed takes it now, or it has changed: the work comes back
                await message.nak(delay=0.5)


@pytest.mark.slow
async def test_a_shoot_with_another_scheduler_name_is_bound_by_that_scheduler_alone(tmp_path: Path) -> None:
    gardenlet = yaml.safe_load((ROOT / "examples/session/gardenlet.yaml").read_text())
    other = json.loads(json.dumps(gardenlet).replace("earth-1", "earth-2"))
    files = tmp_path / "files.yaml"
    files.write_text(yaml.safe_dump_all([gardenlet, other, a_project(), a_cloudprofile(spec={"type": "local"})]))
    async with a_landscape(tmp_path / "state", "-f", str(files)) as landscape:

        async def ready() -> None:
            seeds = await landscape.list("seed")
            assert {seed["metadata"]["name"] for seed in seeds} == {"earth-1", "earth-2"}
            assert all(conditions(seed).get("GardenletReady") == "True" for seed in seeds), seeds

        await eventually(ready)
        mine = a_shoot("mine", spec={"schedulerName": "mine", "region": "mars", "provider": {"type": "local"}})
        await landscape.publish("garden.apply", [mine])

        async def stored() -> None:
            shoot = await landscape.query("get.shoot.garden-dev.mine")
            assert "seedName" not in shoot["spec"]

        await eventually(stored)
        stale = (await landscape.query("get.shoot.garden-dev.mine"))["metadata"]["resourceVersion"]
        await asyncio.sleep(1)
        await stored()  # ours leaves it alone, though the queue has long had it
        scheduler = asyncio.create_task(own_scheduler(landscape.client))

        async def bound() -> None:
            if scheduler.done():
                await scheduler  # it ends by an error alone
            shoot = await landscape.query("get.shoot.garden-dev.mine")
            assert shoot["spec"].get("seedName") == "earth-2"
            assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

        await eventually(bound)
        late = {"namespace": "garden-dev", "name": "mine", "seed": "earth-1", "resourceVersion": stale}
        response = json.loads(
            (await landscape.client.request("garden.api.bind", json.dumps(late).encode(), timeout=HANG_SECONDS)).data
        )
        assert response["error"]["code"] == 409, response
        await bound()
        scheduler.cancel()
