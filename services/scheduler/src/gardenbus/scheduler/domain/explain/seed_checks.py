"""Checks of one seed, whatever shoot is to be placed, and the waiting shoots that it could take."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.garden.resource_amounts import quantity_of
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.garden.seeds import BACKUP_BUCKETS_READY, EMERGENCY_STOP, GARDENLET_READY
from gardenbus.common.api.garden.shoot_networks import network_problems
from gardenbus.common.api.views import ConditionView, LastOperation
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.filters.capacity import CAPACITY
from gardenbus.scheduling.filters.emergency_stop import EMERGENCY_STOPPED, is_stopped
from gardenbus.scheduling.filters.taints import TAINTS
from gardenbus.scheduling.filters.usable import unusable_because
from gardenbus.scheduling.room import full_because
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Snapshot
from gardenbus.scheduling.usage_index import NOTHING


class SeedCheck(msgspec.Struct, frozen=True):
    """The result of one check on a seed. `message` names what it was read from."""

    rule: str
    ok: bool
    message: str


def checks_of_seed(
    candidate: SeedCandidate, usage: int, requested: Mapping[str, int] = NOTHING
) -> tuple[SeedCheck, ...]:
    """Every check that does not depend on the shoot; the seed takes shoots when all are ok.

    Taints are listed too: they keep out only shoots that do not tolerate them.
    """
    return (*_checks(candidate, usage), *_resources(candidate, requested))


def _checks(candidate: SeedCandidate, usage: int) -> Iterator[SeedCheck]:
    seed = candidate.seed
    if candidate.unreadable:
        yield SeedCheck("readable", ok=False, message=candidate.unreadable)
        return
    deleting = seed.metadata.deletion_timestamp
    yield SeedCheck(
        "not deleting",
        ok=not deleting,
        message=f"being deleted since {deleting}" if deleting else "no deletionTimestamp",
    )
    owner = seed.metadata.annotations.get(REMOVAL_ANNOTATION)
    yield SeedCheck(
        "not marked for removal",
        ok=not owner,
        message=f"marked for removal by {owner}" if owner else "no removal annotation",
    )
    visible = seed.spec.settings.scheduling.visible
    value = "true" if visible else "false: `gardenbus uncordon` makes it schedulable"
    yield SeedCheck("not cordoned", ok=visible, message=f"spec.settings.scheduling.visible is {value}")
    reported = seed.status.last_operation is not None
    yield SeedCheck("reported", ok=reported, message=f"{'a' if reported else 'no'} gardenlet has reported")
    yield _condition(candidate, GARDENLET_READY)
    if seed.spec.backup is not None:
        yield _condition(candidate, BACKUP_BUCKETS_READY)
    stopped = is_stopped(candidate)
    message = f"the annotation {EMERGENCY_STOP} is {'true' if stopped else 'not set'}"
    yield SeedCheck(EMERGENCY_STOPPED.name, ok=not stopped, message=message)
    full = full_because(usage, candidate.capacity)
    limit = "no limit" if candidate.capacity is None else f"{candidate.capacity} allocatable"
    yield SeedCheck(CAPACITY.name, ok=not full, message=f"{usage} shoots, {limit}")
    taints = ", ".join(f"{taint.key}={taint.value}" if taint.value else taint.key for taint in seed.spec.taints)
    yield SeedCheck(TAINTS.name, ok=True, message=f"only for shoots that tolerate {taints}" if taints else "none")


def _resources(candidate: SeedCandidate, requested: Mapping[str, int]) -> Iterator[SeedCheck]:
    """Checks of each resource that shoots request: a seed without enough of it takes those that request less."""
    for resource, amount in sorted(requested.items()):
        stated = candidate.allocatable.get(resource)
        limit = "none allocatable" if stated is None else f"{quantity_of(resource, stated)} allocatable"
        yield SeedCheck(resource, ok=True, message=f"{quantity_of(resource, amount)} requested, {limit}")


def _condition(candidate: SeedCandidate, kind: str) -> SeedCheck:
    found = next((each for each in candidate.seed.status.conditions if each.type == kind), None)
    if found is None:
        return SeedCheck(kind, ok=False, message="the condition is missing")
    detail = ": ".join(text for text in (found.reason, found.message) if text)
    return SeedCheck(kind, ok=found.status == TRUE, message=f"{found.status}{f' ({detail})' if detail else ''}")


def schedulable_on(requests: Sequence[SchedulingRequest], seed: str, snapshot: Snapshot) -> list[bool]:
    """For each request whether the seed could take it if it were usable and had room.

    Its spec counts (provider, region, zones, labels, taints, networks), its state at the moment does not.
    """
    candidate = snapshot.landscape.seeds_by_name[seed]
    if candidate.unreadable:
        return [False] * len(requests)
    opened = _usable(candidate)
    assert not unusable_because(opened), "it was made usable"
    landscape = snapshot.landscape.with_seed(opened)
    bit = landscape.index.bits_of([opened])
    networks = opened.seed.spec.networks
    return [
        any(group.feasible & bit for group in feasible_seeds_of(request.constraints, landscape).groups)
        and not network_problems(request.ranges, networks)
        for request in requests
    ]


def _usable(candidate: SeedCandidate) -> SeedCandidate:
    seed, replace = candidate.seed, msgspec.structs.replace
    blocking = (REMOVAL_ANNOTATION, EMERGENCY_STOP)
    annotations = {name: value for name, value in seed.metadata.annotations.items() if name not in blocking}
    conditions = tuple(ConditionView(type=kind, status=TRUE) for kind in (GARDENLET_READY, BACKUP_BUCKETS_READY))
    settings = seed.spec.settings
    usable = replace(
        seed,
        metadata=replace(seed.metadata, deletion_timestamp=None, annotations=annotations),
        spec=replace(seed.spec, settings=replace(settings, scheduling=replace(settings.scheduling, visible=True))),
        status=replace(seed.status, conditions=conditions, last_operation=LastOperation()),
    )
    return replace(candidate, seed=usable)
