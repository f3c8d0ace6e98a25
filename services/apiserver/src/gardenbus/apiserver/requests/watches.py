"""Watches: changes of objects and Events for those who follow no streams themselves.

A response waits until something has changed, for some seconds. The next request says from where on: so each of them is
authorized anew, and nobody outside has a consumer without a filter.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Generator, Mapping, Sequence

import msgspec

from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.authorization.actions import Action
from gardenbus.apiserver.registry.bus_lists import as_object
from gardenbus.common.api.budgets import OverBudget, over_budget
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.api.kinds import by_word
from gardenbus.common.api.names import LABEL
from gardenbus.common.api.watches import (
    MOST_CHANGES,
    MOST_SCOPES,
    MOST_SECONDS,
    WatchedChange,
    WatchedKind,
    WatchedUpTo,
    WatchQuery,
    WatchResult,
)
from gardenbus.common.controller.budget_settings import BudgetOf, default_budget
from gardenbus.common.errors import BadRequest, Unsupported
from gardenbus.common.ports.bus import Bus, FollowRestarted, ReplayDone, StreamMessage
from gardenbus.common.ports.clock import timestamp

WATCHES = "watches"
MOST_OF_ALL = 250
"""Watches at the same time, each of which is a consumer; beyond them each user has an equal share."""

MOST_BYTES = 1024 * 1024
"""Of manifests in one response."""


class Watches:
    """Carries out watches. One for all requests."""

    def __init__(
        self, bus: Bus, subjects: Subjects, authorizer: Authorizer, budget_of: BudgetOf = default_budget
    ) -> None:
        self._authorizer = authorizer
        self._budget_of = budget_of
        self._bus = bus
        self._subjects = subjects
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> Mapping[str, int]:
        """Watches that go on, by user."""
        return self._running

    async def on_watch(self, call: Call) -> WatchResult:
        """Wait for changes of what the requester may watch. Raises Forbidden, OverBudget, Unavailable."""
        query = watch_query(call.read(WatchQuery))
        for action in watched_actions(query):
            await self._authorizer.permit(call.options.requester, action, call.reads)
        return await self.changes(query, call.user)

    async def changes(self, query: WatchQuery, user: str) -> WatchResult:
        """Wait for changes. Raises OverBudget, Unavailable."""
        stream = self._subjects.stream("EVENTS" if query.scopes[0].kind == "event" else "OBJECTS")
        position = await self._bus.position(stream)
        present = WatchedUpTo(str(position.created), position.sequence)
        if query.after is None:
            return WatchResult(present)
        if query.after.created != present.created or query.after.sequence > present.sequence:
            return WatchResult(present, is_restarted=True)
        with self._counted(user):
            return await self._changes(stream, query, query.after)

    async def _changes(self, stream: str, query: WatchQuery, after: WatchedUpTo) -> WatchResult:
        changes: list[WatchedChange] = []
        sequence, is_restarted = after.sequence, False
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(query.seconds),
                self._bus.follow(stream, self._filters(query.scopes), after_sequence=after.sequence) as follower,
            ):
                async for event in until_enough(aiter(follower)):
                    match event:
                        case ReplayDone():
                            sequence = max(sequence, event.sequence)
                        case FollowRestarted():
                            is_restarted = True
                        case StreamMessage():
                            sequence = event.sequence
                            if event.marker is None:
                                changes.append(self._change(event))
        return WatchResult(WatchedUpTo(after.created, sequence), tuple(changes), is_restarted)

    def _filters(self, scopes: Sequence[WatchedKind]) -> list[str]:
        """The subjects; none covers another, which a consumer could not have."""
        whole = {scope.kind for scope in scopes if not scope.namespace}
        wanted = {scope for scope in scopes if not scope.namespace or scope.kind not in whole}
        return sorted(self._filter(scope) for scope in wanted)

    def _filter(self, scope: WatchedKind) -> str:
        if scope.kind != "event":
            return self._subjects.changed_kind(scope.kind, scope.namespace)
        return f"{self._subjects.prefix}.event.*.{scope.namespace or '*'}.>"

    def _change(self, message: StreamMessage) -> WatchedChange:
        is_gone = message.headers.get(Header.VERB) == "deleted"
        document = None if is_gone or not message.body else as_object(message.body)
        return WatchedChange(
            subject=message.subject.removeprefix(f"{self._subjects.prefix}."),
            at=timestamp(message.at),
            sequence=message.sequence,
            verb=message.headers.get(Header.VERB, ""),
            version=message.headers.get(Header.VERSION, ""),
            is_too_large=Header.TOO_LARGE in message.headers,
            object=document,
        )

    @contextlib.contextmanager
    def _counted(self, user: str) -> Generator[None]:
        """Count a watch while it goes on. Raises OverBudget."""
        own, every = self._running[user], self._running.total()
        if own >= (most := self._budget_of(user).watches):
            raise over_budget(user, WATCHES, most, "end one, or try again")
        if every >= MOST_OF_ALL and own >= every // len(self._running):
            raise OverBudget(f"watches: there are {every} here, and {own} of {user!r}: try again", WATCHES)
        self._running[user] += 1
        try:
            yield
        finally:
            self._running[user] -= 1
            if not self._running[user]:
                del self._running[user]


async def until_enough(
    events: "AsyncIterator[StreamMessage | ReplayDone | FollowRestarted]",
) -> "AsyncIterator[StreamMessage | ReplayDone | FollowRestarted]":
    """Pass events on until a response has enough: what was there, or what came first after it."""
    count, size, is_replayed = 0, 0, False
    async for event in events:
        yield event
        match event:
            case StreamMessage():
                count, size = count + 1, size + len(event.body)
            case ReplayDone():
                is_replayed = True
            case FollowRestarted():
                return
        if (is_replayed and count) or count >= MOST_CHANGES or size >= MOST_BYTES:
            return


def watch_query(query: WatchQuery) -> WatchQuery:
    """The query, whose kinds are stated in any word for them, by their singulars. Raises BadRequest, Unsupported."""
    if not 1 <= len(query.scopes) <= MOST_SCOPES:
        raise BadRequest(f"scopes: there are {len(query.scopes)}; send 1 to {MOST_SCOPES}")
    if not 1 <= query.seconds <= MOST_SECONDS:
        raise BadRequest(f"seconds: {query.seconds} is not from 1 to {MOST_SECONDS}")
    scopes = tuple(map(_understood, query.scopes))
    if len({scope.kind == "event" for scope in scopes}) > 1:
        raise BadRequest("scopes: watch Events apart from other kinds")
    return msgspec.structs.replace(query, scopes=scopes)


def watched_actions(query: WatchQuery) -> list[Action]:
    """Actions that a watch takes the right to."""
    return [Action("watch", scope.kind, scope.namespace) for scope in query.scopes]


def _understood(scope: WatchedKind) -> WatchedKind:
    """A scope by the kind's singular; of a kind without namespaces it is all. Raises BadRequest, Unsupported."""
    spec = by_word(scope.kind)
    if spec.singular == "lease":
        raise Unsupported("scopes: Leases are not watched: list.lease")
    if spec.namespaced is False:
        return WatchedKind(spec.singular, "")
    if scope.namespace is not None and not LABEL.fullmatch(scope.namespace):
        raise BadRequest(f"scopes: namespace {scope.namespace[:63]!r} is none")
    return WatchedKind(spec.singular, scope.namespace)
