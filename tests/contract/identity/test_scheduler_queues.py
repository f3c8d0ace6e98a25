"""A scheduler of one's own gets its work with the credentials that were issued to it, on real servers."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client

from gardenbus.common.api.keys import ObjectKey
from tests.contract.identity.test_token_requestor import KEY, requesting
from tests.e2e.test_own_scheduler import own_scheduler
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape

MINE = ObjectKey("shoot", "garden-dev", "mine")


async def connected(landscape: GuardedLandscape) -> Client:
    """A client of nobody's but the scheduler's, by what its Secret has."""

    async def issued() -> dict[str, Any]:
        data = (await landscape.stored(KEY)).get("data", {})
        return json.loads(base64.b64decode(data["token"]))

    login = await eventually(issued)

    async def accepted() -> Client:
        try:
            return await nats.connect(  # pyright: ignore[reportUnknownMemberType]
                landscape.nats.url,
                user=login["user"],
                password=login["password"],
                inbox_prefix=f"_INBOX.{login['user']}",
                allow_reconnect=False,
            )
        except nats.errors.Error as error:  # the identity service has not heard of them yet
            raise AssertionError(str(error)) from error

    return await eventually(accepted)


async def test_a_scheduler_binds_with_its_issued_credentials_also_where_its_stream_was_made_anew(
    tmp_path: Path,
) -> None:
    async with guarded_landscape(tmp_path) as landscape:
        for document in (a_project(), a_cloudprofile(), a_seed("aws-eu1")):
            await landscape.operator.request("apply", document)
        await landscape.operator.request("apply", requesting("scheduler:mine"))
        client = await connected(landscape)
        scheduler = asyncio.create_task(own_scheduler(client, "scheduler:mine"))

        async def bound(name: str) -> None:
            if scheduler.done():
                await scheduler  # it ends by an error alone
            shoot = await landscape.stored(ObjectKey("shoot", "garden-dev", name))
            assert shoot["spec"].get("seedName") == "aws-eu1"

        await landscape.operator.request("apply", a_shoot("mine", spec={"schedulerName": "mine"}))
        await eventually(lambda: bound("mine"))
        scheduler.cancel()
        await client.close()
