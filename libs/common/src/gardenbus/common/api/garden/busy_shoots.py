"""Shoots whose operation goes on, or is in trouble, and those without a seed: what `top shoots` shows of them. Pure."""

import heapq
import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import STATES, ShootOperationState, number, text

SLOWEST = 20
"""Shoots that are named, at the most."""

_AT_REST = ("succeeded", "new")
_INSTANT = re.compile(r"[0-9A-Za-z:.+-]{1,40}")


class BusyShoot(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One of them; `began_at` (RFC 3339) is the start of its operation, as far as its manifest shows."""

    namespace: str
    name: str
    seed: str
    state: ShootOperationState
    operation: str
    operation_state: str
    progress: int
    description: str
    began_at: str


class _Shown(Protocol):
    """The fields that order shoots by their beginning."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def began_at(self) -> str: ...


Busy = TypeVar("Busy", bound=_Shown)


def state_of(operation: Document, *, is_deleting: bool) -> ShootOperationState:
    """The state of a shoot with this status.lastOperation."""
    return "deleting" if is_deleting else STATES.get(text(operation.get("state")), "new")


def is_busy(state: ShootOperationState, seed: str) -> bool:
    """True while its operation goes on or is in trouble, and while it has no seed."""
    return state not in _AT_REST or not seed


def began_at(operation: Document, created_at: object, deleting_at: object) -> str:
    """The start of an operation: at the latest its last update."""
    start = {"Create": created_at, "Delete": deleting_at}.get(text(operation.get("type")))
    return next((text(each) for each in (start, operation.get("lastUpdateTime"), created_at) if each), "")


def operation_key(operation: Document) -> str:
    """Index value of a shoot's operation: `<state> created|deleted|updated <last update>`; "" without an operation.

    The word says from when on the operation counts, if the shoot has that instant: see `began_at`.
    """
    if not operation:
        return ""
    start = {"Create": "created", "Delete": "deleted"}.get(text(operation.get("type")), "updated")
    updated = text(operation.get("lastUpdateTime"))
    return f"{state_of(operation, is_deleting=False)} {start} {updated if _INSTANT.fullmatch(updated) else ''}"


def busy_shoot(
    namespace: str, name: str, *, seed: str, operation: Document, created_at: str, deleting_at: str
) -> BusyShoot:
    """The row of a shoot."""
    return BusyShoot(
        namespace=namespace,
        name=name,
        seed=seed,
        state=state_of(operation, is_deleting=bool(deleting_at)),
        operation=text(operation.get("type")),
        operation_state=text(operation.get("state")),
        progress=number(operation.get("progress")),
        description=text(operation.get("description")),
        began_at=began_at(operation, created_at, deleting_at),
    )


def slowest(shoots: Iterable[Busy]) -> list[Busy]:
    """The SLOWEST of them, the one that began first at the top."""
    return heapq.nsmallest(SLOWEST, shoots, key=lambda shoot: (shoot.began_at or "~", shoot.namespace, shoot.name))
