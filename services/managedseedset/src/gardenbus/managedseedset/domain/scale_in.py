"""Scale-in: the replica to be removed, the way to remove it, and the obstacles to removing others.

The order: lower priority first, then the earlier stage, then Seeds that are not ready, then worse health, then fewer
shoots (only draining removes a seed in use), then the lower ordinal. Never a protected one, and never one in use.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.seed_management import CORDONED_BY
from gardenbus.common.api.keys import ObjectKey
from gardenbus.managedseedset.domain.actions import (
    AnnotateForRemoval,
    Bind,
    Delete,
    DeleteManagedSeed,
    DrainForecastNeeded,
    Patch,
    SetAction,
    SetEvent,
)
from gardenbus.managedseedset.domain.replica_steps import (
    MANAGED_SEED_DELETING,
    SEED_DRAINING,
    SHOOT_DELETING,
    ReplicaStep,
    managed_seed_key,
    shoot_key,
)
from gardenbus.managedseedset.domain.replicas import Replica


class DrainMove(msgspec.Struct, frozen=True):
    """Migration of one shoot to another seed."""

    shoot: ObjectKey
    target: str


class DrainForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of draining a seed.

    `under_way`: shoots that are migrating or being deleted already; `stuck`: those that cannot migrate, with the
    reason.
    """

    moves: tuple[DrainMove, ...] = ()
    under_way: int = 0
    stuck: tuple[tuple[ObjectKey, str], ...] = ()


class Obstacle(msgspec.Struct, frozen=True):
    """An obstacle to removing a replica. `reason` is a condition's reason."""

    name: str
    reason: str
    message: str


class ScaleInOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a scale-in. `owner`: `<ns>/<set>`, in annotations; `first`: the replica already chosen, if any.

    `surplus`: how many are to be removed; `drains`: drain forecasts; `max_moves`: how many shoots migrate together.
    """

    owner: str
    surplus: int
    first: str = ""
    drain: bool = False
    drains: Mapping[str, DrainForecast] = {}
    max_moves: int = 5
    poll_seconds: float = 2.0


class ScaleInResult(msgspec.Struct, frozen=True):
    """The step that removes or drains one, if any, and the obstacles of those before it."""

    step: ReplicaStep | None
    obstacles: tuple[Obstacle, ...]


def scale_in(replicas: Sequence[Replica], options: ScaleInOptions) -> "ScaleInResult | DrainForecastNeeded":
    """Choose one replica and the step to remove it."""
    order = sorted(replicas, key=_removal_order)
    order.sort(key=lambda each: each.name != options.first)
    obstacles: list[Obstacle] = []
    for replica in order:
        obstacle = _obstacle(replica, options)
        if obstacle is not None:
            obstacles.append(obstacle)
            continue
        if not replica.usage:
            return ScaleInResult(_removal_step(replica), tuple(obstacles))
        forecast = options.drains.get(replica.name)
        if forecast is None:
            next_ones = [each.name for each in order if each.name != replica.name and not each.is_protected]
            return DrainForecastNeeded(replica.name, tuple(next_ones[: options.surplus - 1]))
        if forecast.stuck:
            obstacles.append(_stuck_obstacle(replica, forecast))
            continue
        return ScaleInResult(_drain_step(replica, forecast, options), tuple(obstacles))
    return ScaleInResult(None, tuple(obstacles))


def cordon(seed: str, owner: str) -> Patch:
    """Cordon a seed to drain it."""
    patch: Document = {
        "metadata": {"annotations": {CORDONED_BY: owner}},
        "spec": {"settings": {"scheduling": {"visible": False}}},
    }
    event = SetEvent("CordoningSeed", f"Cordoning seed {seed}, to move its shoots away")
    return Patch(key=ObjectKey("seed", "", seed), patch=patch, event=event)


def uncordon(seed: str) -> Patch:
    """Uncordon a seed."""
    patch: Document = {
        "metadata": {"annotations": {CORDONED_BY: None}},
        "spec": {"settings": {"scheduling": {"visible": True}}},
    }
    event = SetEvent("UncordoningSeed", f"Uncordoning seed {seed}, which is not drained any more")
    return Patch(key=ObjectKey("seed", "", seed), patch=patch, event=event)


def blocked_condition(obstacles: Sequence[Obstacle], surplus: int) -> tuple[str, str]:
    """Reason and message of the condition for replicas that should go and cannot."""
    reasons = {obstacle.reason for obstacle in obstacles}
    reason = reasons.pop() if len(reasons) == 1 else "NoReplicaRemovable"
    what = "; ".join(obstacle.message for obstacle in obstacles) or "there is none that may be removed"
    message = f"{surplus} more {'replica' if surplus == 1 else 'replicas'} should go: {what}"
    in_use = [obstacle.name for obstacle in obstacles if obstacle.reason == "SeedsInUse"]
    if in_use:
        message += f". Move the shoots away by `gardenbus drain {in_use[0]}`, or set spec.scaleIn.drain: true"
    return reason, message


def _removal_order(replica: Replica) -> tuple[int, int, bool, int, int, int, str]:
    return (
        replica.priority,
        int(replica.stage),
        replica.seed_ready,
        replica.health,
        replica.usage,
        replica.ordinal,
        replica.name,
    )


def _obstacle(replica: Replica, options: ScaleInOptions) -> Obstacle | None:
    shoots = _shoots(replica)
    if replica.is_protected:
        on_it = f", with {shoots}" if replica.usage else ""
        return Obstacle(replica.name, "Protected", f"{replica.name} is protected{on_it}")
    if replica.usage and not options.drain:
        return Obstacle(replica.name, "SeedsInUse", f"{replica.name} has {shoots}")
    if replica.usage and not replica.gardenlet_is_ready:
        message = f"{replica.name} has {shoots}, which cannot be moved while its seed is not ready"
        return Obstacle(replica.name, "SeedNotReady", message)
    return None


def _shoots(replica: Replica) -> str:
    return "1 shoot" if replica.usage == 1 else f"{replica.usage} shoots"


def _stuck_obstacle(replica: Replica, drain: DrainForecast) -> Obstacle:
    shoot, reason = drain.stuck[0]
    others = f" (and {len(drain.stuck) - 1} more)" if len(drain.stuck) > 1 else ""
    message = (
        f"{replica.name} has {_shoots(replica)}, of which {shoot.namespace}/{shoot.name}{others} "
        f"cannot be moved: {reason}"
    )
    return Obstacle(replica.name, "NoPlaceForShoots", message)


def _removal_step(replica: Replica) -> ReplicaStep:
    """Remove a replica. Its Seed is annotated first, which fails unless it is empty and keeps it so."""
    name = replica.name
    actions: list[SetAction] = []
    if replica.seed is not None and not replica.removal_owner and not is_deleting(replica.seed):
        actions.append(AnnotateForRemoval(seed=name, annotated=True))
    if replica.managed_seed is not None:
        event = SetEvent("DeletingManagedSeed", f"Deleting managed seed {name}")
        version = int(section(replica.managed_seed, "metadata").get("resourceVersion") or 0)
        without_seed = replica.seed is None
        actions.append(
            DeleteManagedSeed(key=managed_seed_key(replica), version=version, without_seed=without_seed, event=event)
        )
        return ReplicaStep(name=name, reason=MANAGED_SEED_DELETING, actions=tuple(actions), removes=True)
    event = SetEvent("DeletingShoot", f"Deleting shoot {name}")
    actions += [Patch(key=shoot_key(replica), patch=CONFIRMING_PATCH), Delete(key=shoot_key(replica), event=event)]
    return ReplicaStep(name=name, reason=SHOOT_DELETING, actions=tuple(actions), removes=True)


def _drain_step(replica: Replica, drain: DrainForecast, options: ScaleInOptions) -> ReplicaStep:
    """Migrate a few shoots at once: those under way count until they have arrived."""
    actions: list[SetAction] = [cordon(replica.name, options.owner)] if replica.is_visible else []
    for move in drain.moves[: max(options.max_moves - drain.under_way, 0)]:
        message = f"Moving shoot {move.shoot.namespace}/{move.shoot.name} from seed {replica.name} to {move.target}"
        actions.append(Bind(shoot=move.shoot, seed=move.target, event=SetEvent("MovingShoot", message)))
    return ReplicaStep(
        name=replica.name,
        reason=SEED_DRAINING,
        event=SetEvent("DrainingSeed", f"Draining seed {replica.name}, which has {_shoots(replica)}"),
        actions=tuple(actions),
        removes=True,
        after_seconds=options.poll_seconds,
    )
