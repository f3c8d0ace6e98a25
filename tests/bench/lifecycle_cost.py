"""What watching Leases costs: `python tests/bench/lifecycle_cost.py [--seeds 5000] [--seconds 30]`.

Starts nats-server, redis-server, a relay and a lifecycle, stores seeds that have reported, sends each a renewal every
two seconds, and prints as JSON what share of a core the lifecycle process took (user and system time of /proc).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from gardenbus.common.adapters import jetstream
from gardenbus.common.adapters.jetstream import JetStreamBus
from gardenbus.common.adapters.redis_connection import RedisConnection
from gardenbus.common.adapters.redis_store import RedisStore
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.conditions import condition_status, conditions_of
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.runtime.clock import SystemClock
from tests.support.builders import a_seed
from tests.support.servers import start_nats, start_redis

RENEWAL_SECONDS = 2.0
TICK_SECONDS = 0.05


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def renew(bus: JetStreamBus, subjects: Subjects, seeds: list[str]) -> None:
    """Send every seed's renewal once in two seconds, spread evenly."""
    next_seed, began = 0, time.monotonic()
    while True:
        due = int((time.monotonic() - began) * len(seeds) / RENEWAL_SECONDS)
        written = datetime.now(UTC).isoformat()
        batch = [
            Message(
                subjects.lease(seed := seeds[number % len(seeds)]),
                f'{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{seed}"}},"spec":'
                f'{{"holderIdentity":"{seed}-0","leaseDurationSeconds":40,"renewTime":"{written}"}}}}'.encode(),
            )
            for number in range(next_seed, due)
        ]
        next_seed = due
        if batch:
            await bus.publish_many(batch)
        await asyncio.sleep(TICK_SECONDS)


async def store_seeds(store: RedisStore, seeds: list[str]) -> None:
    """Store them, once the relay has opened the store."""
    for seed in seeds:
        while True:
            try:
                await store.create(a_seed(seed))
            except Transient:
                await asyncio.sleep(0.2)
            else:
                break


async def measure(directory: Path, count: int, seconds: float) -> dict[str, float]:
    nats, redis = start_nats(directory / "nats", sync_interval='"2m"'), start_redis(directory / "redis")
    environment = {**os.environ, "GARDENBUS_NATS_URL": nats.url, "GARDENBUS_REDIS_URL": f"{redis.url}"}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in ("relay", "lifecycle"):
            log = (directory / f"{name}.log").open("wb")
            command = [sys.executable, "-m", f"gardenbus.{name}"]
            processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        return await _under_load(nats.url, redis.url, processes["lifecycle"].pid, count, seconds)
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()
        nats.stop()
        redis.stop()


async def _under_load(nats_url: str, redis_url: str, pid: int, count: int, seconds: float) -> dict[str, float]:
    subjects = Subjects()
    seeds = [f"seed-{number}" for number in range(count)]
    connection = RedisConnection(redis_url, subjects.prefix)
    store = RedisStore(connection, SystemClock(), reporter="bench")
    async with jetstream.connect(nats_url, "bench") as bus:
        await store_seeds(store, seeds)
        renewing = asyncio.create_task(renew(bus, subjects, seeds))
        await asyncio.sleep(RENEWAL_SECONDS * 2)
        sent_before = (await bus.position("LEASES")).sequence
        cpu_before, began = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(seconds)
        took, used = time.monotonic() - began, cpu_seconds(pid) - cpu_before
        sent = (await bus.position("LEASES")).sequence - sent_before
        renewing.cancel()
        stored = await store.get_many([ObjectKey("seed", "", seed) for seed in seeds])
    ready = sum(
        condition_status(conditions_of(each.document()), "GardenletReady") == "True"
        for each in stored
        if each is not None
    )
    await store.close()
    return {
        "seeds": count,
        "leases_per_second": round(sent / took, 1),
        "cores": round(used / took, 4),
        "microseconds_per_lease": round(used / sent * 1e6, 1),
        "still_ready": ready,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(asyncio.run(measure(Path(directory), given.seeds, given.seconds))))


if __name__ == "__main__":
    main()
