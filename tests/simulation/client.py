"""Stranger's client: orders and deletes shoots on `garden.apply` and `garden.delete`. Another publishes garbage.

Every order carries its number as a label, so that an object says which order it has the content of.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message
from tests.simulation.actor import Actor
from tests.simulation.connections import SimulatedBus
from tests.support.builders import a_shoot

ORDER = "Order"
"""Header with the number of an order: tests recognize its message by it."""

LABEL = "order"
NAMESPACE = "garden-dev"
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}

Verb = Literal["apply", "delete"]


class Order(NamedTuple):
    """One order: what shall become of which shoot."""

    number: int
    name: str
    verb: Verb

    def message(self, subjects: Subjects) -> Message:
        """The message that places it."""
        subject = subjects.apply if self.verb == "apply" else subjects.delete
        return Message(subject, _body(self.name, self.number), {ORDER: str(self.number)})


_bodies: dict[tuple[str, int], bytes] = {}


def _body(name: str, number: int) -> bytes:
    if (name, number) not in _bodies:
        metadata = {"labels": {LABEL: str(number)}, "annotations": CONFIRMED}
        _bodies[name, number] = encode(a_shoot(name, NAMESPACE, metadata=metadata))
    return _bodies[name, number]


def plan(random: Random, names: Sequence[str], count: int, first: int) -> list[Order]:
    """Some orders; two of five delete what is (or may be) there."""
    ordered: set[str] = set()
    orders: list[Order] = []
    for number in range(first, first + count):
        name = random.choice(names)
        verb: Verb = "delete" if name in ordered and random.random() < 0.4 else "apply"
        ordered.add(name)
        orders.append(Order(number, name, verb))
    return orders


class Client:
    """Places orders one after the other; one whose outcome is unknown may be placed again, or left at that."""

    def __init__(self, bus: SimulatedBus, subjects: Subjects, orders: list[Order], random: Random) -> None:
        self._bus, self._subjects, self._random = bus, subjects, random
        self._orders = orders

    async def run(self, actor: Actor) -> None:
        """Work on the list: what is left of it survives the process."""
        while self._orders:
            order = self._orders[0]
            try:
                await self._bus.publish(order.message(self._subjects))
            except Unavailable:
                if self._random.random() < 0.5:
                    continue
            if self._orders and self._orders[0] is order:
                self._orders.pop(0)
        await actor.loop.create_future()


GARBAGE = (
    ("garden.apply", b"{"),
    ("garden.apply", b"kind: Shoot"),
    ("garden.delete", b"\xff\xfe"),
    ("garden.as..apply", b"[]"),
    ("garden.report.s1", b"{}"),
    ("garden.report.s1.shoot.garden-dev.a", b"]"),
    ("garden.report.s1.shoot", b'{"status": 3}'),
    ("garden.queue.scheduling.default-scheduler.x", b""),
    ("garden.queue.scheduling.default-scheduler.garden-dev.nobody", b"{"),
    ("garden.queue.waking._.default-scheduler", b"\x00"),
)
"""Messages that nobody can read, on every subject that a service consumes."""


class Vandal:
    """Publishes some garbage, once."""

    def __init__(self, bus: SimulatedBus, messages: list[tuple[str, bytes]]) -> None:
        self._bus = bus
        self._messages = messages

    async def run(self, actor: Actor) -> None:
        """Publish what is left of it."""
        while self._messages:
            subject, body = self._messages.pop()
            try:
                await self._bus.publish(Message(subject, body))
            except Exception:  # noqa: BLE001 - a vandal tries no further
                continue
        await actor.loop.create_future()
