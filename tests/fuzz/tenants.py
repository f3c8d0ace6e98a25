"""What keeps tenants apart, in process: the way of outsiders' messages, by the rules that stand on it.

A drawn message takes the way that it takes through the servers: the permission table, the header that nats-server
writes when a message crosses accounts, the streams as they are configured, the consumers that the apiserver makes.
Beside messages: requests that are in flight, those that wait for a slot, and unknown objects that agents report.
"""

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from gardenbus.apiserver.domain import fair_slots, in_flight, own_consumers, senders
from gardenbus.common.adapters.nats import messages, streams
from gardenbus.common.api.budgets import DEFAULT_BUDGET, OverBudget
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity import permissions
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import BadRequest, GardenbusError, Impersonation
from gardenbus.common.ports.store import UnknownObject
from tests.fuzz.attackers import ATTACKERS
from tests.fuzz.attacks import MEBIBYTE, Attacks
from tests.fuzz.corpus import Template
from tests.fuzz.findings import Finding, Findings
from tests.fuzz.messages import messages_of
from tests.fuzz.process import SAMPLE, stored_world
from tests.fuzz.roles import QUIET
from tests.support.garbage import Garbage
from tests.support.stores import in_memory

SUBJECTS = Subjects()
LEASE_SECONDS = 40.0
CREATION = f"{permissions.IMPORTED_JETSTREAM_API}.CONSUMER.CREATE."
VICTIMS = ("operator", QUIET)
SLOTS = 6
REPORTED = 1010
"""Unknown objects of one seed: more than all seeds have places."""

ACTING_HEADERS: Mapping[str, str] = {
    "Nats-Batch-Id": "allow_atomic",
    "Nats-Rollup": "allow_rollup_hdrs",
    "Nats-Schedule": "allow_msg_schedules",
}
"""Headers by which one message has the server do something to others, and the stream's setting that allows it."""


def crossed(headers: bytes, user: str) -> bytes:
    """A header block as nats-server hands it over to another account: its own header in place of the final CRLF."""
    own = b"Nats-Request-Info: " + json.dumps({"acc": "OUTSIDE", "user": user}).encode() + b"\r\n\r\n"
    return (headers[:-2] if headers else b"NATS/1.0\r\n") + own


class TenantFuzzer:
    """Draws of one seed; the same seed draws the same."""

    def __init__(self, seed: int) -> None:
        drawn = messages_of(_templates(), seed)
        self._chance = random.Random(seed)
        self._attacks = [(each, Attacks(each, drawn, seed)) for each in ATTACKERS]
        self._streams = streams.streams(SUBJECTS, LEASE_SECONDS)
        self._findings = Findings()
        self._number = 0

    def run(self, count: int) -> Findings:
        """Draw so many times."""
        for self._number in range(count):
            kind = self._chance.choices(
                (self._message, self._consumer, self._in_flight, self._waiting, self._unknown), (300, 300, 200, 200, 5)
            )[0]
            kind()
        self._findings.inputs += count
        return self._findings

    def _find(self, place: str, what: str, sample: object = "") -> None:
        self._findings.add(Finding(place, what, self._number, repr(sample)[:SAMPLE]))

    # ------------------------------------------------------------------------------------------ messages

    def _message(self) -> None:
        """A drawn message, on the whole way."""
        principal, attacks = self._chance.choice(self._attacks)
        self._send(principal, attacks.next().message)

    def _consumer(self) -> None:
        """A consumer of one's own, which would deliver what it has, or its heartbeats, to somebody's stream."""
        principal = self._chance.choice(ATTACKERS)
        own = permissions.own_consumers(principal, SUBJECTS)
        if not own:
            self._findings.outcomes["no consumer"] += 1
            return
        filter_subject, name = self._chance.choice(sorted(own.items()))
        stream = "BINDINGS" if principal.role == "gardenlet" else "OBJECTS"
        config: Document = {"name": name, "ack_policy": "none", "filter_subject": filter_subject}
        if self._chance.random() < 0.8:
            deliver = self._chance.choice(("garden.apply", "garden.as.quiet.apply", "garden.report.aws-cork.shoot.a.b"))
            config |= {"deliver_subject": deliver, "idle_heartbeat": 100_000_000, "flow_control": True}
        body = json.dumps({"stream_name": stream, "config": config}).encode()
        self._send(principal, Garbage(f"{CREATION}{stream}.{name}.{filter_subject}".encode(), b"", body))

    def _send(self, principal: Principal, message: Garbage) -> None:
        subject = message.subject.decode("utf-8", "replace")
        if not permissions.covers(permissions.permissions_of(principal, SUBJECTS).publish, subject):
            self._findings.outcomes["not permitted"] += 1
            return
        headers = messages.decode_headers(crossed(message.headers, principal.user))
        for victim in VICTIMS:
            with contextlib.suppress(Impersonation):
                senders.check_sender(headers, victim)
                self._find("sender", f"a message of {principal} counts as {victim}'s", message)
        if subject.startswith(CREATION):
            self._create_consumer(subject.removeprefix(CREATION), message)
        for name, stream in self._streams.items():
            if permissions.covers(stream["subjects"], subject):
                self._store(name, stream, headers, message)
        self._findings.outcomes["taken"] += 1

    def _create_consumer(self, tail: str, message: Garbage) -> None:
        try:
            made = own_consumers.own_consumer(SUBJECTS.consumer(tail), message.body, SUBJECTS)
        except BadRequest:
            self._findings.outcomes["consumer rejected"] += 1
            return
        config = json.loads(made.body)["config"]
        if config.get("deliver_subject"):
            self._find("consumer", f"{made.name} delivers to {config['deliver_subject']}", message)

    def _store(self, name: str, stream: Mapping[str, object], headers: Mapping[str, str], message: Garbage) -> None:
        """What JetStream makes of a message on a stream that is configured so."""
        for header, setting in ACTING_HEADERS.items():
            if header in headers and stream.get(setting):
                self._find(f"{header} on {name}", f"a message acts on others: {setting} is on", message)
        is_last = stream.get("max_msgs_per_subject") == 1
        is_bounded = int(str(stream.get("max_bytes", -1))) > 0 and stream.get("discard") == "new"
        if not (is_last or is_bounded):
            self._find(f"bytes of {name}", "what outsiders send fills the disk, or takes the place of others'", message)

    # ------------------------------------------------------------------------------------------ requests

    def _in_flight(self) -> None:
        """Requests of an attacker beyond what it may have; the quiet tenant's own goes."""
        counts = in_flight.InFlight()
        with contextlib.ExitStack() as held:
            for _ in range(self._chance.randrange(20, 400)):
                size = self._chance.choice((1000, MEBIBYTE // 2, MEBIBYTE))
                with contextlib.suppress(OverBudget):
                    held.enter_context(counts.counted("eve", size, DEFAULT_BUDGET))
            requests, size = counts.held_by("eve")
            if requests > DEFAULT_BUDGET.requests_in_flight or size > DEFAULT_BUDGET.bytes_in_flight:
                self._find("requests in flight", f"eve has {requests} in flight, {size} bytes")
            try:
                held.enter_context(counts.counted(QUIET, 1000, DEFAULT_BUDGET))
            except OverBudget as error:
                self._find("the quiet tenant's request", error.message)
        self._findings.outcomes["taken"] += 1

    def _waiting(self) -> None:
        """Attackers with many requests that wait; the quiet tenant's starts after one of each of them at the latest."""
        slots, started = fair_slots.FairSlots(SLOTS), [""]
        attackers = [f"eve{number}" for number in range(self._chance.randrange(1, 12))]
        working: list[fair_slots.Ticket] = []
        for _ in range(self._chance.randrange(33, 100)):
            size = self._chance.choice((0, 0, MEBIBYTE))
            ticket = slots.enter("people", self._chance.choice(attackers), size, lambda: None)
            working += [ticket]
        mine = slots.enter("people", QUIET, 0, lambda: started.append(QUIET))
        left = 0
        while not mine.is_started:
            under_way = [each for each in working if each.is_started]
            ended = self._chance.choice(under_way)
            working.remove(ended)
            slots.leave(ended)
            left += 1
        # The last one that was done has made room for the quiet tenant's, each other for one of an attacker.
        if left - 1 > len(attackers):
            self._find("waiting requests", f"{left - 1} of {len(attackers)} users started before the quiet tenant's")
        self._findings.outcomes["taken"] += 1

    # ------------------------------------------------------------------------------------------ reports

    def _unknown(self) -> None:
        """Unknown objects of one seed, as many as it likes, and then those of another."""
        others = self._chance.randrange(1, 50)
        kept = asyncio.run(_kept_of_others(others))
        if kept < others:
            self._find("unknown objects", f"of {others} that run unknown at another seed {kept} are kept")
        self._findings.outcomes["taken"] += 1


@cache
def _templates() -> Sequence[Template]:
    return stored_world()[1]


async def _kept_of_others(others: int) -> int:
    kit = in_memory()
    await kit.open()
    for seed, count in (("greedy", REPORTED), ("aws-eu1", others)):
        for number in range(count):
            key = ObjectKey("shoot", "garden-dev", f"s{number}")
            unknown = UnknownObject(key=key, uid=f"{seed}-{number}", seed=seed, manifest={}, is_adoptable=True)
            with contextlib.suppress(GardenbusError):
                await kit.store.reannounce_object(key, seed, unknown.uid, unknown)
    return Counter(each.seed for each in await kit.store.unknown_objects())["aws-eu1"]


def fuzz_tenants(inputs: int, seed: int) -> Findings:
    """Draw so many times."""
    return TenantFuzzer(seed).run(inputs)
