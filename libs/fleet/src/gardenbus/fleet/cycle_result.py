"""Result of a scheduling cycle: the bindings to write, and the decisions and condition to record.

Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from typing import ClassVar

import msgspec

from gardenbus.common.api.fleet.placement_parts import BindingState, ClusterDecision
from gardenbus.common.errors import Transient

FULFILLED = "SchedulingPolicyFulfilled"
UNFULFILLED = "SchedulingPolicyUnfulfilled"

FAILED = "SchedulingFailed"
"""Reason of a policy that could not be evaluated; the cycle is retried."""


class UnexpectedState(Transient):
    """The stored state contradicts itself, or a policy cannot be evaluated: nothing of the cycle may be written.

    Retried with backoff, and recorded in the placement's status. The message names the problem.
    """

    code = 500
    reason: ClassVar[str] = "UnexpectedState"


class Pick(msgspec.Struct, frozen=True):
    """A binding to create, in state Scheduled and without a resource snapshot."""

    cluster: str
    """The target cluster."""

    decision: ClusterDecision
    """The decision to record in it."""


class Rebinding(msgspec.Struct, frozen=True):
    """An existing binding to adopt into the current policy."""

    binding: str
    """Its name."""

    snapshot: str
    """The policy snapshot to record in it."""

    decision: ClusterDecision
    """The decision to record in it."""

    state: BindingState | None = None
    """Its new state; None where the state stays."""

    drops_previous_state: bool = False
    """True when the annotation `PREVIOUS_STATE` is removed."""


class CycleResult(msgspec.Struct, frozen=True):
    """One decision about a placement. Bindings are written in the order of the fields, the status last."""

    finalized: tuple[str, ...] = ()
    """Deleting bindings that the scheduler still holds: remove `BINDING_CLEANUP`."""

    dangling: tuple[str, ...] = ()
    """Bindings whose clusters have left: marked Unscheduled before others replace them."""

    creations: tuple[Pick, ...] = ()
    """Bindings to create, best first."""

    changes: tuple[Rebinding, ...] = ()
    """Bindings to change."""

    unscheduled: tuple[str, ...] = ()
    """Bindings to mark Unscheduled; their only annotation becomes `PREVIOUS_STATE`, with the state before."""

    decisions: tuple[ClusterDecision, ...] = ()
    """For the snapshot's status: at most 1000 selected, then at most 20 others."""

    fulfilled: bool = True
    """True when the condition Scheduled is True."""

    reason: str = FULFILLED
    """Reason of the condition."""

    message: str = ""
    """Message of the condition."""

    batches: int = 1
    """Number of KubeFleet's cycles that this one covers."""

    updates_status: bool = True
    """False where KubeFleet leaves the status alone: a PickFixed policy that names no cluster."""

    replacing: tuple[str, ...] = ()
    """Bindings whose clusters stopped matching, kept until their replacements are available."""

    recheck_after: float | None = None
    """Seconds until the next decision without any event: a replacement is then assumed available."""

    @property
    def given_up(self) -> tuple[str, ...]:
        """All bindings to mark Unscheduled."""
        return self.dangling + self.unscheduled
