"""A stranger's gardenlet: it speaks to NATS alone, and knows of the project no more than the documented subjects."""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import nats
import nats.errors
import nats.js.api
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from tests.chaos import manifests
from tests.chaos.invariants import ControlPlane

Document = dict[str, Any]
HEARTBEAT_SECONDS = 2.0
REPEAT_SECONDS = 5.0
NOT_FOUND = 404


@dataclass
class _ControlPlane:
    uid: str
    identity: str
    manifest: Document


class StrangerGardenlet:
    """The gardenlet of one seed. What it built stays when it is killed."""

    def __init__(self, urls: list[str], seed: str = manifests.STRANGER) -> None:
        self.seed = seed
        self._urls = urls
        self._built: dict[str, _ControlPlane] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start its process, so to speak."""
        self._task = asyncio.create_task(self._live(), name=f"gardenlet of {self.seed}")

    async def kill(self) -> None:
        """End it at once."""
        while self._task is not None and not self._task.done():  # the client library swallows a cancellation at times
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)

    def control_planes(self) -> list[ControlPlane]:
        """What it runs."""
        return [
            ControlPlane(self.seed, name, each.uid, each.identity, is_running=True)
            for name, each in self._built.items()
        ]

    async def _live(self) -> None:
        while True:
            with contextlib.suppress(nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError):
                await self._connected()
            await asyncio.sleep(0.5)

    async def _connected(self) -> None:
        """One connection: heartbeats, and a look at all bindings after each change and every few seconds."""
        client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
            self._urls,
            allow_reconnect=False,
            connect_timeout=2,
            ping_interval=2,
            max_outstanding_pings=2,
            error_cb=_outage,
        )
        try:
            await self._register(client)
            jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
            subscription = await jetstream.subscribe(
                f"garden.binding.{self.seed}.>", stream="BINDINGS", ordered_consumer=True, deliver_policy=_LAST
            )
            registered_at = reported_at = time.monotonic()
            while client.is_connected:
                message: Msg | None = None
                with contextlib.suppress(TimeoutError):
                    message = await subscription.next_msg(timeout=HEARTBEAT_SECONDS / 4)
                if message is not None:  # what cannot be taken now ends the connection: the next one begins with all
                    await self._take(client, message)
                now = time.monotonic()
                if now - registered_at > HEARTBEAT_SECONDS:
                    registered_at = now
                    await self._register(client)
                if now - reported_at > REPEAT_SECONDS:
                    reported_at = now
                    await self._repeat(client)
                    await self._respond_to_recovery(client, jetstream)
        finally:
            with contextlib.suppress(Exception):
                await client.close()

    async def _respond_to_recovery(self, client: Client, jetstream: JetStreamContext) -> None:
        """Say what runs here, where a store that went back announces the Seed with the id of its recovery."""
        about = f"seed._.{self.seed}"
        try:
            seed: Any = await jetstream.get_last_msg("BINDINGS", f"garden.view.{self.seed}.{about}")
        except nats.js.errors.NotFoundError:
            return
        of_seed: Mapping[str, str] = seed.headers or {}
        recovery = of_seed.get("Gardenbus-Recovery", "")
        if not recovery:
            return
        items = [
            {"kind": "shoot", "namespace": namespace, "name": name, "uid": built.uid}
            for (namespace, _, name), built in ((each.partition("/"), built) for each, built in self._built.items())
        ]
        headers = {"Gardenbus-Question": "inventory", "Gardenbus-Recovery": recovery}
        body = json.dumps({"items": items}).encode()
        await client.publish(f"garden.report.{self.seed}.{about}", body, headers=headers)

    async def _take(self, client: Client, message: Msg) -> None:
        headers = message.headers or {}
        name = "/".join(message.subject.split(".", 4)[3:])
        built = self._built.get(name)
        if message.data:
            await self._wanted(client, name, json.loads(message.data), headers.get("Gardenbus-Role", ""))
            return
        if built is not None and built.uid == headers.get("Gardenbus-Uid"):
            del self._built[name]
        sequence = message.metadata.sequence.stream
        await self._report(client, name, headers.get("Gardenbus-Uid", ""), {}, question="gone", sequence=sequence)

    async def _wanted(self, client: Client, name: str, shoot: Document, role: str) -> None:
        metadata = shoot["metadata"]
        uid, built = metadata["uid"], self._built.get(name)
        if role not in {"run", ""}:
            return
        if metadata.get("deletionTimestamp"):
            self._built.pop(name, None)
        elif built is None or built.uid != uid:
            if not await self._is_stored_here(client, name, uid):
                return
            self._built[name] = _ControlPlane(uid, secrets.token_hex(8), shoot)
        else:
            built.manifest = shoot
        await self._report_shoot(client, name, shoot)

    async def _is_stored_here(self, client: Client, name: str, uid: str) -> bool:
        """Ask before anything is built: a nats-server that was killed brings bindings of deleted shoots back."""
        response = await client.request(f"garden.api.get.shoot.{name.replace('/', '.', 1)}", b"", timeout=2)
        reply = json.loads(response.data)
        if not reply["ok"] and reply["error"]["code"] != NOT_FOUND:
            raise TimeoutError(reply["error"]["message"])
        shoot = reply["result"] if reply["ok"] else {"metadata": {"uid": ""}}
        return shoot["metadata"]["uid"] == uid and shoot["spec"].get("seedName") == self.seed

    async def _report_shoot(self, client: Client, name: str, shoot: Document) -> None:
        """First the claim, then what became of it; the same again is no harm."""
        metadata, now = shoot["metadata"], _now()
        if metadata.get("deletionTimestamp"):
            last = {"type": "Delete", "state": "Succeeded", "progress": 100, "lastUpdateTime": now}
            await self._report(client, name, metadata["uid"], {"lastOperation": last})
            return
        last = {"type": "Create", "state": "Succeeded", "progress": 100, "lastUpdateTime": now}
        await self._report(client, name, metadata["uid"], {"seedName": self.seed})
        done = {"lastOperation": last, "observedGeneration": metadata["generation"]}
        await self._report(client, name, metadata["uid"], done)

    async def _repeat(self, client: Client) -> None:
        """What is not yet stored as it is here is reported again."""
        response = await client.request("garden.api.list.shoot", b'{"limit": 500}', timeout=2)
        reply = json.loads(response.data)
        for shoot in reply["result"]["items"] if reply["ok"] else ():
            metadata, status = shoot["metadata"], shoot.get("status", {})
            name = f"{metadata['namespace']}/{metadata['name']}"
            if shoot["spec"].get("seedName") != self.seed or name not in self._built:
                continue
            is_done = status.get("lastOperation", {}).get("state") == "Succeeded"
            if metadata.get("deletionTimestamp"):
                await self._wanted(client, name, shoot, "run")
            elif not is_done or status.get("observedGeneration") != metadata["generation"]:
                await self._report_shoot(client, name, shoot)

    async def _register(self, client: Client) -> None:
        now = _now()
        spec = {"holderIdentity": "stranger", "leaseDurationSeconds": 40, "renewTime": now}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.seed, "namespace": "gardener-system-seed-lease"},
            "spec": spec,
        }
        await _stored(client, f"garden.lease.{self.seed}", lease, {})
        subject = f"garden.report.{self.seed}.seed._.{self.seed}"
        await _stored(client, subject, manifests.stranger_seed(), {"Gardenbus-Verb": "apply"})
        room = {"shoots": str(manifests.CAPACITY)}
        times = {"lastTransitionTime": now, "lastUpdateTime": now}
        ready = {"type": "GardenletReady", "status": "True", "reason": "Here", "message": "It posts.", **times}
        last = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "lastUpdateTime": now}
        status: Document = {"conditions": [ready], "lastOperation": last, "capacity": room, "allocatable": room}
        await _stored(client, subject, {"status": status}, {})

    async def _report(
        self, client: Client, name: str, uid: str, status: Document, *, question: str = "", sequence: int = 0
    ) -> None:
        subject = f"garden.report.{self.seed}.shoot.{name.replace('/', '.', 1)}"
        headers = {"Gardenbus-Uid": uid}
        if question:
            headers |= {"Gardenbus-Question": question, "Gardenbus-Sequence": str(sequence)}
        await _stored(client, subject, {"status": status} if status else {}, headers)


async def _stored(client: Client, subject: str, body: Document, headers: Mapping[str, str]) -> None:
    await client.request(subject, json.dumps(body).encode(), timeout=2, headers=dict(headers))


async def _outage(_error: Exception) -> None:
    """A lost connection is what this is about; the gardenlet connects again."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


_LAST = nats.js.api.DeliverPolicy.LAST_PER_SUBJECT
