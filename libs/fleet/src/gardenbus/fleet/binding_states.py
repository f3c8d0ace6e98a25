"""The life of a binding, as a table.

    (nothing)   ── scheduler ──► Scheduled ── rollout ──► Bound
    Scheduled, Bound ── scheduler ──► Unscheduled ── scheduler ──► what it was before
    Unscheduled ── rollout, within the budget ──► (deleting)
    Bound, Unscheduled ── eviction ──► (deleting)
    any ── scheduler, when the placement is deleted ──► (deleting) ── scheduler, works ──► (nothing)

A binding that is deleting never comes back: a cluster that is picked again in the meantime gets another one.
Source: KubeFleet's `apis/placement/v1beta1/binding_types.go` and the controllers that write bindings.
"""

from typing import Literal, NamedTuple

from gardenbus.common.api.fleet.placement_parts import BOUND, PREVIOUS_STATE, SCHEDULED, UNSCHEDULED, ResourceBinding
from gardenbus.fleet.cycle_result import UnexpectedState

ABSENT = ""
"""There is no binding."""

DELETING = "Deleting"
"""It has a deletion timestamp; finalizers hold it."""

By = Literal["scheduler", "rollout", "eviction", "works"]
"""The controllers of the placement service that write bindings."""


class Transition(NamedTuple):
    """One transition of a binding."""

    old: str
    """State before."""

    new: str
    """State after."""

    by: By
    """The controller that may make it."""


TRANSITIONS = frozenset(
    {
        Transition(ABSENT, SCHEDULED, "scheduler"),
        Transition(SCHEDULED, BOUND, "rollout"),
        Transition(SCHEDULED, UNSCHEDULED, "scheduler"),
        Transition(BOUND, UNSCHEDULED, "scheduler"),
        Transition(UNSCHEDULED, SCHEDULED, "scheduler"),
        Transition(UNSCHEDULED, BOUND, "scheduler"),
        Transition(UNSCHEDULED, DELETING, "rollout"),
        Transition(BOUND, DELETING, "eviction"),
        Transition(UNSCHEDULED, DELETING, "eviction"),
        Transition(SCHEDULED, DELETING, "scheduler"),
        Transition(BOUND, DELETING, "scheduler"),
        Transition(UNSCHEDULED, DELETING, "scheduler"),
        Transition(DELETING, ABSENT, "scheduler"),
        Transition(DELETING, ABSENT, "works"),
    }
)
"""All transitions. A write that keeps the state needs none."""


def state_of(binding: ResourceBinding | None) -> str:
    """Return the state of a binding as the table names it."""
    if binding is None:
        return ABSENT
    return DELETING if binding.is_deleting else binding.spec.state


def check(old: ResourceBinding | None, new: ResourceBinding | None, by: By) -> None:
    """Raise UnexpectedState when a write would make a transition that is not in the table.

    A binding that leaves Unscheduled has to return to its previous state.
    """
    before, after = state_of(old), state_of(new)
    if before == after:
        return
    if Transition(before, after, by) not in TRANSITIONS:
        raise UnexpectedState(
            f"{_name(old, new)}: {by} may not bring it from {before or 'nothing'} to {after or 'nothing'}"
        )
    returns = before == UNSCHEDULED and after in (SCHEDULED, BOUND)
    if old is not None and returns and old.metadata.annotations.get(PREVIOUS_STATE) != after:
        raise UnexpectedState(f"{_name(old, new)}: it was not {after} before it was given up")


def _name(old: ResourceBinding | None, new: ResourceBinding | None) -> str:
    binding = old or new
    return f"binding {binding.name}" if binding else "a binding"
