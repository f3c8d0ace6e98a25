"""Any state of bindings, any part of a step carried out: the budgets hold, and step by step the rollout ends."""

from collections.abc import Collection, Sequence
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.fleet.placement_parts import BOUND, SCHEDULED, UNSCHEDULED, PartCondition, ResourceBinding
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.fleet.availability import has_failed, is_diff_reported, readiness
from gardenbus.fleet.binding_states import check
from gardenbus.fleet.rollout import RolloutStep, plan
from tests.support.fleets import NOW, a_placement, at
from tests.support.rolling import EARLIER, FAILED, LATEST, PENDING, READY, on_its_way, scheduled, unscheduled

responses = st.sampled_from([READY, READY, FAILED, PENDING, None])
resources = st.sampled_from([LATEST, EARLIER])
kinds = st.sampled_from(["scheduled", "bound", "bound", "given up", "never placed", "leaving"])
numbers = st.integers(0, 6)
shares = st.sampled_from([0, 1, 2, "10%", "25%", "50%", "100%"])


@st.composite
def fleets(draw: st.DrawFn) -> list[ResourceBinding]:
    """One binding a cluster, each somewhere on its way."""
    found: list[ResourceBinding] = []
    for number in range(draw(st.integers(0, 12))):
        cluster, kind, available = f"{number:02}", draw(kinds), draw(responses)
        held = draw(resources)
        if kind == "scheduled":
            found.append(scheduled(cluster))
        elif kind == "bound":
            found.append(on_its_way(cluster, available=available, resources=held))
        elif kind == "given up":
            found.append(unscheduled(cluster, available, resources=held))
        elif kind == "never placed":
            found.append(unscheduled(cluster, None, previous="Scheduled", resources=""))
        else:
            found.append(unscheduled(cluster, available, deleting=-1))
    return found


def limited(number: int, unavailable: int | str, surge: int | str) -> Placement:
    update = {"maxUnavailable": unavailable, "maxSurge": surge}
    policy = {"placementType": "PickN", "numberOfClusters": number}
    return a_placement(policy, spec={"strategy": {"rollingUpdate": update}})


def is_ready(binding: ResourceBinding) -> bool:
    return readiness(binding, unavailable_period_seconds=60, now=NOW).is_ready


def serving(bindings: Sequence[ResourceBinding]) -> int:
    """Those that serve, and go on to."""
    return sum(is_ready(each) and not each.is_deleting for each in bindings)


def may_serve(bindings: Sequence[ResourceBinding], in_vain: Collection[str]) -> int:
    """Those that serve or may come to; one that was `in_vain` does not come to serve by being deleted."""
    handed = [each for each in bindings if each.spec.state != SCHEDULED]
    return sum(not is_in_vain(each) and not (each.is_deleting and each.name in in_vain) for each in handed)


def is_in_vain(binding: ResourceBinding) -> bool:
    return has_failed(binding) or is_diff_reported(binding)


def amount(limit: int | str, total: int) -> int:
    return limit if isinstance(limit, int) else -(-int(limit.removesuffix("%")) * total // 100)


def carried_out(bindings: Sequence[ResourceBinding], step: RolloutStep, name: str) -> list[ResourceBinding]:
    """The bindings after one write of a step."""
    changed: list[ResourceBinding] = []
    for each in bindings:
        new = each
        if each.name == name:
            metadata = msgspec.structs.replace(each.metadata, generation=each.metadata.generation + 1)
            if name in step.delete:
                metadata = msgspec.structs.replace(metadata, deletion_timestamp=at())
                new = msgspec.structs.replace(each, metadata=metadata)
            else:
                spec = msgspec.structs.replace(each.spec, state=BOUND, resource_snapshot_name=LATEST)
                new = msgspec.structs.replace(each, metadata=metadata, spec=spec)
            check(each, new, "rollout")
        changed.append(new)
    return changed


@settings(max_examples=400, deadline=None)
@given(
    bindings=fleets(),
    number=numbers,
    unavailable=shares,
    surge=shares,
    chance=st.randoms(use_true_random=False),
    done=st.integers(0, 12),
    lacking=st.booleans(),
)
def test_every_write_of_a_step_keeps_the_budgets(
    bindings: list[ResourceBinding],
    number: int,
    unavailable: int | str,
    surge: int | str,
    chance: Random,
    done: int,
    *,
    lacking: bool,
) -> None:
    placement = limited(number, unavailable, surge)
    step = plan(placement, LATEST, bindings, NOW, lacks_clusters=lacking)
    found = sum(each.spec.state != UNSCHEDULED for each in bindings)
    wanted = min(number, found) if lacking else number
    least, most = wanted - amount(unavailable, wanted), number + amount(surge, number)
    in_vain = {each.name for each in bindings if is_in_vain(each)}
    writes = [*step.bind, *step.update, *step.delete]
    chance.shuffle(writes)
    for name in writes[:done]:
        before = bindings
        bindings = carried_out(bindings, step, name)
        assert serving(bindings) >= min(serving(before), least)
        if name in step.bind:
            assert may_serve(bindings, in_vain) <= most
    again = plan(placement, LATEST, bindings, NOW, lacks_clusters=lacking)
    assert not {*again.bind, *again.update, *again.delete} & set(writes[:done])


@settings(max_examples=300, deadline=None)
@given(fleets(), st.integers(1, 6), st.sampled_from([1, 2, "25%", "100%"]), shares)
def test_a_rollout_ends_when_all_clusters_answer(
    bindings: list[ResourceBinding], number: int, unavailable: int | str, surge: int | str
) -> None:
    chosen = [each for each in bindings if each.spec.state != UNSCHEDULED]
    placement = limited(number, unavailable, surge)
    if len(chosen) > number:  # the scheduler gives up whom nobody asks for
        bindings = [each for each in bindings if each not in chosen[number:]]
    lacking = len(chosen) < number
    for _ in range(100):
        step = plan(placement, LATEST, bindings, NOW, lacks_clusters=lacking)
        for name in (*step.bind, *step.update, *step.delete):
            bindings = carried_out(bindings, step, name)
        before, bindings = bindings, [reported(each) for each in bindings if not each.is_deleting]
        if bindings == before:
            break
    assert not plan(placement, LATEST, bindings, NOW, lacks_clusters=lacking).waiting
    handed = [each for each in bindings if each.spec.state != UNSCHEDULED]
    assert all((each.spec.state, each.spec.resource_snapshot_name) == (BOUND, LATEST) for each in handed)
    if len(chosen) >= number:
        assert handed == bindings  # who was given up serves on only where clusters are wanting


def reported(binding: ResourceBinding) -> ResourceBinding:
    """A binding that was handed out, after its cluster has done all it should."""
    if binding.spec.state == SCHEDULED or not binding.spec.resource_snapshot_name:
        return binding
    generation = binding.metadata.generation
    output = tuple(
        PartCondition(kind, "True", "Fine", "", generation, at(-9)) for kind in ("RolloutStarted", "Available")
    )
    return msgspec.structs.replace(binding, status=msgspec.structs.replace(binding.status, conditions=output))
