"""The order of the bus decides: redelivered and overtaken requests change nothing."""

import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, Conflict
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.store import RequestOrigin, Superseded
from gardenbus.relay.ports.outbox import Restored
from tests.support.builders import a_project, merged
from tests.support.stores import StoreUnderTest, stored

CREATED = 1_767_323_045_000_000_000
DEV = ObjectKey("project", "", "dev")


def at(sequence: int, document: int = 0, *, created: int = CREATED) -> RequestOrigin:
    return RequestOrigin(created, sequence, document)


async def test_an_older_or_the_same_request_is_superseded(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    changed = await kit.changed(
        project, merged(project.document(), {"metadata": {"labels": {"a": "b"}}}), origin=at(7, 1)
    )
    await kit.fresh_entries()
    for origin in (at(7, 1), at(7, 0), at(6), at(99, created=CREATED - 1)):
        response = await kit.store.update(changed, a_project(spec={"x": 1}), origin=origin)
        assert response == Superseded(at(7, 1))
        assert await kit.store.delete(changed, origin=origin) == Superseded(at(7, 1))
        assert await kit.store.create(a_project(), origin=origin) == Superseded(at(7, 1))
    assert await kit.now(DEV) == changed
    assert not await kit.entries()


@pytest.mark.parametrize("origin", [at(7, 2), at(8), at(1, created=CREATED + 1)])
async def test_a_newer_request_is_taken(kit: StoreUnderTest, origin: RequestOrigin) -> None:
    project = await kit.created(a_project(), origin=at(7, 1))
    changed = await kit.changed(project, merged(project.document(), {"spec": {"x": 1}}), origin=origin)
    assert changed.version > project.version
    assert await kit.store.delete(changed, origin=origin) == Superseded(origin)


async def test_a_request_that_changes_nothing_is_remembered_all_the_same(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.fresh_entries()
    assert await kit.changed(project, project.document(), origin=at(7)) == project
    assert not await kit.entries()
    assert await kit.store.update(project, a_project(spec={"x": 1}), origin=at(6)) == Superseded(at(7))


async def test_writes_without_an_origin_leave_the_order_of_the_requests_alone(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    changed = await kit.changed(project, merged(project.document(), {"status": {"phase": "Failed"}}))
    assert await kit.store.update(changed, a_project(), origin=at(5)) == Superseded(at(5))
    assert stored(await kit.store.update(changed, a_project(), origin=at(6)))


async def test_a_redelivered_apply_does_not_raise_a_deleted_object(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    assert await kit.store.delete(project, origin=at(6)) is None
    await kit.fresh_entries()
    for origin in (at(5), at(6)):
        assert await kit.store.create(a_project(), origin=origin) == Superseded(at(6))
    assert await kit.store.get(DEV) is None
    assert not await kit.entries()
    assert stored(await kit.store.create(a_project(), origin=at(7)))


async def test_a_redelivered_delete_does_not_remove_a_recreated_object(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.store.delete(project, origin=at(6))
    again = await kit.created(a_project(), origin=at(7))
    assert await kit.store.delete(again, origin=at(6)) == Superseded(at(7))
    assert await kit.now(DEV) == again


async def test_a_recreation_without_origin_inherits_what_the_grave_remembers(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.store.delete(project, origin=at(6))
    again = await kit.created(a_project())
    assert await kit.store.delete(again, origin=at(6)) == Superseded(at(6))
    assert await kit.now(DEV) == again


async def test_the_origin_of_a_deletion_that_finalizers_hold_up_is_kept_to_the_end(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(metadata={"finalizers": ["mine"]}), origin=at(5))
    marked = stored(await kit.store.delete(project, origin=at(6)))
    await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert await kit.store.get(DEV) is None
    assert await kit.store.create(a_project(), origin=at(6)) == Superseded(at(6))


async def test_superseded_comes_before_conflict_and_before_exists(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.changed(project, merged(project.document(), {"spec": {"x": 1}}), origin=at(6))
    assert await kit.store.update(project, a_project(), origin=at(6)) == Superseded(at(6))
    with pytest.raises(Conflict):
        await kit.store.update(project, a_project(), origin=at(7))
    with pytest.raises(AlreadyExists):
        await kit.store.create(a_project(), origin=at(7))


async def test_graves_are_closed_when_old_and_no_request_can_come_again(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.store.delete(project, origin=at(6))
    bare = await kit.created(a_project("bare"))
    await kit.store.delete(bare)
    kit.clock.advance(3600)
    assert await kit.outbox.collect_tombstones("2026-01-02T03:04:05Z", StreamPosition(CREATED, 100)) == 0, "too young"
    assert await kit.outbox.collect_tombstones("2026-01-02T03:04:06Z", StreamPosition(CREATED, 5)) == 1, (
        "the one without requests"
    )
    assert await kit.store.create(a_project(), origin=at(6)) == Superseded(at(6))
    assert await kit.outbox.collect_tombstones("2026-01-02T03:04:06Z", StreamPosition(CREATED, 6)) == 1
    assert stored(await kit.store.create(a_project(), origin=at(6))), "nobody remembers"


async def test_a_removal_that_the_bus_brings_back_later_keeps_the_order_of_requests(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project(), origin=at(5))
    await kit.store.delete(project, origin=at(6))
    await kit.close_for_writes()
    assert await kit.outbox.restore(Restored(project.key, project.uid, project.version + 1000, None))
    await kit.outbox.open(project.version + 1000, 0)
    assert await kit.store.create(a_project(), origin=at(6)) == Superseded(at(6))
