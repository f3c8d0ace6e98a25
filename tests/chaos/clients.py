"""Strangers' clients: they order, ask, change, move and delete over plain NATS, and note what was acknowledged."""

import asyncio
import contextlib
import itertools
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import nats
import nats.errors
import yaml
from nats.aio.client import Client

from tests.chaos import manifests
from tests.chaos.invariants import Violation, value_of
from tests.chaos.ledger import Entry, Ledger

Document = dict[str, Any]
OUTAGES = (nats.errors.Error, OSError, TimeoutError)
RETRY_SECONDS = 0.2
REQUEST_SECONDS = 3.0
TEMPORARY = frozenset({409, 429, 500, 503, 504})
LARGEST_POPULATION = 8


class ChaosClient(ABC):
    """One client. What it has begun it repeats until it is acknowledged, then it may pause."""

    def __init__(self, name: str, client: Client, ledger: Ledger, seed: int) -> None:
        self.name = name
        self.doing = ""
        """What it has sent and not finished; "" while it pauses."""
        self.requests = 0
        self.violations: list[Violation] = []
        self._client = client
        self._ledger = ledger
        self._random = random.Random(f"{seed} {name}")

    @abstractmethod
    async def act(self) -> None:
        """Do one thing, to its end."""

    async def _query(self, tail: str, body: object = None, *, may_be: frozenset[int] = frozenset()) -> Document:
        """Ask until there is an answer that is final; `may_be` are codes of errors that are as good."""
        payload = b"" if body is None else json.dumps(body).encode()
        while True:
            with contextlib.suppress(*OUTAGES):
                response = await self._client.request(f"garden.api.{tail}", payload, timeout=REQUEST_SECONDS)
                reply: Document = json.loads(response.data)
                self.requests += 1
                code = 0 if reply["ok"] else reply["error"]["code"]
                if reply["ok"] or code in may_be:
                    return reply
                if code not in TEMPORARY:
                    self.violations.append(Violation("refused", f"{tail}: {reply['error']}"))
                    return reply
            await asyncio.sleep(RETRY_SECONDS)

    async def _publish(self, subject: str, body: bytes) -> None:
        """Publish until JetStream acknowledges."""
        while True:
            with contextlib.suppress(*OUTAGES):
                reply = await self._client.request(subject, body, timeout=REQUEST_SECONDS)
                if "seq" in json.loads(reply.data):
                    return
            await asyncio.sleep(RETRY_SECONDS)


class ShootOwner(ChaosClient):
    """A client with shoots of its own."""

    largest = LARGEST_POPULATION
    """Shoots above which it orders no further one."""

    def __init__(self, name: str, client: Client, ledger: Ledger, seed: int) -> None:
        super().__init__(name, client, ledger, seed)
        self._numbers = itertools.count()
        self._mine: dict[str, str] = {}
        """Names of its shoots, and their regions."""

    @abstractmethod
    async def apply(self, name: str, document: Document, value: int) -> None:
        """Have a manifest stored."""

    @abstractmethod
    async def delete(self, name: str) -> None:
        """Have a shoot deleted."""

    async def act(self) -> None:
        """Create, change or delete one shoot."""
        if len(self._mine) < self.largest and self._random.random() < 0.6:
            name = f"{self.name}-{next(self._numbers)}"
            self._mine[name] = self._random.choice(manifests.REGIONS)
            await self._put(name)
        elif self._mine and self._random.random() < 0.75:
            await self._put(self._random.choice(sorted(self._mine)))
        elif self._mine:
            name = self._random.choice(sorted(self._mine))
            full_name = f"{manifests.NAMESPACE}/{name}"
            del self._mine[name]
            self.doing = f"delete {name}"
            self._ledger.trying_to_delete(full_name)
            await self.delete(name)
            self._ledger.deleted(full_name)
        self.doing = ""

    async def _put(self, name: str) -> None:
        full_name = f"{manifests.NAMESPACE}/{name}"
        value = self._ledger.entries.get(full_name, Entry(value=-1)).value + 1
        self.doing = f"apply {name}={value}"
        self._ledger.trying(full_name, value)
        await self.apply(name, manifests.shoot(name, self._mine[name], value), value)
        self._ledger.applied(full_name, value)


class Publisher(ShootOwner):
    """Sends orders, in JSON or YAML, and every now and then the same once more."""

    async def apply(self, name: str, document: Document, value: int) -> None:
        body = json.dumps(document).encode() if value % 2 else yaml.safe_dump(document).encode()
        for _ in range(self._random.choice((1, 1, 2))):
            await self._publish("garden.apply", body)

    async def delete(self, name: str) -> None:
        reference = {"kind": "Shoot", "namespace": manifests.NAMESPACE, "name": name}
        for _ in range(self._random.choice((1, 1, 2))):
            await self._publish("garden.delete", json.dumps(reference).encode())


class GroupOwner(Publisher):
    """Orders groups of shoots that are kept apart, all members of one at once, by two schedulers."""

    largest = 0

    async def act(self) -> None:
        """Order a whole group now and then; else change or delete one shoot."""
        if len(self._mine) <= manifests.A_GROUP and self._random.random() < 0.5:
            numbers = [next(self._numbers) for _ in range(manifests.A_GROUP)]
            region = manifests.REGIONS[numbers[0] % 2]
            self._mine |= {f"{self.name}-{number}": region for number in numbers}
            await asyncio.gather(*(self._put(f"{self.name}-{number}") for number in numbers))
            self.doing = ""
        elif self._mine:
            await super().act()

    async def apply(self, name: str, document: Document, value: int) -> None:
        """Publish a member of its group."""
        number = int(name.rpartition("-")[2])
        group = f"{self.name}-{number // manifests.A_GROUP}"
        await super().apply(name, manifests.kept_apart(document, group, number), value)


class Requester(ShootOwner):
    """Sends requests, and reads back what it has written."""

    async def apply(self, name: str, document: Document, value: int) -> None:
        if value == 0 or self._random.random() < 0.5:
            await self._query("apply", document)
        else:
            workers = document["spec"]["provider"]["workers"]
            patch = {
                "metadata": {"annotations": manifests.annotations(value)},
                "spec": {"provider": {"workers": workers}},
            }
            await self._query(f"patch.shoot.{manifests.NAMESPACE}.{name}", patch)
        reply = await self._query(f"get.shoot.{manifests.NAMESPACE}.{name}", may_be=frozenset({404}))
        if not reply["ok"] or value_of(reply["result"]) != value:
            self.violations.append(Violation("lost", f"{name}={value} was acknowledged, and read back is {reply}"))

    async def delete(self, name: str) -> None:
        await self._query(f"delete.shoot.{manifests.NAMESPACE}.{name}", may_be=frozenset({404}))


class Mover(ChaosClient):
    """Moves the others' shoots between the seeds of their region. A move may be refused: seeds are often full."""

    async def act(self) -> None:
        """Move one shoot that stands."""
        wanted = [name for name, each in self._ledger.wanted().items() if not each.may_go]
        if not wanted:
            return
        full_name = self._random.choice(sorted(wanted))
        self.doing = f"move {full_name}"
        namespace, _, name = full_name.partition("/")
        reply = await self._query(f"get.shoot.{namespace}.{name}", may_be=frozenset({404}))
        seed = reply["result"]["spec"].get("seedName") if reply["ok"] else None
        if seed and seed != manifests.STRANGER:
            entry = self._ledger.entries[full_name]
            entry.is_moving = True
            count = manifests.GARDENLET_PROCESSES * manifests.SEEDS_A_PROCESS
            number = (int(seed.removeprefix("seed-")) + 2 * self._random.randrange(1, count // 2)) % count
            version = reply["result"]["metadata"]["resourceVersion"]
            body = {"namespace": namespace, "name": name, "seed": f"seed-{number}", "resourceVersion": version}
            with contextlib.suppress(*OUTAGES):
                await self._client.request("garden.api.bind", json.dumps(body).encode(), timeout=REQUEST_SECONDS)
                self.requests += 1
        self.doing = ""


class Placer(Publisher):
    """Changes what is placed on all member clusters."""

    value = 0

    async def send(self, document: Document) -> None:
        """Have a manifest stored, whoever counts it."""
        await self._query("apply", document)

    async def act(self) -> None:
        """Give it another value."""
        self.doing = f"place {self.value + 1}"
        body = json.dumps(manifests.parcel(self.value + 1)).encode()
        await self._publish("garden.apply", body)
        self.value += 1
        self._ledger.acknowledged += 1
        self.doing = ""


class Crowd:
    """All clients, each in a task of its own; they pause together, between two orders."""

    def __init__(self, client: Client, ledger: Ledger, seed: int, *, every_seconds: float = 0.5) -> None:
        self.placer = Placer("placer", client, ledger, seed)
        makers: Sequence[Callable[[str, Client, Ledger, int], ChaosClient]] = (
            Publisher,
            Publisher,
            Requester,
            Requester,
        )
        self.clients: Sequence[ChaosClient] = [
            *(make(f"{make.__name__.lower()}-{number}", client, ledger, seed) for number, make in enumerate(makers)),
            GroupOwner("groups", client, ledger, seed),
            Mover("mover", client, ledger, seed),
            self.placer,
        ]
        self._every_seconds = every_seconds
        self._ledger = ledger
        self._may_act = asyncio.Event()
        self._acting: set[ChaosClient] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return sum(each.requests for each in self.clients)

    def start(self) -> None:
        """Begin."""
        self._may_act.set()
        self._tasks = [asyncio.create_task(self._live(each), name=each.name) for each in self.clients]

    async def stop(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def pause(self) -> None:
        """Order nothing new."""
        self._may_act.clear()

    def resume(self) -> None:
        """Go on."""
        for entry in self._ledger.entries.values():
            entry.is_moving = False
        self._may_act.set()

    def unfinished(self) -> list[Violation]:
        """Orders that were begun and are not acknowledged yet; ended tasks, which are failures of the harness."""
        for task in self._tasks:
            if task.done():
                task.result()
        return [Violation("unanswered", f"{each.name}: {each.doing}") for each in self._acting]

    def take_violations(self) -> list[Violation]:
        """What clients themselves have seen, once."""
        found = [violation for each in self.clients for violation in each.violations]
        for each in self.clients:
            each.violations.clear()
        return found

    async def _live(self, client: ChaosClient) -> None:
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep
        while True:
            await self._may_act.wait()
            self._acting.add(client)
            await client.act()
            self._acting.discard(client)
            await pause(self._every_seconds)
