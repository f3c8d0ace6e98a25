"""Slots for requests that are worked on: by lane, and in a lane for one user after another.

| lane     | whose requests                                     | requests at once   | of one user   |
|----------|----------------------------------------------------|--------------------|---------------|
| insiders | operators, and services                            | as many as slots   | all of them   |
| agents   | gardenlets, member agents, schedulers, extensions  | half as many       | two thirds    |
| people   | everybody else                                     | as many as slots   | two thirds    |

No lane takes from another. A user of whom nothing is worked on yet needs no slot to be free, up to half as many again:
whoever sends one request does not wait for those who send many. Large requests have a limit of bytes besides, as a
parsed one takes a multiple of its size: of the lane, and half of it for each user; one of them always goes.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from gardenbus.common.api.identity.names import requester
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import BadRequest

Lane = Literal["insiders", "agents", "people"]
LANES: tuple[Lane, ...] = ("insiders", "agents", "people")

SMALL = 64 * 1024
"""Bytes of a request up to which its size does not count."""

LARGE_BYTES: Mapping[Lane, int] = {"insiders": 16 * 1024 * 1024, "agents": 4 * 1024 * 1024, "people": 4 * 1024 * 1024}
"""Bytes of large requests of a lane that are worked on at once."""

_AGENTS = frozenset({"gardenlet", "member-agent", "scheduler", "extension", "plugin"})


def lane_of(user: str, *, is_insider: bool) -> Lane:
    """The lane of a user; `is_insider`: it comes from the services' account."""
    if is_insider or user == OPERATOR:
        return "insiders"
    try:
        return "agents" if requester(user).role in _AGENTS else "people"
    except BadRequest:
        return "people"


class Ticket:
    """A request that waits for a slot, or has one."""

    __slots__ = ("is_started", "lane", "size", "start", "user")

    def __init__(self, lane: Lane, user: str, size: int, start: Callable[[], None]) -> None:
        self.lane: Lane = lane
        self.user = user
        self.size = size if size > SMALL else 0
        self.start = start
        self.is_started = False


class _LaneLimits(NamedTuple):
    """Requests of a lane, of each of its users, and of all where each but one of a user counts; bytes of large ones."""

    requests: int
    of_one: int
    with_first: int
    large_bytes: int


class _LaneState:
    """The requests of one lane."""

    def __init__(self, limits: _LaneLimits) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()
        self._large: Counter[str] = Counter()
        self.waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()

    def can_start(self, ticket: Ticket) -> bool:
        limits, own, every = self._limits, self._running[ticket.user], self._running.total()
        has_slot = every < limits.requests and own < limits.of_one
        if not has_slot and (own or every >= limits.with_first):
            return False
        if not ticket.size:
            return True
        large, of_user = self._large.total(), self._large[ticket.user]
        fits = large + ticket.size <= limits.large_bytes
        return not large or (fits and (not of_user or of_user + ticket.size <= limits.large_bytes // 2))

    def add(self, ticket: Ticket, by: int) -> None:
        for counted, size in ((self._running, by), (self._large, by * ticket.size)):
            counted[ticket.user] += size
            if not counted[ticket.user]:
                del counted[ticket.user]

    def next(self) -> Ticket | None:
        """Take the ticket whose turn it is out of those who wait; None when none can start.

        Users of whom nothing is worked on come before others.
        """
        for user, tickets in sorted(self.waiting.items(), key=lambda waiting: waiting[0] in self._running):
            if self.can_start(tickets[0]):
                ticket = tickets.popleft()
                self.waiting.move_to_end(user)
                if not tickets:
                    del self.waiting[user]
                return ticket
        return None

    @property
    def running(self) -> int:
        return self._running.total()


class FairSlots:
    """Gives out slots; see the module."""

    def __init__(self, slots: int) -> None:
        share = max(1, 2 * slots // 3)
        agents = max(1, slots // 2)
        sizes: Mapping[Lane, tuple[int, int]] = {
            "insiders": (slots, slots),
            "agents": (agents, max(1, 2 * agents // 3)),
            "people": (slots, share),
        }
        self._lanes = {
            lane: _LaneState(_LaneLimits(most, of_one, most + most // 2, LARGE_BYTES[lane]))
            for lane, (most, of_one) in sizes.items()
        }

    def enter(self, lane: Lane, user: str, size: int, start: Callable[[], None]) -> Ticket:
        """Start a request at once (`is_started`), or have it wait: `start` is called when its turn has come."""
        state = self._lanes[lane]
        ticket = Ticket(lane, user, size, start)
        if user not in state.waiting and state.can_start(ticket):
            state.add(ticket, 1)
            ticket.is_started = True
        else:
            state.waiting.setdefault(user, deque()).append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """End a request, or its waiting; starts those whose turn it is."""
        state = self._lanes[ticket.lane]
        if ticket.is_started:
            state.add(ticket, -1)
        elif tickets := state.waiting.get(ticket.user):
            tickets.remove(ticket)
            if not tickets:
                del state.waiting[ticket.user]
        while state.waiting and (following := state.next()) is not None:
            state.add(following, 1)
            following.is_started = True
            following.start()

    def running(self, lane: Lane) -> int:
        """Requests of a lane that are worked on."""
        return self._lanes[lane].running

    def waiting(self, lane: Lane) -> int:
        """Requests of a lane that wait."""
        return sum(len(tickets) for tickets in self._lanes[lane].waiting.values())
