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

from gardenbus.common.resources.placement_parts import BOUND, PREVIOUS_STATE, SCHEDULED, UNSCHEDULED, ResourceBinding
from gardenbus.fleet.outcome import UnexpectedState

ABSENT = ""
"""There is no binding."""

DELETING = "Deleting"
"""Its deletion was asked for; finalizers hold it."""

By = Literal["scheduler", "rollout", "eviction", "works"]
"""The parts of the placement service that write bindings."""


class Transition(NamedTuple):
    """One step that a binding may take."""

    old: str
    """The state that it is in."""

    new: str
    """The state that it comes to."""

    by: By
    """Who may do it."""


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
"""Every step there is. A write that leaves the state as it is takes none."""


def state_of(binding: ResourceBinding | None) -> str:
    """Where in the table a binding is."""
    if binding is None:
        return ABSENT
    return DELETING if binding.is_deleting else binding.spec.state


def check(old: ResourceBinding | None, new: ResourceBinding | None, by: By) -> None:
    """Raise UnexpectedState when a write would take a step that is not in the table.

    Whoever comes back from Unscheduled comes back to what it was.
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
