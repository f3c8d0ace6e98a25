"""Rules between shoots where a client names the seed: a first bind, a move, and a write that places a shoot."""

from typing import Any

import pytest

from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.unit.apiserver.registry.test_seed_binder import Registry

APART = "{groups: [pair], affinity: {shootAntiAffinity: {required: [{group: pair, topologyKey: seed}]}}}"
SPREAD = "{groups: [pair], topologySpreadConstraints: [{group: pair, topologyKey: rack, maxSkew: 1}]}"
GROUP = ("garden-dev", ["pair"])


def a_member(name: str, requirements: str = APART, **changes: Any) -> Document:
    return a_shoot(name, metadata={"annotations": {REQUIREMENTS: requirements}}, **changes)


@pytest.fixture
async def registry() -> Registry:
    registry = Registry()
    for document in (a_project(), a_cloudprofile()):
        await registry.apply(document)
    for name, rack in (("here", "1"), ("there", "2"), ("beyond", "2")):
        labels = {"labels": {"rack": rack}}
        await registry.apply(a_seed(name, metadata=labels, spec={"backup": {"provider": "aws"}}))
    return registry


async def members(registry: Registry) -> dict[str, int]:
    return dict((await registry.store.group_counts(*GROUP))["pair"].members)


async def test_a_shoot_is_not_bound_to_where_a_rule_keeps_it_off(registry: Registry) -> None:
    await registry.apply(a_member("artemis"))
    await registry.apply(a_member("apollo", "groups: [pair]"))
    await registry.bind("there", name="artemis")
    with pytest.raises(Forbidden, match="seed there cannot take the shoot: shoot-anti-affinity: a shoot in seed there"):
        await registry.bind("there")
    await registry.bind("here")
    assert await members(registry) == {"here": 1, "there": 1}


async def test_a_control_plane_is_not_moved_to_where_a_rule_keeps_it_off(registry: Registry) -> None:
    await registry.apply(a_member("apollo"))
    await registry.apply(a_member("artemis"))
    await registry.bind("here")
    await registry.bind("there", name="artemis")
    with pytest.raises(Forbidden, match="shoot-anti-affinity: a member of group pair is in seed there"):
        await registry.bind("there")
    await registry.bind("beyond")
    assert (await registry.now()).parts.seed_name == "beyond"
    assert await members(registry) == {"beyond": 1, "there": 1}


async def test_a_bind_that_is_overtaken_is_decided_anew(registry: Registry) -> None:
    await registry.apply(a_member("apollo", SPREAD))
    await registry.apply(a_member("artemis", SPREAD))
    await registry.bind("there", name="artemis")
    with pytest.raises(Forbidden, match=r"topology-spread: rack=2 has 1 members of group pair: rack=1 has the fewest"):
        await registry.bind("beyond")
    await registry.bind("here")


async def test_a_shoot_with_groups_is_not_created_on_a_seed(registry: Registry) -> None:
    with pytest.raises(UnmetDependency, match="or has a rule about one: leave out"):
        await registry.apply(a_member("apollo", spec={"seedName": "here"}))
    assert await registry.store.get(ObjectKey("shoot", "garden-dev", "apollo")) is None


async def test_a_placed_shoot_may_change_its_groups_and_stays(registry: Registry) -> None:
    await registry.apply(a_member("apollo"))
    await registry.bind("here")
    await registry.apply(a_member("apollo", "groups: [web]"))
    assert (await registry.now()).parts.seed_name == "here"
    assert await members(registry) == {}


async def test_a_hard_rule_on_the_whole_project_is_rejected_with_its_path(registry: Registry) -> None:
    rule = "topologySpreadConstraints: [{group: '*', topologyKey: seed}]"
    with pytest.raises(InvalidResource) as raised:
        await registry.apply(a_member("apollo", rule))
    problem = raised.value.problems[0]
    assert problem.field == f"metadata.annotations[{REQUIREMENTS}].topologySpreadConstraints[0].group"
    assert problem.message == 'a hard rule needs a named group, not "*"'
