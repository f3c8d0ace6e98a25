"""Carries migrations out: some at once, each watched until its control plane is well on the other seed.

It keeps nothing of its own: what is under way stands in the Shoots, so that whoever starts again goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, TypeVar

import msgspec

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import STATUS_LABEL, Document
from gardenbus.common.api.garden.migration_feasibility import READY_FOR_MIGRATION
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.errors import Conflict, NotFound, Unavailable
from gardenbus.common.ports.clock import Clock

POLL_SECONDS = 0.3
OUTAGE_SECONDS = 60.0
"""Time without a response after which a migration is given up; it goes on without us."""

_ATTEMPTS = 10
_HEALTHY = "healthy"

Result = TypeVar("Result")
MigrationStage = Literal["begun", "going", "done", "gone"]


class MigrationEvent(msgspec.Struct, frozen=True):
    """Progress of one migration: percent of its present operation, and that operation in words.

    `gone`: the shoot was deleted, or bound elsewhere by somebody else.
    """

    move: Move
    stage: MigrationStage
    percent: int = 0
    words: str = ""
    seconds: float = 0.0


class MigrationOutcome(msgspec.Struct, frozen=True):
    """Outcome of a run. With `failed` and its `reason` nothing more was begun; `under_way` go on by themselves.

    `is_refused`: that one was not begun, because the landscape is not any more what the plan was made for.
    """

    done: Sequence[Move]
    failed: Move | None = None
    reason: str = ""
    is_rejected: bool = False
    under_way: Sequence[Move] = ()


class _MigrationStatus(NamedTuple):
    stage: Literal["going", "done", "gone", "failed"]
    percent: int = 0
    words: str = ""


@dataclass(eq=False)
class Migrations:
    """Moves shoots, at most `at_once` at a time; one that has not ended after `patience_seconds` has failed."""

    api: ApiClient
    clock: Clock
    _: KW_ONLY
    at_once: int
    timeout_seconds: float
    notify: Callable[[MigrationEvent], None]

    async def carry_out(self, moves: Sequence[Move]) -> MigrationOutcome:
        """Do the moves in their order, and stop at the first that fails. Raises Unavailable after a long outage.

        A seed that has no room yet is tried again whenever one of the migrations under way has ended.
        """
        run = _Run(list(moves), {}, [])
        while run.pending or run.moving:
            outcome = await self._begin_some(run) or await self._poll(run)
            if outcome is not None:
                return outcome
            if run.moving:
                await self.clock.sleep(POLL_SECONDS)
        return MigrationOutcome(run.done)

    async def _begin_some(self, run: "_Run") -> MigrationOutcome | None:
        while run.pending and len(run.moving) < self.at_once:
            move = run.pending[0]
            begun = await self._begin(move)
            if isinstance(begun, str):
                return None if run.moving else MigrationOutcome(run.done, move, begun, is_rejected=True)
            run.pending.pop(0)
            if begun is not None:
                run.moving[move] = begun
            self.notify(MigrationEvent(move, "gone" if begun is None else "begun"))
        return None

    async def _poll(self, run: "_Run") -> MigrationOutcome | None:
        for move, started in list(run.moving.items()):
            status = await self._status(move, started)
            if status.stage == "failed":
                others = [each for each in run.moving if each != move]
                return MigrationOutcome(run.done, move, status.words, under_way=others)
            seconds = self.clock.monotonic() - started.since
            self.notify(MigrationEvent(move, status.stage, status.percent, status.words, seconds))
            if status.stage != "going":
                del run.moving[move]
            if status.stage == "done":
                run.done.append(move)
        return None

    async def _begin(self, move: Move) -> "_Started | str | None":
        """Bind the shoot; returns the reason of a rejection, or None when it is not there to be moved any more."""
        for attempt in range(1, _ATTEMPTS + 1):
            shoot = await self._shoot(move)
            row = summarize_shoot(shoot) if shoot is not None else None
            if shoot is None or row is None or row.seed not in (move.source, move.target):
                return None
            if row.seed == move.target:
                return _Started(self.clock.monotonic(), must_be_healthy=True)
            version = as_mapping(shoot.get("metadata")).get("resourceVersion")
            body = {"namespace": move.namespace, "name": move.name, "seed": move.target, "resourceVersion": version}
            try:
                await self._retry_unavailable(lambda body=body: self.api.call("bind", body))
            except ApiError as error:
                if error.error.get("code") != Conflict.code:
                    return error.message
                if attempt == _ATTEMPTS:
                    return error.message
                continue
            return _Started(self.clock.monotonic(), must_be_healthy=_health(shoot) == _HEALTHY)
        raise AssertionError("the last attempt returns")

    async def _status(self, move: Move, started: "_Started") -> _MigrationStatus:
        shoot = await self._shoot(move)
        if shoot is None:
            return _MigrationStatus("gone")
        status = migration_status(shoot, move, must_be_healthy=started.must_be_healthy)
        if status.stage == "going" and self.clock.monotonic() - started.since >= self.timeout_seconds:
            words = f"it has not ended after {self.timeout_seconds:g} s: {status.words}"
            return _MigrationStatus("failed", status.percent, words)
        return status

    async def _shoot(self, move: Move) -> Document | None:
        try:
            return await self._retry_unavailable(lambda: self.api.call(f"get.shoot.{move.namespace}.{move.name}"))
        except ApiError as error:
            if error.error.get("code") == NotFound.code:
                return None
            raise

    async def _retry_unavailable(self, question: Callable[[], Awaitable[Result]]) -> Result:
        """Send an idempotent request, through short outages."""
        since = self.clock.monotonic()
        while True:
            try:
                return await question()
            except Unavailable:
                if self.clock.monotonic() - since >= OUTAGE_SECONDS:
                    raise
                await self.clock.sleep(POLL_SECONDS)


class _Run(NamedTuple):
    """Migrations that are ahead, under way and over."""

    pending: list[Move]
    moving: dict[Move, "_Started"]
    done: list[Move]


class _Started(NamedTuple):
    """Start of the watch, and True when the shoot was healthy before, so that it must be after."""

    since: float
    must_be_healthy: bool


def migration_status(shoot: Document, move: Move, *, must_be_healthy: bool) -> _MigrationStatus:
    """Progress of a migration: done when the target has carried out all of it and, if need be, the shoot is healthy."""
    row = summarize_shoot(shoot)
    if row.seed != move.target:
        return _MigrationStatus("gone")
    words = f"{row.operation} {row.operation_state} {row.progress}%: {row.description}".strip(": ")
    if row.operation_state == "Failed" and row.operation in ("Migrate", "Restore"):
        return _MigrationStatus("failed", row.progress, words)
    if row.is_deleting:
        return _MigrationStatus("going", row.progress, "it is being deleted")
    if row.actual_seed == move.target and row.is_reconciled:
        health = _health(shoot)
        if health == _HEALTHY or not must_be_healthy:
            return _MigrationStatus("done", 100)
        return _MigrationStatus("going", 100, f"it is {health or 'not healthy'} yet")
    if row.actual_seed != move.target and (obstacle := _obstacle(shoot)):
        return _MigrationStatus("going", row.progress, obstacle)
    return _MigrationStatus("going", row.progress, words)


def _health(shoot: Document) -> str:
    return str(as_mapping(as_mapping(shoot.get("metadata")).get("labels")).get(STATUS_LABEL) or "")


def _obstacle(shoot: Document) -> str:
    """The condition that its source waits for."""
    found = get_condition(conditions_of(shoot, "constraints"), READY_FOR_MIGRATION)
    if found is None or found.get("status") == "True":
        return ""
    return f"{READY_FOR_MIGRATION}: {found.get('message')}"
