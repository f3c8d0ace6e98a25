"""Observer: looks at a landscape from outside, through NATS, its files, and its processes."""

import contextlib
import json
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.doctor import examined
from tests.chaos import manifests
from tests.chaos.invariants import VALUE_ANNOTATION, ControlPlane, Observation, Violation
from tests.chaos.landscape import ChaosLandscape
from tests.chaos.stranger import StrangerGardenlet

Document = dict[str, Any]
WORK_STREAMS = ("REQUESTS", "REPORTS", "QUEUES")
QUEUES = (
    "scheduling.default-scheduler",
    f"scheduling.{manifests.OTHER_SCHEDULER}",
    "waking",
    "migration",
    "garbage",
    "managedseedset",
    "autoscaler",
    "placement",
)
SERVED = ("garden.apply", "garden.delete", "garden.report.", *(f"garden.queue.{queue}" for queue in QUEUES))
"""Beginnings of the subjects of work that somebody takes; strangers may put work into other queues."""


class NotSeen(Exception):
    """The landscape does not respond now."""


class Versions:
    """Watches every change, and notes versions that go back."""

    def __init__(self) -> None:
        self.backwards: list[Violation] = []
        self._last: dict[str, int] = {}

    async def take(self, message: Msg) -> None:
        """Look at one announcement of a shoot."""
        version = int((message.headers or {}).get("Gardenbus-Version", "0"))
        last = self._last.get(message.subject, 0)
        if version < last:
            self.backwards.append(Violation("backwards", f"{message.subject}: {version} after {last}"))
        self._last[message.subject] = version


class Observer:
    """See the module."""

    def __init__(self, landscape: ChaosLandscape, stranger: StrangerGardenlet, client: Client) -> None:
        self._landscape = landscape
        self._stranger = stranger
        self._client = client

    async def observe(self) -> Observation:
        """Everything that the invariants need. Raises NotSeen."""
        try:
            return await self._observed()
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise NotSeen(f"{type(error).__name__}: {error}") from error

    async def streams(self) -> Mapping[str, Any]:
        """Streams and consumers of work as NATS tells them, to find out what went wrong."""
        announced: dict[str, Any] = {}
        for stream in WORK_STREAMS:
            with contextlib.suppress(nats.errors.Error, OSError, TimeoutError, NotSeen):
                announced[stream] = await self._jetstream(f"STREAM.INFO.{stream}", {"subjects_filter": ">"})
                announced[f"{stream} consumers"] = await self._jetstream(f"CONSUMER.LIST.{stream}", {})
        return announced

    async def doctor(self) -> list[Violation]:
        """What `gardenbus doctor` says has failed."""
        target = LandscapeTarget(",".join(self._landscape.nats_urls), "garden")
        cluster, redis_url = self._landscape.cluster, self._landscape.redis_url
        findings = await examined(target, cluster.users.operators_url(redis_url) if cluster else redis_url)
        return [Violation("doctor", f"{each.check}: {each.found}") for each in findings if each.state == "failed"]

    async def _observed(self) -> Observation:
        cluster = self._landscape.cluster
        control_planes = [*self._built(), *self._stranger.control_planes()]
        shoots = await self._list(f"list.shoot.{manifests.NAMESPACE}")
        seeds = await self._list("list.seed")
        queued, left_behind = await self._work()
        return Observation(
            shoots={f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in shoots},
            allocatable={
                each["metadata"]["name"]: int(each.get("status", {}).get("allocatable", {}).get("shoots", 0))
                for each in seeds
            },
            regions={each["metadata"]["name"]: each["spec"]["provider"]["region"] for each in seeds},
            control_planes=control_planes,
            bindings=await self._bindings({each["metadata"]["name"] for each in seeds}),
            queued=queued,
            left_behind=left_behind,
            unready={**self._landscape.unready(), **(await cluster.unready() if cluster else {})},
            died=self._landscape.died(),
            memory_mb=self._landscape.memory_mb(),
            delivered={name: self._delivered(name) for name in manifests.member_names()},
        )

    async def _list(self, tail: str) -> Sequence[Document]:
        response = await self._client.request(f"garden.api.{tail}", b'{"limit": 500}', timeout=3)
        decoded = json.loads(response.data)
        if not decoded["ok"]:
            raise NotSeen(f"{tail}: {decoded['error']['message']}")
        return decoded["result"]["items"]

    def _built(self) -> Sequence[ControlPlane]:
        """Control planes of our gardenlets, from their files."""
        found: list[ControlPlane] = []
        for file in self._landscape.directory.gardenlets.glob("*/shoots/*/*.json"):
            try:
                record = msgspec.json.decode(file.read_bytes())
            except (FileNotFoundError, msgspec.DecodeError):
                continue
            resources: Mapping[str, Mapping[str, str]] = record["resources"]
            found.append(
                ControlPlane(
                    seed=file.parents[2].name,
                    shoot=f"{record['namespace']}/{record['name']}",
                    uid=record["uid"],
                    identity=resources.get("etcd", {}).get("volume", ""),
                    is_running="control-plane" in resources,
                )
            )
        return found

    async def _bindings(self, seeds: Container[str]) -> Sequence[tuple[str, str]]:
        """Bindings that are announced now: the last message of each subject, unless it is a tombstone.

        Garbage is published there too; nobody reads what is for a seed that does not exist.
        """
        inbox = await self._client.subscribe(self._client.new_inbox())  # pyright: ignore[reportUnknownMemberType]
        found: list[tuple[str, str]] = []
        try:
            body = json.dumps({"multi_last": ["garden.binding.>"]}).encode()
            await self._client.publish("$JS.API.DIRECT.GET.BINDINGS", body, reply=inbox.subject)
            while True:
                message = await inbox.next_msg(timeout=3)
                headers = message.headers or {}
                if "Status" in headers:
                    break
                tokens = headers["Nats-Subject"].split(".", 4)
                if message.data and len(tokens) == 5 and tokens[2] in seeds and tokens[3] == manifests.NAMESPACE:
                    found.append((tokens[2], f"{tokens[3]}/{tokens[4]}"))
        finally:
            await inbox.unsubscribe()
        return found

    async def _work(self) -> tuple[Mapping[str, int], int]:
        """Work that waits or is in hand, by consumer, with the outbox; and messages that no consumer will get.

        nats-server keeps a message whose acknowledgement it has stored, if its removal could not be written.
        """
        queued: dict[str, int] = {}
        stored = 0
        for stream in WORK_STREAMS:
            info = await self._jetstream(f"STREAM.INFO.{stream}", {"subjects_filter": ">"})
            subjects: Mapping[str, int] = info["state"].get("subjects") or {}
            stored += sum(count for subject, count in subjects.items() if subject.startswith(SERVED))
            for consumer in (await self._jetstream(f"CONSUMER.LIST.{stream}", {}))["consumers"] or ():
                queued[f"{stream} {consumer['name']}"] = consumer["num_pending"] + consumer["num_ack_pending"]
        response = await self._client.request("garden.api.census", b"", timeout=3)
        decoded = json.loads(response.data)
        left_behind = max(0, stored - sum(queued.values()))
        return queued | {"outbox": decoded["result"]["outbox"] if decoded["ok"] else -1}, left_behind

    async def _jetstream(self, request: str, body: Document) -> Document:
        reply = await self._client.request(f"$JS.API.{request}", json.dumps(body).encode(), timeout=3)
        info: Document = json.loads(reply.data)
        if "error" in info:
            raise NotSeen(f"{request}: {info['error']}")
        return info

    def _delivered(self, cluster: str) -> int | None:
        """The value of the placed object in a member cluster."""
        folder: Path = self._landscape.directory.members / cluster / "manifests"
        for file in folder.glob(f"*,{manifests.PLACED_NAMESPACE},{manifests.PLACED}.json"):
            try:
                stored = msgspec.json.decode(file.read_bytes())
            except (FileNotFoundError, msgspec.DecodeError):
                return None
            return int(stored["manifest"]["metadata"]["annotations"][VALUE_ANNOTATION])
        return None
