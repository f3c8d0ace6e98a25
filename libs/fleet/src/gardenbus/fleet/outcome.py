"""What a scheduling cycle comes to: what to write to bindings, and what to tell of it.

Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from typing import ClassVar

import msgspec

from gardenbus.common.errors import Transient
from gardenbus.common.resources.placement_parts import BindingState, ClusterDecision

FULFILLED = "SchedulingPolicyFulfilled"
UNFULFILLED = "SchedulingPolicyUnfulfilled"

FAILED = "SchedulingFailed"
"""Reason of a policy that could not be evaluated; it is tried again."""


class UnexpectedState(Transient):
    """What is stored contradicts itself, or a policy cannot be evaluated: nothing of the cycle may be written.

    Looked at again with backoff, and shown in the placement's status. The message says what is wrong.
    """

    code = 500
    reason: ClassVar[str] = "UnexpectedState"


class Pick(msgspec.Struct, frozen=True):
    """A binding to create, in state Scheduled and without a resource snapshot."""

    cluster: str
    """Where to."""

    decision: ClusterDecision
    """Why."""


class Rebinding(msgspec.Struct, frozen=True):
    """A binding to take over into the current policy."""

    binding: str
    """Its name."""

    snapshot: str
    """The policy snapshot to name in it."""

    decision: ClusterDecision
    """Why."""

    state: BindingState | None = None
    """What it becomes; None where its state stays."""

    drops_previous_state: bool = False
    """Whether the annotation `PREVIOUS_STATE` goes."""


class Cycle(msgspec.Struct, frozen=True):
    """One decision about a placement. Bindings are written in the order of the fields, the status last."""

    finalized: tuple[str, ...] = ()
    """Bindings on their way out that still wait for the scheduler: take `BINDING_CLEANUP` off."""

    dangling: tuple[str, ...] = ()
    """Bindings whose clusters have left: mark them as the `unscheduled` ones, before others take their places."""

    creations: tuple[Pick, ...] = ()
    """Bindings to create, best first."""

    changes: tuple[Rebinding, ...] = ()
    """Bindings to change."""

    unscheduled: tuple[str, ...] = ()
    """Bindings to mark Unscheduled, with the state they are in as their only annotation `PREVIOUS_STATE`."""

    decisions: tuple[ClusterDecision, ...] = ()
    """For the snapshot's status: at most 1000 selected, then at most 20 others."""

    fulfilled: bool = True
    """Whether the condition Scheduled is True."""

    reason: str = FULFILLED
    """Of the condition."""

    message: str = ""
    """Of the condition."""

    batches: int = 1
    """How many of KubeFleet's cycles went into this one."""

    decides: bool = True
    """False where KubeFleet leaves the status alone: a PickFixed policy that names no cluster."""

    replacing: tuple[str, ...] = ()
    """Bindings whose clusters stopped matching, kept until their replacements are available."""

    recheck_after: float | None = None
    """When to decide again (seconds from now) although nothing happens: a replacement is taken to be available then."""

    @property
    def given_up(self) -> tuple[str, ...]:
        """All bindings to mark Unscheduled."""
        return self.dangling + self.unscheduled

    @property
    def writes_bindings(self) -> bool:
        """Whether any binding is to be written."""
        return bool(self.finalized or self.creations or self.changes or self.given_up)
