"""What a look wants done, in words that the reconciler carries out one by one.

Each action stands for one request or one write, which happens only while the set is as the decision left it.
"""

from typing import Literal

import msgspec

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey


class SetEvent(msgspec.Struct, frozen=True):
    """An Event about the set. `action`: Reconcile, or Delete while the set is deleted."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Bring an object about, or up to a manifest.

    `updates` names the replica that an update of its templates is for: a refusal then stops the update, and no more.
    `creates` names the replica that is made anew: after a refusal its ordinal may be tried again.
    """

    document: Document
    event: SetEvent | None = None
    updates: str = ""
    creates: str = ""


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Change an object by a merge patch."""

    key: ObjectKey
    patch: Document
    event: SetEvent | None = None


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete an object; one that is gone already is no failure."""

    key: ObjectKey
    event: SetEvent | None = None


class DeleteManagedSeed(msgspec.Struct, frozen=True, kw_only=True):
    """Delete a replica's ManagedSeed, as it was seen, in one write that fails when a shoot is on its Seed.

    `without_seed`: there was no Seed yet, so none could be marked; it fails too when there is one by now.
    """

    key: ObjectKey
    version: int
    without_seed: bool
    event: SetEvent | None = None


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Move a shoot to another seed."""

    shoot: ObjectKey
    seed: str
    event: SetEvent | None = None


class MarkSeed(msgspec.Struct, frozen=True, kw_only=True):
    """Mark a Seed for removal, which fails unless no shoot is on it, or take the mark away."""

    seed: str
    marked: bool
    event: SetEvent | None = None


Action = Apply | Patch | Delete | DeleteManagedSeed | Bind | MarkSeed


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of a look: first `status` is written, then `actions` are carried out in order.

    `absent` must not exist when the status is written; `released`: the set's finalizer goes. `events` are told once
    the status stands. `after_seconds`: when to look again, though nothing was heard.
    """

    status: Document
    actions: tuple[Action, ...] = ()
    events: tuple[SetEvent, ...] = ()
    absent: tuple[ObjectKey, ...] = ()
    after_seconds: float
    released: bool = False


class DrainUnknown(msgspec.Struct, frozen=True):
    """No decision yet: where the shoots of this seed could go must be known first."""

    seed: str
    avoid: tuple[str, ...] = ()
    """Seeds that are to go after it: shoots move there only if there is no other place."""
