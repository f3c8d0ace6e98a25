"""Preferences between shoots: decisions with their scores are those of a scorer that goes through every seed."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    SchedulingProfile,
    ShootAffinity,
    TopologySpread,
    WeightedScore,
    ZoneFit,
)
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import request_of
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.results import Assignment
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.naive_scores import of_groups

GROUPS, KEYS, SEEDS = ("db", "web"), ("seed", "rack"), tuple("abcde")

terms = st.fixed_dictionaries(
    {"weight": st.integers(1, 100), "group": st.sampled_from(GROUPS), "topologyKey": st.sampled_from(KEYS)}
)
constraints = st.fixed_dictionaries(
    {
        "group": st.sampled_from(GROUPS),
        "topologyKey": st.sampled_from(KEYS),
        "maxSkew": st.integers(1, 3),
        "whenUnsatisfiable": st.just("ScheduleAnyway"),
    }
)


@given(
    racks=st.lists(st.sampled_from(["1", "2", ""]), min_size=5, max_size=5),
    full=st.sets(st.sampled_from(SEEDS), max_size=4),
    members=st.lists(st.tuples(st.sampled_from(GROUPS), st.sampled_from(SEEDS)), max_size=12),
    near=st.lists(terms, max_size=3),
    away=st.lists(terms, max_size=3),
    spread=st.lists(constraints, max_size=3),
    weights=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_the_seed_with_the_greatest_sum_is_chosen_and_the_first_by_name_among_equals(
    *,
    racks: list[str],
    full: set[str],
    members: list[tuple[str, str]],
    near: list[Document],
    away: list[Document],
    spread: list[Document],
    weights: tuple[int, int],
) -> None:
    stated: dict[str, Any] = {
        "groups": ["web"],
        "affinity": {"shootAffinity": {"preferred": near}, "shootAntiAffinity": {"preferred": away}},
        "topologySpreadConstraints": spread,
    }
    labels = {name: {"seed": name, **({"rack": rack} if rack else {})} for name, rack in zip(SEEDS, racks, strict=True)}
    seeds = [
        a_seed(
            name,
            shoots="0" if name in full else "9",
            metadata={"labels": {key: value for key, value in labels[name].items() if key != "seed"}},
        )
        for name in SEEDS
    ]
    counts = {group: Counter(seed for each, seed in members if each == group) for group in GROUPS}
    profile = SchedulingProfile(
        scores=(
            WeightedScore("ShootTopologySpread", weights[0], TopologySpread()),
            WeightedScore("InterShootAffinity", weights[1], ShootAffinity()),
            WeightedScore("SeedZoneFit", 1, ZoneFit()),
        )
    )
    snapshot = snapshot_of([a_cloudprofile(), a_project(), *seeds])
    groups = GroupIndex({("garden-dev", group): GroupCounts(1, each) for group, each in counts.items()})
    snapshot = msgspec.structs.replace(snapshot, landscape=snapshot.landscape.with_profile(profile), groups=groups)
    request = request_of(Shoot.from_document(merged(a_shoot(), {"metadata": resolved_as(stated)})))

    found = decide(request, snapshot)

    open_seeds = [name for name in SEEDS if name not in full]
    sums = {
        name: sum(
            weight * of_groups(plugin, stated, labels, name, open_seeds, counts)
            for plugin, weight in zip(("ShootTopologySpread", "InterShootAffinity"), weights, strict=True)
        )
        for name in open_seeds
    }
    assert isinstance(found, Assignment)
    assert found.seed == min(open_seeds, key=lambda name: (-sums[name], name))
    assert sum(each.points for each in found.scores if each.name != "SeedZoneFit") == sums[found.seed]
    assert groups.seen("garden-dev", request.rules).keys() == {"web"}
