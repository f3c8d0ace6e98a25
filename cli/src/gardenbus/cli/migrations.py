"""Carries migrations out: some at once, each watched until its control plane is well on the other seed.

It keeps nothing of its own: what is under way stands in the Shoots, so that whoever starts again goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

import msgspec

from gardenbus.cli.client import ApiClient
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.output import RefusedByApi
from gardenbus.cli.rows import shoot_row
from gardenbus.common.errors import Conflict, NotFound, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.conditions import conditions_of, get_condition
from gardenbus.common.resources.document import STATUS_LABEL, Document
from gardenbus.common.resources.migrating import READY_FOR_MIGRATION
from gardenbus.scheduling.moving import Move

LOOK_SECONDS = 0.3
OUTAGE_SECONDS = 60.0
"""For how long nobody need answer before a migration is given up; it goes on without us."""

_ATTEMPTS = 10
_HEALTHY = "healthy"

Result = TypeVar("Result")
Stage = Literal["begun", "going", "done", "gone"]


class News(msgspec.Struct, frozen=True):
    """How one migration stands: percent of its present operation, and that operation in words.

    `gone`: the shoot was deleted, or bound elsewhere by somebody else.
    """

    move: Move
    stage: Stage
    percent: int = 0
    words: str = ""
    seconds: float = 0.0


class Outcome(msgspec.Struct, frozen=True):
    """How it ended. With `failed` and its `reason` nothing more was begun; `under_way` go on by themselves.

    `is_refused`: that one was not begun, because the landscape is not any more what the plan was made for.
    """

    done: Sequence[Move]
    failed: Move | None = None
    reason: str = ""
    is_refused: bool = False
    under_way: Sequence[Move] = ()


class _Standing(NamedTuple):
    stage: Literal["going", "done", "gone", "failed"]
    percent: int = 0
    words: str = ""


class Migrations:
    """Moves shoots, at most `at_once` at a time; one that has not ended after `patience_seconds` has failed."""

    def __init__(
        self,
        api: ApiClient,
        clock: Clock,
        *,
        at_once: int,
        patience_seconds: float,
        tell: Callable[[News], None],
    ) -> None:
        self._api = api
        self._clock = clock
        self._at_once = at_once
        self._patience = patience_seconds
        self._tell = tell

    async def carry_out(self, moves: Sequence[Move]) -> Outcome:
        """Do the moves in their order, and stop at the first that fails. Raises Unavailable after a long outage.

        A seed that has no room yet is asked again whenever one of the migrations under way has ended.
        """
        trip = _Trip(list(moves), {}, [])
        while trip.waiting or trip.moving:
            outcome = await self._begin_some(trip) or await self._look_at_all(trip)
            if outcome is not None:
                return outcome
            if trip.moving:
                await self._clock.sleep(LOOK_SECONDS)
        return Outcome(trip.done)

    async def _begin_some(self, trip: "_Trip") -> Outcome | None:
        while trip.waiting and len(trip.moving) < self._at_once:
            move = trip.waiting[0]
            begun = await self._begin(move)
            if isinstance(begun, str):
                return None if trip.moving else Outcome(trip.done, move, begun, is_refused=True)
            trip.waiting.pop(0)
            if begun is not None:
                trip.moving[move] = begun
            self._tell(News(move, "gone" if begun is None else "begun"))
        return None

    async def _look_at_all(self, trip: "_Trip") -> Outcome | None:
        for move, watch in list(trip.moving.items()):
            standing = await self._look(move, watch)
            if standing.stage == "failed":
                others = [each for each in trip.moving if each != move]
                return Outcome(trip.done, move, standing.words, under_way=others)
            seconds = self._clock.monotonic() - watch.since
            self._tell(News(move, standing.stage, standing.percent, standing.words, seconds))
            if standing.stage != "going":
                del trip.moving[move]
            if standing.stage == "done":
                trip.done.append(move)
        return None

    async def _begin(self, move: Move) -> "_Watch | str | None":
        """Bind the shoot; why that is refused; None when it is not there to be moved any more."""
        for attempt in range(1, _ATTEMPTS + 1):
            shoot = await self._shoot(move)
            row = shoot_row(shoot) if shoot is not None else None
            if shoot is None or row is None or row.seed not in (move.source, move.target):
                return None
            if row.seed == move.target:
                return _Watch(self._clock.monotonic(), must_be_healthy=True)
            version = as_mapping(shoot.get("metadata")).get("resourceVersion")
            body = {"namespace": move.namespace, "name": move.name, "seed": move.target, "resourceVersion": version}
            try:
                await self._asked(lambda body=body: self._api.ask("bind", body))
            except RefusedByApi as refusal:
                if refusal.error.get("code") != Conflict.code:
                    return refusal.message
                if attempt == _ATTEMPTS:
                    return refusal.message
                continue
            return _Watch(self._clock.monotonic(), must_be_healthy=_health(shoot) == _HEALTHY)
        raise AssertionError("the last attempt returns")

    async def _look(self, move: Move, watch: "_Watch") -> _Standing:
        shoot = await self._shoot(move)
        if shoot is None:
            return _Standing("gone")
        standing = standing_of(shoot, move, must_be_healthy=watch.must_be_healthy)
        if standing.stage == "going" and self._clock.monotonic() - watch.since >= self._patience:
            words = f"it has not ended after {self._patience:g} s: {standing.words}"
            return _Standing("failed", standing.percent, words)
        return standing

    async def _shoot(self, move: Move) -> Document | None:
        try:
            return await self._asked(lambda: self._api.ask(f"get.shoot.{move.namespace}.{move.name}"))
        except RefusedByApi as refusal:
            if refusal.error.get("code") == NotFound.code:
                return None
            raise

    async def _asked(self, question: Callable[[], Awaitable[Result]]) -> Result:
        """Ask through short outages; all that is asked here can be asked twice."""
        since = self._clock.monotonic()
        while True:
            try:
                return await question()
            except Unavailable:
                if self._clock.monotonic() - since >= OUTAGE_SECONDS:
                    raise
                await self._clock.sleep(LOOK_SECONDS)


class _Trip(NamedTuple):
    """What is ahead, under way and over."""

    waiting: list[Move]
    moving: dict[Move, "_Watch"]
    done: list[Move]


class _Watch(NamedTuple):
    """Since when a migration is watched, and whether the shoot was healthy before, so that it must be after."""

    since: float
    must_be_healthy: bool


def standing_of(shoot: Document, move: Move, *, must_be_healthy: bool) -> _Standing:
    """How far a migration is: done when the target has carried out all of it and, if need be, the shoot is healthy."""
    row = shoot_row(shoot)
    if row.seed != move.target:
        return _Standing("gone")
    words = f"{row.operation} {row.operation_state} {row.progress}%: {row.description}".strip(": ")
    if row.operation_state == "Failed" and row.operation in ("Migrate", "Restore"):
        return _Standing("failed", row.progress, words)
    if row.is_deleting:
        return _Standing("going", row.progress, "it is being deleted")
    if row.actual_seed == move.target and row.is_reconciled:
        health = _health(shoot)
        if health == _HEALTHY or not must_be_healthy:
            return _Standing("done", 100)
        return _Standing("going", 100, f"it is {health or 'not healthy'} yet")
    if row.actual_seed != move.target and (obstacle := _obstacle(shoot)):
        return _Standing("going", row.progress, obstacle)
    return _Standing("going", row.progress, words)


def _health(shoot: Document) -> str:
    return str(as_mapping(as_mapping(shoot.get("metadata")).get("labels")).get(STATUS_LABEL) or "")


def _obstacle(shoot: Document) -> str:
    """What its source waits for."""
    found = get_condition(conditions_of(shoot, "constraints"), READY_FOR_MIGRATION)
    if found is None or found.get("status") == "True":
        return ""
    return f"{READY_FOR_MIGRATION}: {found.get('message')}"
