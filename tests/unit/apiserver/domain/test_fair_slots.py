"""Slots go to one user after another, in lanes that take nothing from each other."""

import random

import pytest

from gardenbus.apiserver.domain.fair_slots import LANES, LARGE_BYTES, SMALL, FairSlots, Lane, Ticket, lane_of

MEBIBYTE = 1024 * 1024


class Requests:
    """Requests by name, and the order in which they were started."""

    def __init__(self, slots: int) -> None:
        self.slots = FairSlots(slots)
        self.started: list[str] = []
        self._tickets: dict[str, Ticket] = {}

    def enter(self, name: str, *, lane: Lane = "people", size: int = 0) -> bool:
        """A request named as `<user>-<number>`; True when it is started at once."""
        user = name.partition("-")[0]
        ticket = self._tickets[name] = self.slots.enter(lane, user, size, lambda: self.started.append(name))
        return ticket.is_started

    def leave(self, name: str) -> None:
        self.slots.leave(self._tickets.pop(name))


def test_a_user_who_sends_one_request_does_not_wait_for_one_who_sends_many() -> None:
    requests = Requests(3)
    assert [requests.enter(f"eve-{number}") for number in range(33)] == [True, True] + 31 * [False]
    assert requests.enter("ann-0")
    assert requests.enter("bob-0")  # beyond the slots, as nothing of bob's is worked on yet
    assert not requests.enter("cid-0")
    requests.leave("ann-0")
    assert requests.started == ["cid-0"]


def test_those_who_wait_are_served_in_turn() -> None:
    requests = Requests(1)
    for name in ("eve-0", "eve-1", "eve-2", "ann-0", "ann-1", "bob-0"):
        requests.enter(name)
    for name in ("eve-0", "eve-1", "ann-0", "bob-0", "eve-2"):
        requests.leave(name)
    assert requests.started == ["eve-1", "ann-0", "bob-0", "eve-2", "ann-1"]


@pytest.mark.parametrize("lane", LANES)
def test_no_lane_takes_from_another(lane: Lane) -> None:
    requests = Requests(6)
    for other in LANES:
        for user in range(50):
            if other != lane:
                requests.enter(f"{other}{user}-0", lane=other, size=8 * MEBIBYTE)
    assert requests.enter("ann-0", lane=lane, size=8 * MEBIBYTE)


def test_large_requests_of_a_user_are_worked_on_one_after_another_and_small_ones_pass() -> None:
    requests = Requests(12)
    assert [requests.enter(f"eve-{number}", size=MEBIBYTE) for number in range(4)] == [True, True, False, False]
    assert [requests.enter(f"mal-{number}", size=MEBIBYTE) for number in range(4)] == [True, True, False, False]
    assert not requests.enter("zoe-0", size=MEBIBYTE)
    assert requests.enter("ann-0", size=SMALL)
    requests.leave("eve-0")
    assert requests.started == ["zoe-0"]  # nothing of zoe's was worked on
    requests.leave("mal-0")
    assert requests.started == ["zoe-0", "eve-2"]
    requests.leave("eve-1")
    assert requests.started == ["zoe-0", "eve-2", "mal-2"]


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    requests = Requests(12)
    assert requests.enter("eve-0", size=8 * MEBIBYTE)
    assert not requests.enter("ann-0", size=MEBIBYTE)
    requests.leave("eve-0")
    assert requests.started == ["ann-0"]


def test_a_request_that_waits_no_longer_leaves_nothing_behind() -> None:
    requests = Requests(1)
    for name in ("eve-0", "eve-1", "ann-0"):
        requests.enter(name)
    requests.leave("eve-1")
    requests.leave("eve-0")
    assert requests.started == ["ann-0"]
    requests.leave("ann-0")
    assert (requests.slots.running("people"), requests.slots.waiting("people")) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_the_limits_hold_and_everybody_is_served(seed: int) -> None:
    chance = random.Random(seed)
    slots = FairSlots(chance.randint(1, 8))
    running: set[Ticket] = set()
    waiting: set[Ticket] = set()

    def enter() -> None:
        size = chance.choice((0, SMALL, MEBIBYTE, 3 * MEBIBYTE))
        ticket = slots.enter("people", f"user{chance.randint(0, 5)}", size, lambda: None)
        (running if ticket.is_started else waiting).add(ticket)

    def leave() -> None:
        tickets = sorted(running | waiting, key=id)
        if tickets:
            ticket = chance.choice(tickets)
            running.discard(ticket)
            waiting.discard(ticket)
            slots.leave(ticket)
            started = {each for each in waiting if each.is_started}
            running.update(started)
            waiting.difference_update(started)

    for _ in range(400):
        chance.choice((enter, leave))()
        large = [ticket.size for ticket in running if ticket.size]
        assert sum(large) <= LARGE_BYTES["people"] or len(large) == 1
        assert slots.running("people") == len(running)
        assert slots.waiting("people") == len(waiting)
        assert running or not waiting
    while running:
        leave()
    assert not waiting


@pytest.mark.parametrize(
    ("user", "is_insider", "lane"),
    [
        ("system:anonymous", True, "insiders"),
        ("ann", True, "insiders"),
        ("operator", False, "insiders"),
        ("seed:aws", False, "agents"),
        ("member:rome", False, "agents"),
        ("scheduler:mine", False, "agents"),
        ("bootstrap:4f2a91", False, "people"),
        ("ann@example.org", False, "people"),
        ("system:serviceaccount:garden-dev:robot", False, "people"),
        ("seed:", False, "people"),
    ],
)
def test_the_lane_of_a_user(user: str, is_insider: bool, lane: Lane) -> None:
    assert lane_of(user, is_insider=is_insider) == lane
