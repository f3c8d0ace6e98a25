"""Which replica goes when a set has too many, how it goes, and what is in the way of the others.

The order: lower priority first, then the earlier stage, then Seeds that are not ready, then worse health, then fewer
shoots (only draining lets a seed in use go), then the lower ordinal. Never a protected one, and never one in use.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.seed_management import CORDONED_BY
from gardenbus.managedseedset.decide.actions import (
    Action,
    Bind,
    Delete,
    DeleteManagedSeed,
    DrainUnknown,
    MarkSeed,
    Patch,
    SetEvent,
)
from gardenbus.managedseedset.decide.replicas import Replica, is_deleting
from gardenbus.managedseedset.decide.steps import (
    MANAGED_SEED_DELETING,
    SEED_DRAINING,
    SHOOT_DELETING,
    Step,
    managed_seed_key,
    shoot_key,
)

CONFIRMED: Document = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}


class Relocation(msgspec.Struct, frozen=True):
    """One shoot that can move: to which seed."""

    shoot: ObjectKey
    target: str


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """What draining a seed would mean.

    `under_way`: shoots that are moving or being deleted already; `stuck`: those that cannot move, with the reason.
    """

    moves: tuple[Relocation, ...] = ()
    under_way: int = 0
    stuck: tuple[tuple[ObjectKey, str], ...] = ()


class Obstacle(msgspec.Struct, frozen=True):
    """Why a replica cannot be removed. `reason` is a condition's word for it."""

    name: str
    reason: str
    message: str


class Shrinking(msgspec.Struct, frozen=True, kw_only=True):
    """How a set shrinks. `owner`: `<ns>/<set>`, in marks and cordons; `first`: the replica already chosen, if any.

    `surplus`: how many are to go; `drains`: what is known of draining; `at_once`: how many shoots move together.
    """

    owner: str
    surplus: int
    first: str = ""
    drain: bool = False
    drains: Mapping[str, Drain] = {}
    at_once: int = 5
    look_again_seconds: float = 2.0


class Shrunk(msgspec.Struct, frozen=True):
    """The step that removes or drains one, if any, and what is in the way of those before it."""

    step: Step | None
    obstacles: tuple[Obstacle, ...]


def shrink(replicas: Sequence[Replica], how: Shrinking) -> "Shrunk | DrainUnknown":
    """Choose one replica and say what is done to it."""
    order = sorted(replicas, key=_turn)
    order.sort(key=lambda each: each.name != how.first)
    obstacles: list[Obstacle] = []
    for replica in order:
        obstacle = _obstacle(replica, how)
        if obstacle is not None:
            obstacles.append(obstacle)
            continue
        if not replica.usage:
            return Shrunk(_removal(replica), tuple(obstacles))
        known = how.drains.get(replica.name)
        if known is None:
            next_ones = [each.name for each in order if each.name != replica.name and not each.is_protected]
            return DrainUnknown(replica.name, tuple(next_ones[: how.surplus - 1]))
        if known.stuck:
            obstacles.append(_stuck(replica, known))
            continue
        return Shrunk(_drained(replica, known, how), tuple(obstacles))
    return Shrunk(None, tuple(obstacles))


def cordon(seed: str, owner: str) -> Patch:
    """Take a seed out of the scheduler's choice, to be drained."""
    patch: Document = {
        "metadata": {"annotations": {CORDONED_BY: owner}},
        "spec": {"settings": {"scheduling": {"visible": False}}},
    }
    event = SetEvent("CordoningSeed", f"Cordoning seed {seed}, to move its shoots away")
    return Patch(key=ObjectKey("seed", "", seed), patch=patch, event=event)


def uncordon(seed: str) -> Patch:
    """Let the scheduler choose it again."""
    patch: Document = {
        "metadata": {"annotations": {CORDONED_BY: None}},
        "spec": {"settings": {"scheduling": {"visible": True}}},
    }
    event = SetEvent("UncordoningSeed", f"Uncordoning seed {seed}, which is not drained any more")
    return Patch(key=ObjectKey("seed", "", seed), patch=patch, event=event)


def told(obstacles: Sequence[Obstacle], surplus: int) -> tuple[str, str]:
    """Reason and message of the condition for replicas that should go and cannot."""
    reasons = {obstacle.reason for obstacle in obstacles}
    reason = reasons.pop() if len(reasons) == 1 else "NoReplicaRemovable"
    what = "; ".join(obstacle.message for obstacle in obstacles) or "there is none that may be removed"
    message = f"{surplus} more {'replica' if surplus == 1 else 'replicas'} should go: {what}"
    in_use = [obstacle.name for obstacle in obstacles if obstacle.reason == "SeedsInUse"]
    if in_use:
        message += f". Move the shoots away by `gardenbus drain {in_use[0]}`, or set spec.scaleIn.drain: true"
    return reason, message


def _turn(replica: Replica) -> tuple[int, int, bool, int, int, int, str]:
    return (
        replica.priority,
        int(replica.stage),
        replica.seed_ready,
        replica.health,
        replica.usage,
        replica.ordinal,
        replica.name,
    )


def _obstacle(replica: Replica, how: Shrinking) -> Obstacle | None:
    shoots = _shoots(replica)
    if replica.is_protected:
        on_it = f", with {shoots}" if replica.usage else ""
        return Obstacle(replica.name, "Protected", f"{replica.name} is protected{on_it}")
    if replica.usage and not how.drain:
        return Obstacle(replica.name, "SeedsInUse", f"{replica.name} has {shoots}")
    if replica.usage and not replica.hears:
        message = f"{replica.name} has {shoots}, which cannot be moved while its seed is not ready"
        return Obstacle(replica.name, "SeedNotReady", message)
    return None


def _shoots(replica: Replica) -> str:
    return "1 shoot" if replica.usage == 1 else f"{replica.usage} shoots"


def _stuck(replica: Replica, drain: Drain) -> Obstacle:
    shoot, reason = drain.stuck[0]
    others = f" (and {len(drain.stuck) - 1} more)" if len(drain.stuck) > 1 else ""
    message = (
        f"{replica.name} has {_shoots(replica)}, of which {shoot.namespace}/{shoot.name}{others} "
        f"cannot be moved: {reason}"
    )
    return Obstacle(replica.name, "NoPlaceForShoots", message)


def _removal(replica: Replica) -> Step:
    """The Seed is marked first, which fails unless nothing is on it; from then on nothing comes to it."""
    name = replica.name
    actions: list[Action] = []
    if replica.seed is not None and not replica.mark and not is_deleting(replica.seed):
        actions.append(MarkSeed(seed=name, marked=True))
    if replica.managed_seed is not None:
        event = SetEvent("DeletingManagedSeed", f"Deleting managed seed {name}")
        version = int(section(replica.managed_seed, "metadata").get("resourceVersion") or 0)
        without_seed = replica.seed is None
        actions.append(
            DeleteManagedSeed(key=managed_seed_key(replica), version=version, without_seed=without_seed, event=event)
        )
        return Step(name=name, reason=MANAGED_SEED_DELETING, actions=tuple(actions), removes=True)
    event = SetEvent("DeletingShoot", f"Deleting shoot {name}")
    actions += [Patch(key=shoot_key(replica), patch=CONFIRMED), Delete(key=shoot_key(replica), event=event)]
    return Step(name=name, reason=SHOOT_DELETING, actions=tuple(actions), removes=True)


def _drained(replica: Replica, drain: Drain, how: Shrinking) -> Step:
    """A few shoots at once: those that move count until they have arrived."""
    actions: list[Action] = [cordon(replica.name, how.owner)] if replica.is_visible else []
    for move in drain.moves[: max(how.at_once - drain.under_way, 0)]:
        message = f"Moving shoot {move.shoot.namespace}/{move.shoot.name} from seed {replica.name} to {move.target}"
        actions.append(Bind(shoot=move.shoot, seed=move.target, event=SetEvent("MovingShoot", message)))
    return Step(
        name=replica.name,
        reason=SEED_DRAINING,
        event=SetEvent("DrainingSeed", f"Draining seed {replica.name}, which has {_shoots(replica)}"),
        actions=tuple(actions),
        removes=True,
        after_seconds=how.look_again_seconds,
    )
