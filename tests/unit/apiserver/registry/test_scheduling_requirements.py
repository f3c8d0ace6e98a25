"""Requirements of shoots through the writer: resolved over a project's defaults, never by hand, reserved by binds."""

from typing import Any

import pytest

from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY
from gardenbus.common.api.garden.scheduling_requirements import DEFAULTS, REQUIREMENTS, RESOLVED
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.unit.apiserver.registry.test_writer import APOLLO, Registry

CPU = '{"requests":{"cpu":1000}}'


def annotated(**annotations: Any) -> Document:
    names = {"requirements": REQUIREMENTS, "resolved": RESOLVED}
    return a_shoot(metadata={"annotations": {names[name]: text for name, text in annotations.items()}})


@pytest.fixture
async def registry() -> Registry:
    registry = Registry()
    cpu = {"cpu": "2"}
    seed = merged(a_seed(), {"status": {"capacity": cpu, "allocatable": cpu}})
    for document in (a_project(), a_cloudprofile()):
        await registry.apply(document)
    await registry.store.create(seed)
    return registry


async def resolved(registry: Registry) -> str | None:
    return (await registry.now()).annotations.get(RESOLVED)


async def test_what_a_shoot_states_is_resolved(registry: Registry) -> None:
    await registry.apply(annotated(requirements="requests: {cpu: 1}"))
    assert await resolved(registry) == CPU


async def test_a_shoot_without_requirements_has_no_annotation_of_them(registry: Registry) -> None:
    await registry.apply(a_shoot())
    assert await resolved(registry) is None


async def test_the_defaults_of_a_project_reach_a_shoot_with_its_next_write(registry: Registry) -> None:
    await registry.apply(a_shoot())
    await registry.apply(a_project(metadata={"annotations": {DEFAULTS: "requests: {cpu: 1}"}}))
    assert await resolved(registry) is None
    await registry.patch(APOLLO, {"metadata": {"labels": {"touched": "yes"}}})
    assert await resolved(registry) == CPU


async def test_requirements_that_are_taken_away_hold_no_more(registry: Registry) -> None:
    await registry.apply(annotated(requirements="requests: {cpu: 1}"))
    await registry.apply(a_shoot())
    assert await resolved(registry) is None


@pytest.mark.parametrize("text", ["requests: {cpu: many}", "gates: []", "["])
async def test_requirements_that_cannot_be_meant_are_rejected_with_their_path(registry: Registry, text: str) -> None:
    with pytest.raises(InvalidResource) as raised:
        await registry.apply(annotated(requirements=text))
    assert all(each.field.startswith(f"metadata.annotations[{REQUIREMENTS}]") for each in raised.value.problems)
    with pytest.raises(InvalidResource):
        await registry.apply(a_project(metadata={"annotations": {DEFAULTS: text}}))


@pytest.mark.parametrize("text", ['{"requests":{"cpu":1}}', "{}", ""])
async def test_what_is_resolved_is_not_written_by_hand(registry: Registry, text: str) -> None:
    with pytest.raises((InvalidResource, UnmetDependency), match="written by admission alone"):
        await registry.apply(annotated(requirements="requests: {cpu: 1}", resolved=text))
    await registry.apply(annotated(requirements="requests: {cpu: 1}"))
    with pytest.raises((InvalidResource, UnmetDependency), match="written by admission alone"):
        await registry.patch(APOLLO, {"metadata": {"annotations": {RESOLVED: text}}})
    assert await resolved(registry) == CPU


async def test_what_was_read_may_be_edited_and_applied_again(registry: Registry) -> None:
    await registry.apply(annotated(requirements="requests: {cpu: 1}"))
    read = (await registry.now()).document()
    read["metadata"]["annotations"][REQUIREMENTS] = "requests: {cpu: 2}"
    await registry.apply(read)
    assert await resolved(registry) == '{"requests":{"cpu":2000}}'
    await registry.patch(APOLLO, {"metadata": {"annotations": {RESOLVED: None}}})
    assert await resolved(registry) == '{"requests":{"cpu":2000}}'


async def test_a_bind_by_name_keeps_to_the_seeds_that_a_shoot_requires(registry: Registry) -> None:
    await registry.apply(annotated(requirements="affinity: {seedAffinity: {required: [{matchLabels: {tier: gold}}]}}"))
    with pytest.raises(Forbidden, match="do not match the seedAffinity that the shoot requires"):
        await registry.bind("aws-eu1")
    seed = await registry.now(ObjectKey("seed", "", "aws-eu1"))
    await registry.store.update(seed, merged(seed.document(), {"metadata": {"labels": {"tier": "gold"}}}))
    await registry.bind("aws-eu1")


async def test_a_bind_by_name_reserves_and_says_that_there_is_too_little(registry: Registry) -> None:
    await registry.apply(annotated(requirements="requests: {cpu: 3}"))
    with pytest.raises(Forbidden, match="less than is requested of a resource"):
        await registry.bind("aws-eu1")
    await registry.apply(annotated(requirements="requests: {cpu: 2}"))
    await registry.bind("aws-eu1")
    assert (await registry.store.usage()).requested == {"aws-eu1": {"cpu": 2000}}
    with pytest.raises((Forbidden, UnmetDependency), match="less left of a resource"):
        await registry.apply(annotated(requirements="requests: {cpu: 2001m}"))
    await registry.apply(annotated(requirements="requests: {cpu: 500m}"))
    assert (await registry.store.usage()).requested == {"aws-eu1": {"cpu": 500}}


async def test_gates_keep_a_shoot_from_any_seed_until_they_are_taken_away(registry: Registry) -> None:
    await registry.apply(annotated(requirements="schedulingGates: [{name: a}, {name: b}]"))
    with pytest.raises(Forbidden, match="waits for the scheduling gates a, b"):
        await registry.bind("aws-eu1")
    with pytest.raises((InvalidResource, UnmetDependency), match="gates can only be added when a shoot is created"):
        await registry.apply(annotated(requirements="schedulingGates: [{name: a}, {name: c}]"))
    await registry.apply(annotated(requirements="schedulingGates: [{name: b}]"))
    with pytest.raises(Forbidden, match="waits for the scheduling gates b"):
        await registry.bind("aws-eu1")
    await registry.apply(a_shoot())
    await registry.bind("aws-eu1")


async def test_a_priority_is_resolved_and_an_allowance_is_a_whole_number(registry: Registry) -> None:
    await registry.apply(annotated(requirements="priority: -5"))
    assert await resolved(registry) == '{"priority":-5}'
    with pytest.raises(InvalidResource, match="must be a whole number from -1000 to 1000000"):
        await registry.apply(a_project(metadata={"annotations": {MAX_PRIORITY: "much"}}))
