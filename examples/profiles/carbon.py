"""A plug-in of schedulers: seeds in regions with little carbon score high, and one region is closed.

`python carbon.py nats://127.0.0.1:4222 [FILE]`, with credentials in FILE where there are identities. It needs nats-py
alone. The profile has `Remote/carbon` among its scores.
"""

# pyright: reportUnknownMemberType=false
import asyncio
import json
import sys
from pathlib import Path

import nats

GRAMS = {"eu-north-1": 20, "eu-west-1": 280, "us-central1": 430}
CLOSED = {"ap-south-1": "no new clusters here until 14:00"}


def reply(seeds: list[str]) -> dict[str, object]:
    """Score each seed by its region, which here is in its name."""
    regions = {seed: next((each for each in (*GRAMS, *CLOSED) if each in seed), "") for seed in seeds}
    rejected = {seed: CLOSED[region] for seed, region in regions.items() if region in CLOSED}
    scores = {seed: max(0, 100 - GRAMS.get(regions[seed], 500) // 5) for seed in seeds if seed not in rejected}
    return {"scores": scores, "rejected": rejected, "validForSeconds": 60}


async def main(url: str, login: dict[str, str]) -> None:
    """Respond until the session ends; several in one queue group share the requests."""
    connection = await nats.connect(url, user=login.get("user"), password=login.get("password"))
    subscription = await connection.subscribe("garden.plugin.carbon", queue="carbon")
    await connection.flush()
    print("ready", flush=True)
    async for message in subscription.messages:
        seeds = [seed["name"] for seed in json.loads(message.data)["seeds"]]
        await message.respond(json.dumps(reply(seeds)).encode())


while True:  # with identities a session ends after an hour
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()) if sys.argv[2:] else {}))
