"""Actions of a decision, which the reconciler executes one by one.

Each action is one request or one write, which happens only while the set is as the decision left it.
"""

from typing import Literal

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey


class SetEvent(msgspec.Struct, frozen=True):
    """An Event about the set. `action`: Reconcile, or Delete while the set is deleted."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Create an object, or update it to a manifest.

    `updates` names the replica whose templates are updated: a rejection then stops the update, and no more. `creates`
    names the replica that is created: after a rejection its ordinal may be tried again.
    """

    document: Document
    event: SetEvent | None = None
    updates: str = ""
    creates: str = ""


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Update an object by a merge patch."""

    key: ObjectKey
    patch: Document
    event: SetEvent | None = None


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete an object; one that is gone already is no failure."""

    key: ObjectKey
    event: SetEvent | None = None


class DeleteManagedSeed(msgspec.Struct, frozen=True, kw_only=True):
    """Delete a replica's ManagedSeed, at the version read, in one write that fails when a shoot is on its Seed.

    `without_seed`: there was no Seed to annotate; the write fails too when there is one by now.
    """

    key: ObjectKey
    version: int
    without_seed: bool
    event: SetEvent | None = None


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Migrate a shoot to another seed."""

    shoot: ObjectKey
    seed: str
    event: SetEvent | None = None


class AnnotateForRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """Annotate a Seed for removal, which fails unless no shoot is on it, or remove the annotation."""

    seed: str
    annotated: bool
    event: SetEvent | None = None


SetAction = Apply | Patch | Delete | DeleteManagedSeed | Bind | AnnotateForRemoval


class SetDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a reconciliation: first `status` is written, then `actions` are executed in order.

    `absent` must not exist when the status is written; `released`: the set's finalizer is removed. `events` are
    recorded after the status was written. `after_seconds`: the delay until the next reconciliation without an event.
    """

    status: Document
    actions: tuple[SetAction, ...] = ()
    events: tuple[SetEvent, ...] = ()
    absent: tuple[ObjectKey, ...] = ()
    after_seconds: float
    released: bool = False


class DrainForecastNeeded(msgspec.Struct, frozen=True):
    """No decision yet: needs the drain forecast of a seed first."""

    seed: str
    avoid: tuple[str, ...] = ()
    """Seeds that are to be removed after it: shoots migrate there only if nothing else fits."""
