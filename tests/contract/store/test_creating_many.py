"""New objects stored many in a call: each ends as if it were stored alone."""

from gardenbus.common.api.changes import creation_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, Conflict, Forbidden, Unavailable
from gardenbus.common.ports.store import Creation, RequestOrigin, Superseded, WritePrecondition
from tests.support.builders import a_project, a_shoot
from tests.support.stores import StoreUnderTest, stored


async def test_each_is_stored_as_it_would_be_alone(kit: StoreUnderTest) -> None:
    alone = await kit.created(a_shoot("alone"), origin=RequestOrigin(1, 1), last_applied=b'{"a":1}')
    entries = await kit.fresh_entries()
    first, second = await kit.store.create_many(
        [Creation(a_shoot(name), RequestOrigin(1, 2), b'{"a":1}') for name in ("first", "second")]
    )
    assert isinstance(first, type(alone))
    assert (first, second) == (await kit.now(stored(first).key), await kit.now(stored(second).key))
    assert first.uid != stored(second).uid
    assert stored(second).version > first.version > alone.version
    assert (first.generation, first.last_applied, first.parts.spec) == (1, alone.last_applied, alone.parts.spec)
    assert len(await kit.entries()) == 2 * len(entries)


async def test_what_is_like_another_is_stored_as_by_itself(kit: StoreUnderTest) -> None:
    labels = {"labels": {"team": "a"}}
    like = creation_of(a_shoot("one", metadata={**labels, "annotations": {"by": "ann"}}))
    creations = [
        Creation(a_shoot(name, metadata={**labels, "annotations": {"by": name}}), last_applied=b'{"a":1}', like=change)
        for name, change in (("alone", None), ("first", like), ("second", like))
    ]
    created = [stored(one) for one in await kit.store.create_many(creations)]
    assert created == [await kit.now(one.key) for one in created]
    for one, creation in zip(created, creations, strict=True):
        assert one.parts == creation_of(creation.document).parts
        assert one.annotations == {"by": one.key.name}
    used = WritePrecondition("references", ObjectKey("namespace", "", "garden-dev").stored, "in use")
    (rejected,) = await kit.store.create_many([Creation(a_shoot("third"), preconditions=(used,))])
    assert isinstance(rejected, Forbidden)
    assert all(one.key.name in rejected.message for one in created)


async def test_what_is_refused_of_one_touches_no_other(kit: StoreUnderTest) -> None:
    there = await kit.created(a_shoot(), origin=RequestOrigin(1, 5))
    await kit.created(a_project())
    ended = await kit.store.create_many(
        [
            Creation(a_shoot("before")),
            Creation(a_shoot()),
            Creation(a_shoot(), RequestOrigin(1, 5)),
            Creation(a_project("other", namespace="garden-dev")),
            Creation(a_shoot("behind")),
        ]
    )
    assert stored(ended[0]) == await kit.now(stored(ended[0]).key)
    assert isinstance(ended[1], AlreadyExists)
    assert isinstance(ended[2], Superseded)
    assert isinstance(ended[3], Forbidden)
    assert stored(ended[4]) == await kit.now(stored(ended[4]).key)
    assert await kit.now(there.key) == there


async def test_each_is_stored_only_while_its_own_guards_hold(kit: StoreUnderTest) -> None:
    project = await kit.created(a_project())
    holds = WritePrecondition("version", project.key.stored, "the project changed", project.version)
    failed = WritePrecondition("version", project.key.stored, "the project changed", project.version + 1)
    first, second, third = await kit.store.create_many(
        [
            Creation(a_shoot("first"), preconditions=(holds,)),
            Creation(a_shoot("second"), preconditions=(holds, failed)),
            Creation(a_shoot("third")),
        ]
    )
    assert stored(first) == await kit.now(stored(first).key)
    assert stored(third) == await kit.now(stored(third).key)
    assert isinstance(second, Conflict)
    assert "the project changed" in second.message


async def test_a_closed_store_takes_none(kit: StoreUnderTest) -> None:
    await kit.close_for_writes()
    for result in await kit.store.create_many([Creation(a_shoot("a")), Creation(a_shoot("b"))]):
        assert isinstance(result, Unavailable)
