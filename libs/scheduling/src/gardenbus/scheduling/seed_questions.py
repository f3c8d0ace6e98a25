"""Whether a seed takes shoots at all, rule by rule, and which of those that wait it could take. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from gardenbus.common.resources.conditions import TRUE
from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL
from gardenbus.common.resources.seeds import BACKUP_BUCKETS_READY, EMERGENCY_STOP, GARDENLET_READY
from gardenbus.common.resources.shoot_networks import network_problems
from gardenbus.common.resources.views import ConditionView, LastOperation
from gardenbus.scheduling.choice import choice_of
from gardenbus.scheduling.landscape import SeedCandidate, Snapshot
from gardenbus.scheduling.request import SchedulingRequest
from gardenbus.scheduling.rules import CAPACITY, TAINTS, capacity
from gardenbus.scheduling.rules.usable import unusable_because


class SeedRule(msgspec.Struct, frozen=True):
    """What one rule says of a seed, whatever shoot is to be placed. `message` tells what it was read from."""

    rule: str
    ok: bool
    message: str


def seed_rules(candidate: SeedCandidate, usage: int) -> tuple[SeedRule, ...]:
    """Every rule that asks nothing of the shoot; the seed takes shoots when all are ok.

    Taints are listed too: they keep out only shoots that do not tolerate them.
    """
    return tuple(_seed_rules(candidate, usage))


def _seed_rules(candidate: SeedCandidate, usage: int) -> Iterator[SeedRule]:
    seed = candidate.seed
    if candidate.unreadable:
        yield SeedRule("readable", ok=False, message=candidate.unreadable)
        return
    deleting = seed.metadata.deletion_timestamp
    yield SeedRule("stays", ok=not deleting, message=f"being deleted since {deleting}" if deleting else "not deleting")
    mark = seed.metadata.annotations.get(MARKED_FOR_REMOVAL)
    yield SeedRule("unmarked", ok=not mark, message=f"marked for removal by {mark}" if mark else "no mark for removal")
    visible = seed.spec.settings.scheduling.visible
    told = "true" if visible else "false: it is cordoned, `gardenbus uncordon` opens it again"
    yield SeedRule("visible", ok=visible, message=f"spec.settings.scheduling.visible is {told}")
    reported = seed.status.last_operation is not None
    yield SeedRule("reported", ok=reported, message=f"{'a' if reported else 'no'} gardenlet has reported")
    yield _condition(candidate, GARDENLET_READY)
    if seed.spec.backup is not None:
        yield _condition(candidate, BACKUP_BUCKETS_READY)
    stopped = seed.metadata.annotations.get(EMERGENCY_STOP) == "true"
    told = f"the annotation {EMERGENCY_STOP} is {'true' if stopped else 'not set'}"
    yield SeedRule("emergency-stop", ok=not stopped, message=told)
    full = capacity.problem(usage, candidate.capacity)
    limit = "no limit" if candidate.capacity is None else f"{candidate.capacity} allocatable"
    yield SeedRule(CAPACITY, ok=not full, message=f"{usage} shoots, {limit}")
    taints = ", ".join(f"{taint.key}={taint.value}" if taint.value else taint.key for taint in seed.spec.taints)
    yield SeedRule(TAINTS, ok=True, message=f"only for shoots that tolerate {taints}" if taints else "none")


def _condition(candidate: SeedCandidate, kind: str) -> SeedRule:
    found = next((each for each in candidate.seed.status.conditions if each.type == kind), None)
    if found is None:
        return SeedRule(kind, ok=False, message="the condition is missing")
    said = ": ".join(text for text in (found.reason, found.message) if text)
    return SeedRule(kind, ok=found.status == TRUE, message=f"{found.status}{f' ({said})' if said else ''}")


def takers(requests: Sequence[SchedulingRequest], seed: str, snapshot: Snapshot) -> list[bool]:
    """Which of some requests a seed could take if it were usable and had room, in order.

    What it is (provider, region, zones, labels, taints, networks) counts; how it fares at the moment does not.
    """
    candidate = snapshot.landscape.seeds_by_name[seed]
    if candidate.unreadable:
        return [False] * len(requests)
    opened = _made_usable(candidate)
    assert not unusable_because(opened), "it was made usable"
    landscape = snapshot.landscape.with_seed(opened)
    bit = landscape.index.bits_of([opened])
    networks = opened.seed.spec.networks
    return [
        any(near.bits & bit for near in choice_of(request.demand, landscape).groups)
        and not network_problems(request.ranges, networks)
        for request in requests
    ]


def _made_usable(candidate: SeedCandidate) -> SeedCandidate:
    seed, replace = candidate.seed, msgspec.structs.replace
    hindering = (MARKED_FOR_REMOVAL, EMERGENCY_STOP)
    annotations = {name: value for name, value in seed.metadata.annotations.items() if name not in hindering}
    conditions = tuple(ConditionView(type=kind, status=TRUE) for kind in (GARDENLET_READY, BACKUP_BUCKETS_READY))
    settings = seed.spec.settings
    usable = replace(
        seed,
        metadata=replace(seed.metadata, deletion_timestamp=None, annotations=annotations),
        spec=replace(seed.spec, settings=replace(settings, scheduling=replace(settings.scheduling, visible=True))),
        status=replace(seed.status, conditions=conditions, last_operation=LastOperation()),
    )
    return replace(candidate, seed=usable)
