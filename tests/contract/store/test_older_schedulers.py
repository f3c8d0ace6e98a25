"""Binds of schedulers that know less of a shoot than the store does: of an earlier version, or of another make."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gardenbus.common.adapters.redis.function_library import join_files, texts
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.errors import Unavailable
from tests.support.builders import a_requesting_shoot, a_seed, a_shoot, merged, resolved_as
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, a_binding, on_redis

SEED, OTHER, NAMESPACE = "aws-eu1", "aws-eu2", "garden-dev"
APART = {
    "groups": ["pair"],
    "affinity": {"shootAntiAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}},
}
NEAR = {"affinity": {"shootAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}}}
SPREAD = {
    "groups": ["pair"],
    "topologySpreadConstraints": [
        {"group": "pair", "topologyKey": "seed", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ],
}

FORMAT = int(texts()["opening.lua"].split("FORMAT = ")[1].split()[0])
WITHOUT_GROUPS = join_files(
    {
        **texts(),
        "opening.lua": texts()["opening.lua"].replace(f"FORMAT = {FORMAT} ", f"FORMAT = {FORMAT - 1} "),
        "binding.lua": texts()["binding.lua"].replace(
            "groups.have_changed(P, item.ns, object.grp, item.groups)", "false"
        ),
    }
)
"""The functions of an earlier format, whose bind knows no rules between shoots."""


@pytest.fixture
async def kit(store_server: Server) -> AsyncIterator[StoreUnderTest]:
    """A store on Redis that is open, with two seeds."""
    kit = on_redis(store_server.url)
    await kit.open()
    for name in (SEED, OTHER):
        resources = {"cpu": "4"}
        await kit.created(merged(a_seed(name), {"status": {"capacity": resources, "allocatable": resources}}))
    yield kit
    await kit.store.close()


def with_requirements(name: str, requirements: Document) -> Document:
    return merged(a_shoot(name), {"metadata": resolved_as(requirements)})


async def bound_by_an_earlier_version(kit: StoreUnderTest, *shoots: StoredObject, seed: str = SEED) -> list[str]:
    """The outcomes of a bind as the first version of the scheduler sends it."""
    assert kit.connection is not None
    items: list[dict[str, Any]] = [
        {
            "ns": shoot.key.namespace,
            "name": shoot.key.name,
            "uid": shoot.uid,
            "gen": shoot.generation,
            "seed": seed,
            "by": "shoot-scheduler",
            "now": "2026-01-02T03:04:05Z",
        }
        for shoot in shoots
    ]
    reply = await kit.connection.call("bind", {"items": items, "outbox_max": 1_000_000, "since": 0})
    return [outcome.decode() for outcome in reply[1]]


@pytest.mark.parametrize("requirements", [APART, NEAR, SPREAD], ids=["anti-affinity", "affinity", "spread"])
async def test_a_bind_that_knows_no_groups_places_no_shoot_that_a_rule_concerns(
    kit: StoreUnderTest, requirements: Document
) -> None:
    shoots = [await kit.created(with_requirements(name, requirements)) for name in ("one", "two")]
    plain = await kit.created(a_shoot("plain"))
    assert await bound_by_an_earlier_version(kit, *shoots, plain) == ["group-changed", "group-changed", "bound"]
    assert (await kit.store.usage()).seeds == {SEED: 1}
    assert (await kit.store.group_counts(NAMESPACE, ["pair"]))["pair"].members == {}


async def test_a_member_without_a_rule_is_kept_off_as_well_since_the_rule_of_another_one_is_mutual(
    kit: StoreUnderTest,
) -> None:
    member = await kit.created(with_requirements("member", {"groups": ["pair"]}))
    assert await bound_by_an_earlier_version(kit, member) == ["group-changed"]


async def test_a_bind_that_knows_no_requests_reserves_them_and_overfills_nothing(kit: StoreUnderTest) -> None:
    shoots = [await kit.created(a_requesting_shoot(name, {"cpu": 2000})) for name in ("one", "two", "three")]
    assert await bound_by_an_earlier_version(kit, *shoots) == ["bound", "bound", "full"]
    assert dict((await kit.store.usage()).requested[SEED]) == {"cpu": 4000}
    unstated = await kit.created(a_requesting_shoot("four", {"memory": 1}))
    assert await bound_by_an_earlier_version(kit, unstated) == ["full"]


async def test_a_scheduler_of_an_earlier_format_binds_nothing_once_the_store_has_this_one(
    store_server: Server,
) -> None:
    earlier = on_redis(store_server.url, library=WITHOUT_GROUPS)
    await earlier.open()
    await earlier.created(a_seed(SEED))
    shoots = [await earlier.created(with_requirements(name, APART)) for name in ("one", "two")]
    assert earlier.connection is not None
    kit = on_redis(store_server.url, earlier.connection.prefix, leader="later")
    await earlier.outbox.resign()
    await kit.outbox.lead(60)
    await kit.outbox.open(0, 0)
    for shoot in shoots:
        with pytest.raises(Unavailable, match=rf"format {FORMAT}.*format {FORMAT - 1}"):
            await earlier.store.bind([a_binding(shoot, SEED)])
    assert (await kit.store.usage()).seeds == {}
    for each in (earlier, kit):
        await each.store.close()
