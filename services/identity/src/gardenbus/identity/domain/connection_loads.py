"""Loads of connections: what each user's connections hold, and which of them are too much. Pure.

NATS bounds one connection (`max_payload`, `max_subs`, `max_pending`), and neither all of a user nor what one sends in a
time. So the servers' lists of connections are read again and again, and compared with the user's budget:

| bound                                         | beyond it                                                       |
|-----------------------------------------------|-----------------------------------------------------------------|
| `connections`                                 | the youngest are closed, and no other is let in                 |
| `MOST_PENDING_BYTES` that a user has not read | those with the most are closed, and none is let in for a while  |
| a quarter of `waiting_bytes`, sent at once    | all are closed, and none is let in until half of it has drained |

What was sent drains at `DRAINED_BYTES_A_SECOND`, which is less than apiservers handle. The other three quarters are for
what comes between two observations: a server stores some hundred megabytes a second, and drops what comes for a stream
beyond 128 MB that it has not written yet, whoever sent that. Bytes of a connection that has ended count too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gardenbus.common.api.budgets import Budget
from gardenbus.common.errors import Forbidden
from gardenbus.identity.ports.system_account import ConnectionLoad, ServerConnection

MOST_PENDING_BYTES = 32 * 1024 * 1024
"""Of all connections of one user together: what the servers hold for clients that do not read."""

DRAINED_BYTES_A_SECOND = 4 * 1024 * 1024
UNREAD_SECONDS = 10.0
"""Time for which a user who has left too much unread is not let in: each connection that comes back in the place of one
that was closed fills up to `max_pending` before the next observation."""

FORGOTTEN_SECONDS = 600.0


def at_once(budget: Budget) -> int:
    """Bytes that a user may send at once."""
    return budget.waiting_bytes // 4


class Excess(NamedTuple):
    """A connection to be closed, and why."""

    connection: ServerConnection
    reason: str


class _Sent(NamedTuple):
    level: float
    at: float


class _Received(NamedTuple):
    size_bytes: int
    at: float


class ConnectionLoads:
    """Loads of the users as they were observed last; `budget_of` is the budget of a user."""

    def __init__(self, budget_of: Callable[[str], Budget]) -> None:
        self._budget_of = budget_of
        self._counts: Mapping[str, int] = {}
        self._admitted: dict[str, int] = {}
        self._received: dict[tuple[str, int], _Received] = {}
        """Bytes by server and number of the connection, as observed last."""
        self._servers: dict[str, float] = {}
        """Time of the last observation of each: what its connections had sent before the first time is not counted."""
        self._sent: dict[str, _Sent] = {}
        self._held: set[str] = set()
        self._unread: dict[str, float] = {}
        """Time until which nobody is let in, by user who left too much unread."""

    def observe(self, open_ones: Sequence[ConnectionLoad], ended: Sequence[ConnectionLoad], now: float) -> list[Excess]:
        """Take over what the servers say; the connections to be closed."""
        self._count_sent([*open_ones, *ended], now)
        by_user: dict[str, list[ConnectionLoad]] = {}
        for load in open_ones:
            by_user.setdefault(load.connection.user, []).append(load)
        self._counts = {user: len(loads) for user, loads in by_user.items()}
        self._admitted = {}
        self._unread = {user: until for user, until in self._unread.items() if until > now}
        return [excess for user, loads in by_user.items() for excess in self._excess(user, loads, now)]

    @property
    def counts(self) -> Mapping[str, int]:
        """Connections by user, as observed last."""
        return self._counts

    def sent_at_once(self, now: float) -> Mapping[str, float]:
        """Bytes that users have sent and that have not drained, by user."""
        return {user: self._level(user, now) for user in self._sent}

    def admit(self, user: str, now: float) -> None:
        """Count a connection that is about to be let in. Raises Forbidden where it must not be."""
        budget = self._budget_of(user)
        count = self._counts.get(user, 0) + self._admitted.get(user, 0)
        if count >= budget.connections:
            raise Forbidden(f"{user} has {count} connections, all that its budget allows (limit connections)")
        if self._is_held(user, budget, now):
            raise Forbidden(f"{user} has sent {at_once(budget):,} bytes at once, a quarter of its limit waitingBytes")
        if now < self._unread.get(user, 0.0):
            raise Forbidden(f"{user} has left more than {MOST_PENDING_BYTES:,} bytes unread: come back in a while")
        self._admitted[user] = self._admitted.get(user, 0) + 1

    def _excess(self, user: str, loads: Sequence[ConnectionLoad], now: float) -> Iterable[Excess]:
        budget = self._budget_of(user)
        if self._is_held(user, budget, now):
            reason = f"more than {at_once(budget):,} bytes were sent at once"
            return [Excess(load.connection, reason) for load in loads]
        oldest_first = sorted(loads, key=lambda load: load.connection.number)
        beyond = [
            Excess(load.connection, f"more than {budget.connections} connections")
            for load in oldest_first[budget.connections :]
        ]
        pending = sum(load.pending_bytes for load in loads)
        for load in sorted(loads, key=lambda load: -load.pending_bytes):
            if pending <= MOST_PENDING_BYTES:
                break
            pending -= load.pending_bytes
            self._unread[user] = now + UNREAD_SECONDS
            beyond.append(Excess(load.connection, f"more than {MOST_PENDING_BYTES:,} bytes are not read"))
        return list({excess.connection: excess for excess in beyond}.values())

    def _count_sent(self, loads: Sequence[ConnectionLoad], now: float) -> None:
        sent: dict[str, int] = {}
        for load in loads:
            server, number, user = load.connection
            before = self._received.get((server, number))
            if before is not None or server in self._servers:
                sent[user] = sent.get(user, 0) + max(0, load.received_bytes - (before.size_bytes if before else 0))
            self._received[server, number] = _Received(load.received_bytes, now)
        self._servers.update({load.connection.server: now for load in loads})
        self._forget(now)
        for user in {*sent, *self._sent}:
            level = self._level(user, now) + sent.get(user, 0)
            if level > 0:
                self._sent[user] = _Sent(level, now)
            else:
                self._sent.pop(user, None)

    def _forget(self, now: float) -> None:
        """Forget what was not observed for long; a server may be silent for a while."""
        self._received = {key: each for key, each in self._received.items() if now - each.at < FORGOTTEN_SECONDS}
        self._servers = {server: at for server, at in self._servers.items() if now - at < FORGOTTEN_SECONDS}

    def _level(self, user: str, now: float) -> float:
        before = self._sent.get(user)
        return 0.0 if before is None else max(0.0, before.level - (now - before.at) * DRAINED_BYTES_A_SECOND)

    def _is_held(self, user: str, budget: Budget, now: float) -> bool:
        level, most = self._level(user, now), at_once(budget)
        if level > most or (user in self._held and level > most / 2):
            self._held.add(user)
            return True
        self._held.discard(user)
        return False
