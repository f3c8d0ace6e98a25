"""Mutants: the product without one of the precautions that keep tenants apart. The fuzzer finds each of them."""

import contextlib
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from gardenbus.apiserver.domain import fair_slots, in_flight, own_consumers, senders
from gardenbus.common.adapters.nats import messages, streams
from gardenbus.common.api import list_selectors
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest
from tests.fuzz.tenants import SLOTS
from tests.simulation.mutants import changed_functions

Patch = Callable[[], AbstractContextManager[Any]]


class Mutant(NamedTuple):
    """What is taken out, and the place at which the fuzzer finds that it is missing."""

    name: str
    place: str
    patches: Sequence[Patch]

    @contextlib.contextmanager
    def applied(self) -> Generator[None]:
        """For as long as the context."""
        with contextlib.ExitStack() as stack:
            for each in self.patches:
                stack.enter_context(each())
            yield


def _selector(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """An expression that goes back over what it has read."""
    return re.compile(pattern.pattern.replace("*+", "*").replace("++", "+"))


def _selectors_go_back() -> AbstractContextManager[Any]:
    stack = contextlib.ExitStack()
    stack.enter_context(patch.object(list_selectors, "LONGEST_SELECTOR", 2**20))
    for name in ("_SET_BASED", "_EQUALITY", "_PRESENCE"):
        stack.enter_context(patch.object(list_selectors, name, _selector(getattr(list_selectors, name))))
    return stack


def _read_any_header(block: bytes) -> dict[str, str]:
    """Headers where the first that names a sender counts, wherever the server's own stands."""
    lines = [line.partition(": ") for line in block.decode("utf-8", "replace").split("\r\n")[1:]]
    return {name: value for name, separator, value in reversed(lines) if separator}


def _anybody(*_: object) -> None:
    return


class _Requested(msgspec.Struct):
    config: dict[str, Any]


def _as_requested(subject: str, body: bytes, subjects: Subjects) -> own_consumers.OwnConsumer:
    stream, name, filter_subject = subject.removeprefix(subjects.consumer("")).split(".", 2)
    try:
        msgspec.json.decode(body, type=_Requested)
    except msgspec.MsgspecError as error:
        raise BadRequest(str(error)) from error
    return own_consumers.OwnConsumer(stream, name, filter_subject, body)


_LANE: type[Any] = vars(fair_slots)["_LaneState"]
_OF_OUTSIDE: dict[str, Any] = vars(streams)["_FROM_OUTSIDE"]
_UNLIMITED: dict[str, int] = {}


def _any_free_slot(self: Any, _ticket: object) -> bool:
    return self.running < SLOTS


def _first_come(self: Any) -> Any:
    """The ticket that was there first, as long as its user has any."""
    for user, tickets in self.waiting.items():
        if self.can_start(tickets[0]):
            ticket = tickets.popleft()
            if not tickets:
                del self.waiting[user]
            return ticket
    return None


MUTANTS: Sequence[Mutant] = (
    Mutant("selectors go back over what they have read", "slow query", (_selectors_go_back,)),
    Mutant(
        "a sender's header may hide the server's",
        "sender",
        (lambda: patch.object(messages, "decode_headers", _read_any_header),),
    ),
    Mutant("no sender is compared", "sender", (lambda: patch.object(senders, "check_sender", _anybody),)),
    Mutant(
        "no budget of requests in flight",
        "requests in flight",
        (lambda: patch.object(in_flight.InFlight, "_check", _anybody),),
    ),
    Mutant(
        "slots go to who came first",
        "waiting requests",
        (lambda: patch.object(_LANE, "next", _first_come), lambda: patch.object(_LANE, "can_start", _any_free_slot)),
    ),
    Mutant(
        "no share of unknown objects for each seed",
        "unknown objects",
        (
            lambda: patch.object(
                *changed_functions(("UNKNOWN_MAX, UNKNOWN_SHARE = 1000, 50", "UNKNOWN_MAX, UNKNOWN_SHARE = 1000, 0"))
            ),
        ),
    ),
    Mutant(
        "batches of outsiders",
        "Nats-Batch-Id on REQUESTS",
        (lambda: patch.dict(_OF_OUTSIDE, {"allow_atomic": True}),),
    ),
    Mutant("no limit of bytes", "bytes of REQUESTS", (lambda: patch.object(streams, "MAX_BYTES", _UNLIMITED),)),
    Mutant(
        "consumers as they are requested",
        "consumer",
        (lambda: patch.object(own_consumers, "own_consumer", _as_requested),),
    ),
)
"""Each was missing once."""
