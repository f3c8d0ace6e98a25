"""Orders a shoot over NATS and waits for its seed, with nats-py alone.

Usage: python order_shoot.py DIRECTORY SHOOT.json

DIRECTORY is that of `gardenbus up` (`.gardenbus`): its landscape.json has the address, the operator's password, and the
file of the authorities that sign NATS' certificate.
"""

# pyright: basic

import asyncio
import json
import ssl
import sys
from pathlib import Path

import nats


async def main(landscape: dict[str, str], manifest: bytes) -> None:
    client = await nats.connect(
        landscape["nats_url"],
        user=landscape.get("nats_user"),
        password=landscape.get("nats_password"),
        tls=ssl.create_default_context(cafile=landscape["ca"]) if landscape.get("ca") else None,
    )
    response = json.loads((await client.request("garden.api.apply", manifest, timeout=10)).data)
    if not response["ok"]:
        error = response["error"]
        sys.exit(f"{error['reason']}: {error['message']}")  # it names the field, and how to correct it
    name = json.loads(manifest)["metadata"]
    changes = await client.jetstream().subscribe(
        f"garden.changed.shoot.{name['namespace']}.{name['name']}", stream="OBJECTS", ordered_consumer=True
    )
    async for message in changes.messages:  # begins with the shoot as it is
        shoot = json.loads(message.data)
        if seed := shoot["spec"].get("seedName"):
            print(f"{name['name']} is on {seed}")
            break
    await client.close()


described = json.loads((Path(sys.argv[1]) / "landscape.json").read_text())
asyncio.run(main(described, Path(sys.argv[2]).read_bytes()))
