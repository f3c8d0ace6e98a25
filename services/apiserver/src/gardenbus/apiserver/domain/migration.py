"""Migration of a placed shoot: the meaning of a bind, and changes that are forbidden while the control plane moves.

The course of a bind, by the target seed (spec.seedName), the present one (status.seedName, empty until a gardenlet has
claimed the shoot), and the requested one:

    | spec | status  | requested | its operation       | force | course                                      |
    |------|---------|-----------|---------------------|-------|---------------------------------------------|
    | A    | any     | A         | any                 | no    | unchanged                                   |
    | A    | A or "" | A         | any                 | yes   | unchanged                                   |
    | any  | any     | any other | Migrate, or Restore | no    | rejected                                    |
    |      |         |           | that has not ended  |       |                                             |
    | B    | A       | A         | any other           | no    | back: the migration has not begun           |
    | A    | any     | B         | any other           | no    | move                                        |
    | any  | ""      | B         | any                 | yes   | rejected: there is nothing to be restored   |
    | any  | A       | B         | any                 | yes   | restore: without its source, at once        |

Source: Gardener's admission plugin ShootValidator; the courses back and restore are ours.
"""

from typing import Literal

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, name_of, namespace_of, without
from gardenbus.common.api.garden.migration_feasibility import seeds_of, state_owners
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.errors import Forbidden

MOVING = RejectionMessage("spec: cannot be changed while the control plane moves ({phase}): try again when it has")

Course = Literal["unchanged", "back", "move", "restore"]

MIGRATE = "Migrate"
RESTORE = "Restore"
SUCCEEDED = "Succeeded"
ABORTED = "Aborted"
ERROR = "Error"

RESTORED_BY_FORCE = "Restoration by force: the previous seed has not prepared it."


def source_of(shoot: Document) -> str:
    """The seed that a placed shoot would be migrated from: the present one, else its target."""
    wanted, actual = seeds_of(shoot)
    return actual or wanted


def course_of(shoot: Document, seed: str, *, force: bool) -> Course:
    """Course of a bind of a placed shoot, by the module's table. Raises Forbidden."""
    wanted, actual = seeds_of(shoot)
    if seed == wanted and not (force and actual not in ("", seed)):
        return "unchanged"
    if force:
        if not actual:
            raise Forbidden("status.seedName: no gardenlet has taken the shoot yet: bind it without force")
        return "restore"
    if is_deleting(shoot):
        raise Forbidden("metadata.deletionTimestamp: the shoot is being deleted, and is not moved any more")
    if phase := _phase(shoot):
        route = f"from {actual} to {wanted}" if actual not in ("", wanted) else f"to {wanted}"
        raise Forbidden(
            f"spec.seedName: the shoot is moving {route} ({phase}): wait until it is there, or bind it with "
            "force: true when a seed is lost for good"
        )
    return "back" if seed == actual else "move"


def moved(shoot: Document, seed: str) -> Document:
    """The shoot with another target seed; nothing else changes."""
    return {**shoot, "spec": {**section(shoot, "spec"), "seedName": seed}}


def restored_by_force(shoot: Document, seed: str, *, now: str) -> Document:
    """The shoot assigned to another seed at once, to be restored there from its ShootState.

    Its source is not involved: reports of it are no longer accepted. `now` is RFC 3339.
    """
    left_behind = ("lastErrors", "retryCycleStartTime", "seedName", "lastOperation")
    status = without(section(shoot, "status"), *left_behind)
    operation = {
        "type": MIGRATE,
        "state": ABORTED,
        "progress": 0,
        "description": RESTORED_BY_FORCE,
        "lastUpdateTime": now,
    }
    return with_status_label({**moved(shoot, seed), "status": {**status, "seedName": seed, "lastOperation": operation}})


def admit_state(shoot: Document, state: Document | None) -> None:
    """Raise Forbidden unless there is a ShootState of this very shoot."""
    name = f"{namespace_of(shoot)}/{name_of(shoot)}"
    if state is None:
        raise Forbidden(f"shootstate {name} not found: nothing could be restored from it")
    born, saved = (str(section(one, "metadata").get("creationTimestamp") or "") for one in (shoot, state))
    owners = state_owners(state)
    if saved < born or (owners and section(shoot, "metadata").get("uid") not in owners):
        raise Forbidden(f"shootstate {name} was saved of another shoot of that name")


def admit_change(shoot: Document, old: Document) -> None:
    """Raise Forbidden for a change of spec (not by a bind) while the control plane moves, or is about to."""
    if section(shoot, "spec") == section(old, "spec"):
        return
    wanted, actual = seeds_of(old)
    phase = _phase(old)
    if not phase and actual and wanted != actual:
        phase = f"it has been bound to seed {wanted} and still stands on {actual}"
    if phase:
        raise Forbidden(MOVING(phase=phase))


def admit_deletion(document: Document) -> None:
    """Raise Forbidden for the deletion of a shoot whose control plane is being migrated; other kinds pass."""
    if document.get("kind") != "Shoot" or is_deleting(document):
        return
    if phase := _phase(document):
        raise Forbidden(f"the shoot cannot be deleted while its control plane moves ({phase}): try again when it has")


def _phase(shoot: Document) -> str:
    """Step of a migration that the control plane is in; "" when there is none."""
    operation = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    if kind == MIGRATE and state == ERROR and not operation.get("progress"):
        return ""  # its source has only waited for the destination so far
    if kind == MIGRATE or (kind == RESTORE and state != SUCCEEDED):
        return f"its last operation is {kind}, {state or 'begun'}"
    return ""
