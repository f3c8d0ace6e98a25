"""Guards: what must hold besides the version that a write is based on."""

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden
from gardenbus.common.ports.store import Creation, RequestOrigin, Superseded, WritePrecondition
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, stored

SEED = "aws-eu1"


def only_at(condition: StoredObject, version: int | None = None) -> WritePrecondition:
    return WritePrecondition(
        "version", condition.key.stored, "the project changed", condition.version if version is None else version
    )


async def test_a_write_under_a_version_happens_only_at_that_version(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project())
    seed = await kit.created(a_seed(), preconditions=[only_at(project)])
    seed = await kit.changed(seed, merged(seed.document(), {"spec": {"a": 1}}), preconditions=[only_at(project)])
    changed = await kit.changed(project, merged(project.document(), {"spec": {"a": 1}}))
    await kit.fresh_entries()
    with pytest.raises(Conflict, match=rf"the project changed \(its version is {changed.version} by now\)"):
        await kit.store.create(a_seed("other"), preconditions=[only_at(project)])
    with pytest.raises(Conflict, match="the project changed"):
        await kit.store.update(seed, merged(seed.document(), {"spec": {"a": 2}}), preconditions=[only_at(project)])
    with pytest.raises(Conflict, match="the project changed"):
        await kit.store.delete(seed, preconditions=[only_at(project)])
    assert await kit.now(seed.key) == seed
    assert not await kit.entries()
    assert await kit.store.delete(seed, preconditions=[only_at(changed)]) is None


async def test_a_guard_may_demand_that_an_object_is_not_there(kit: StoreUnderTest) -> None:
    absent = WritePrecondition("version", "seed:_:other", "the seed is there")
    seed = await kit.created(a_seed(), preconditions=[absent])
    other = await kit.created(a_seed("other"))
    with pytest.raises(Conflict, match="the seed is there"):
        await kit.store.delete(seed, preconditions=[absent])
    await kit.store.delete(other)
    with pytest.raises(Conflict, match=r"\(not found\)"):
        await kit.store.delete(seed, preconditions=[only_at(other)])
    assert await kit.store.delete(seed, preconditions=[absent]) is None


async def test_a_guard_holds_for_a_write_that_changes_nothing_too(kit: StoreUnderTest) -> None:
    project, seed = await kit.created(a_project()), await kit.created(a_seed())
    assert await kit.store.update(seed, seed.document(), preconditions=[only_at(project)]) == seed
    with pytest.raises(Conflict):
        await kit.store.update(seed, seed.document(), preconditions=[only_at(project, 1_000_000)])


async def test_what_is_superseded_or_outrun_is_told_before_the_guards(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project())
    wrong = only_at(project, 1_000_000)
    newest = RequestOrigin(1, 5)
    seed = await kit.created(a_seed(), origin=newest)
    assert await kit.store.create(a_seed(), origin=RequestOrigin(1, 4), preconditions=[wrong]) == Superseded(newest)
    await kit.changed(seed, merged(seed.document(), {"spec": {"a": 1}}))
    with pytest.raises(Conflict, match="version"):
        await kit.store.update(seed, merged(seed.document(), {"spec": {"a": 2}}), preconditions=[wrong])


async def test_sets_that_must_be_empty_guard_any_write(kit: StoreUnderTest) -> None:
    profile, seed = await kit.created(a_cloudprofile()), await kit.created(a_seed())
    await kit.created(a_shoot(spec={"seedName": SEED}))
    labelled = merged(seed.document(), {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Forbidden, match=r"in use \(1, for example garden-dev/apollo\)"):
        await kit.store.update(seed, labelled, preconditions=[WritePrecondition("usage", SEED, "in use")])
    with pytest.raises(Forbidden, match=r"in use \(1, for example shoot garden-dev/apollo\)"):
        await kit.store.create(
            a_seed("other"), preconditions=[WritePrecondition("references", profile.key.stored, "in use")]
        )
    assert await kit.store.get(ObjectKey("seed", "", "other")) is None


async def test_a_shoot_is_moved_only_to_the_seed_as_it_was_decided_on(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("old"))
    new = await kit.created(a_seed("new"))
    shoot = await kit.created(a_shoot(spec={"seedName": "old"}, status={"seedName": "old"}))
    moving = merged(shoot.document(), {"spec": {"seedName": "new"}})
    with pytest.raises(Forbidden, match="changed"):
        await kit.store.update(shoot, moving, scheduling_generation=new.scheduling_generation + 1)
    moved = stored(await kit.store.update(shoot, moving, scheduling_generation=new.scheduling_generation))
    assert moved.parts.seed_name == "new"


async def test_a_creation_may_be_bound_to_a_number_of_its_kind(kit: StoreUnderTest) -> None:
    few = [WritePrecondition("count", "seed", "seeds 'a': the maximum is 2", most=2)]
    first = await kit.created(a_seed("a"), preconditions=few)
    await kit.created(a_project())
    created = await kit.store.create_many([Creation(a_seed(name), preconditions=few) for name in ("b", "c", "d")])
    assert [isinstance(one, Forbidden) for one in created] == [False, True, True]
    assert str(created[1]) == "seeds 'a': the maximum is 2 (there are 2)"
    changed = await kit.changed(first, merged(first.document(), {"spec": {"a": 1}}), preconditions=few)
    await kit.store.delete(changed)
    await kit.created(a_seed("c"), preconditions=few)
