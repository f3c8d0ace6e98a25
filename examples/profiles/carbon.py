"""A plug-in of schedulers: seeds in regions with little carbon score high, and one region is closed.

It needs nats-py alone: `python carbon.py nats://127.0.0.1:4222`. The profile has `Remote/carbon` among its scores.
"""

# pyright: reportUnknownMemberType=false
import asyncio
import json
import sys

import nats
import nats.micro
from nats.micro.request import Request

GRAMS = {"eu-north-1": 20, "eu-west-1": 280, "us-central1": 430}
CLOSED = {"ap-south-1": "no new clusters here until 14:00"}


async def reply(request: Request) -> None:
    """Score each seed by its region, which here is in its name."""
    scores, rejected = {}, {}
    for seed in (each["name"] for each in json.loads(request.data)["seeds"]):
        region = next((each for each in (*GRAMS, *CLOSED) if each in seed), "")
        if region in CLOSED:
            rejected[seed] = CLOSED[region]
        else:
            scores[seed] = max(0, 100 - GRAMS.get(region, 500) // 5)
    await request.respond(json.dumps({"scores": scores, "rejected": rejected, "validForSeconds": 60}).encode())


async def main(url: str) -> None:
    """Serve until the process is ended."""
    connection = await nats.connect(url)
    service = await nats.micro.add_service(connection, name="carbon", version="1.0.0")
    await service.add_endpoint(name="carbon", subject="garden.plugin.carbon", handler=reply)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
