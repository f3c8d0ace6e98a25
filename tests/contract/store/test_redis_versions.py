"""Several versions of the function library on one Redis: side by side, one after the other, and what none may do."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from gardenbus.common.adapters.redis.function_library import LIBRARY, Library, join_files, texts
from gardenbus.common.api.budgets import StoredOverBudget
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.store import VERSION_LEAP, DemandLimits, WritePrecondition
from gardenbus.relay.adapters.library_pruner import LibraryPruner
from tests.support.builders import a_project, a_seed, a_shoot, merged
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, a_binding, on_redis

PREFIX = "shared"
LATER = join_files({**texts(), "later.lua": "-- says the same in another version\n"})
FORMAT = int(texts()["opening.lua"].split("FORMAT = ")[1].split()[0])
"""Of today's library."""

OTHER_FORMAT = join_files(
    {name: text.replace(f"FORMAT = {FORMAT} ", f"FORMAT = {FORMAT + 1} ") for name, text in texts().items()}
)

WITHOUT_AMOUNTS = """
-- exports: amounts

local function nothing() return '' end
amounts = {size_with = nothing, count_as = nothing, count_put = nothing, count_object = nothing,
           uncount_object = nothing, stored_rejection = function() end}
"""
BEFORE_AMOUNTS = join_files(
    {
        **texts(),
        "opening.lua": texts()["opening.lua"].replace(f"FORMAT = {FORMAT} ", f"FORMAT = {FORMAT - 1} "),
        "stored_amounts.lua": WITHOUT_AMOUNTS,
    }
)
"""The format before, whose writes count nothing."""


class Landscape:
    """One landscape on one server, seen by processes of several versions."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.kits: list[StoreUnderTest] = []

    def seen_by(
        self, library: Library, leader: str = "relay", *, prefix: str = PREFIX, database: int = 0
    ) -> StoreUnderTest:
        """A process of a version."""
        kit = on_redis(f"{self.server.url}/{database}", prefix, library=library, leader=leader)
        self.kits.append(kit)
        return kit

    async def command(self, *command: str | bytes | float) -> object:
        """A command of somebody who knows redis-cli."""
        connection = self.kits[0].connection
        assert connection is not None
        return await connection.command(*command)

    async def libraries(self) -> set[str]:
        connection = self.kits[0].connection
        assert connection is not None
        return set(await connection.libraries())


@pytest.fixture
async def landscape(redis_server: Server) -> AsyncIterator[Landscape]:
    landscape = Landscape(redis_server)
    yield landscape
    for kit in landscape.kits:
        await kit.store.close()


async def rejected(kit: StoreUnderTest, document: Document, why: str = "fenced") -> None:
    with pytest.raises(Unavailable, match=why):
        await kit.store.create(document)


async def write_projects(kit: StoreUnderTest, name: str, count: int) -> list[StoredObject]:
    """Create projects one after the other and change each; whatever is refused fails the test."""
    written: list[StoredObject] = []
    for number in range(count):
        project = await kit.created(a_project(f"{name}-{number}"))
        written += [project, await kit.changed(project, merged(project.document(), {"spec": {"x": number}}))]
    return written


def test_another_text_is_another_library_and_the_same_text_the_same() -> None:
    assert join_files(texts()) == LIBRARY
    assert len({LIBRARY.name, LATER.name, OTHER_FORMAT.name}) == 3


async def test_two_versions_work_at_once_and_fence_nobody(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER, "another")
    await old.open()
    writing = [asyncio.create_task(write_projects(old, f"old-{writer}", 30)) for writer in range(4)]
    await asyncio.sleep(0.02)
    writing += [asyncio.create_task(write_projects(new, f"new-{writer}", 30)) for writer in range(4)]
    written = [project for task in writing for project in await task]
    assert len({project.version for project in written}) == len(written) == 480
    assert await landscape.libraries() == {LIBRARY.name, LATER.name}


async def test_what_one_version_writes_the_other_reads_changes_and_announces(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER, "another")
    await old.open()
    seed = await old.created(a_seed(shoots=2))
    shoots = [await old.created(a_shoot(name)) for name in ("one", "two", "three")]
    for kit, shoot, outcome in ((old, shoots[0], "bound"), (new, shoots[1], "bound"), (old, shoots[2], "full")):
        assert await kit.bound(shoot, seed.key.name) == outcome
    changed = await new.changed(
        await new.now(shoots[0].key), merged(shoots[0].document(), {"spec": {"seedName": "aws-eu1"}})
    )
    assert await old.now(shoots[0].key) == changed
    seen = await old.entries()
    await old.outbox.resign()
    assert seen == await new.entries()


async def test_work_goes_on_while_one_version_takes_over_from_the_other(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER, "new-relay")
    await old.open()
    older = asyncio.create_task(write_projects(old, "old", 150))
    await asyncio.sleep(0.05)
    newer = asyncio.create_task(write_projects(new, "new", 150))
    await asyncio.sleep(0.05)
    assert not (await new.outbox.lead(60)).leading
    await old.outbox.resign()
    leadership = await new.outbox.lead(60)
    assert (leadership.leading, leadership.is_open) == (True, True), "there is nothing to settle"
    written = await older + await newer
    versions = [project.version for project in written]
    assert max(versions) < min(versions) + VERSION_LEAP, "nobody opened the store anew"
    await landscape.command("FUNCTION", "DELETE", LIBRARY.name)
    await write_projects(new, "after", 10)


async def test_a_version_that_was_removed_comes_back_without_a_fence(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    await new.created(a_project("one"))
    await landscape.command("FUNCTION", "DELETE", LIBRARY.name)
    await old.created(a_project("two"))
    await landscape.command("FUNCTION", "DELETE", LATER.name)
    assert (await new.outbox.lead(60)).is_open
    await new.created(a_project("three"))


async def test_after_a_crash_no_version_writes_before_a_relay_has_opened(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    before = await new.created(a_project("before"))
    await asyncio.to_thread(landscape.server.kill)
    await asyncio.to_thread(landscape.server.start)
    await rejected(old, a_project("old"), "fenced|out of reach")
    await rejected(new, a_project("new"), "fenced|out of reach")
    await rejected(old, a_project("old"))
    await rejected(new, a_project("new"))
    assert not (await new.outbox.lead(60)).is_open
    await new.outbox.open(before.version, 0)
    await asyncio.sleep(0.3)
    assert (await old.created(a_project("old"))).version > before.version + 1_000_000


async def test_an_emptied_store_is_closed_to_all_versions_until_it_is_opened(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    project = await old.created(a_project("old"))
    await new.changed(project, merged(project.document(), {"spec": {"x": 1}}))
    await landscape.command("FLUSHALL")
    await rejected(old, a_project("one"))
    await rejected(new, a_project("one"))
    for read in (old.store.list_page("project"), new.store.get(project.key), new.store.usage(), old.store.census()):
        with pytest.raises(Unavailable, match="fenced"):
            await read
    with pytest.raises(Unavailable, match="fenced"):
        await old.store.bind([a_binding(project, "aws-eu1")])
    assert not (await old.outbox.lead(60)).is_open
    await old.outbox.open(5000, 0)
    await asyncio.sleep(0.3)
    assert (await new.created(a_project("one"))).version > 5000


async def test_functions_that_somebody_flushed_come_back_closed(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    await new.created(a_project("one"))
    await landscape.command("FUNCTION", "FLUSH")
    await rejected(new, a_project("two"))
    await rejected(old, a_project("two"))
    await old.open()
    await asyncio.sleep(0.3)
    await new.created(a_project("two"))
    assert await landscape.libraries() == {LIBRARY.name, LATER.name}


async def test_an_earlier_opening_that_is_put_back_opens_nothing(landscape: Landscape) -> None:
    kit = landscape.seen_by(LIBRARY)
    await kit.open()
    earlier = await landscape.command("GET", f"{PREFIX}:opening")
    assert isinstance(earlier, bytes)
    await landscape.command("FLUSHALL")
    await kit.open()
    await kit.created(a_project("one"))
    await landscape.command("SET", f"{PREFIX}:opening", earlier)
    await rejected(kit, a_project("two"))


async def test_a_vouchsafe_that_is_not_of_this_transaction_is_not_believed(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    assert new.connection is not None
    await new.connection.ensure_ready()
    await landscape.command("FUNCTION", "DELETE", LIBRARY.name)
    await landscape.command("FUNCTION", "DELETE", LATER.name)
    await new.connection.ensure_library()
    await landscape.command("SET", f"{PREFIX}:vouched", "left over")
    assert not await new.connection.join()


async def test_databases_with_the_same_prefix_are_opened_each_by_itself(landscape: Landscape) -> None:
    first, second = landscape.seen_by(LIBRARY), landscape.seen_by(LIBRARY, database=1)
    await first.open()
    await rejected(second, a_project("two"))
    await second.open()
    await second.created(a_project("two"))
    await first.created(a_project("one"))


async def test_landscapes_of_different_versions_share_a_server(landscape: Landscape) -> None:
    one, two = landscape.seen_by(LIBRARY), landscape.seen_by(OTHER_FORMAT, prefix="elsewhere")
    await one.open()
    await two.open()
    await asyncio.gather(write_projects(one, "one", 20), write_projects(two, "two", 20))


async def test_data_in_a_newer_format_refuse_the_older_version_and_say_so(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(OTHER_FORMAT, "new-relay")
    await old.open()
    await rejected(new, a_project("new"))
    await old.created(a_project("old"))
    await old.outbox.resign()
    assert not (await new.outbox.lead(60)).is_open, "an older format is not simply join_files"
    await old.created(a_project("still"))
    await new.outbox.open(0, 0)
    await new.created(a_project("new"))
    await rejected(old, a_project("older"), rf"format {FORMAT + 1}.*format {FORMAT}")
    await new.outbox.resign()
    with pytest.raises(Unavailable, match=f"format {FORMAT + 1}"):
        await old.outbox.lead(60)
    late = landscape.seen_by(LIBRARY)
    assert late.connection is not None
    with pytest.raises(Unavailable, match=f"format {FORMAT + 1}"):
        await late.connection.ensure_ready()


async def test_what_an_older_format_stored_while_versions_stood_side_by_side_is_counted_and_bounded(
    landscape: Landscape,
) -> None:
    old, new = landscape.seen_by(BEFORE_AMOUNTS), landscape.seen_by(LIBRARY, "new-relay")
    await old.open()
    shoots = [await old.created(a_shoot(f"old-{number}")) for number in range(3)]
    await rejected(new, a_shoot("early"))
    await old.outbox.resign()
    assert not (await new.outbox.lead(60)).is_open, "the older format stays open for those who know it"
    shoots.append(await old.created(a_shoot("between")))
    await new.outbox.open(0, 0)
    await rejected(old, a_shoot("late"), rf"format {FORMAT}.*format {FORMAT - 1}")
    written = await new.changed(shoots[0], merged(shoots[0].document(), {"metadata": {"labels": {"a": "b"}}}))
    assert await new.store.delete(shoots[1]) is None
    while await new.outbox.count_older():
        pass
    amount = (await new.store.stored_amounts())["garden-dev"]
    assert amount.objects == 3
    limits = DemandLimits(most={"storedObjects": 4, "storedBytes": 2**30})
    within = (WritePrecondition("stored", "garden-dev", "", limits=limits),)
    await new.store.create(a_shoot("new"), preconditions=within)
    with pytest.raises(StoredOverBudget, match="storedObjects"):
        await new.store.create(a_shoot("beyond"), preconditions=within)
    assert await new.store.delete(written) is None
    await new.store.create(a_shoot("beyond"), preconditions=within)
    fresh = landscape.seen_by(LIBRARY, prefix="fresh")
    await fresh.open()
    for name in ("old-2", "between", "new", "beyond"):
        await fresh.created(a_shoot(name))
    assert await fresh.store.stored_amounts() == await new.store.stored_amounts(), "as if all were new"


async def test_the_newer_format_is_remembered_over_a_crash(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(OTHER_FORMAT)
    await new.open()
    await asyncio.to_thread(landscape.server.kill)
    await asyncio.to_thread(landscape.server.start)
    with pytest.raises(Unavailable, match=f"format {FORMAT + 1}"):
        await old.outbox.lead(60)
    assert (await new.outbox.lead(60)).leading


async def test_a_version_that_nobody_calls_goes_and_one_that_is_called_stays(landscape: Landscape) -> None:
    old, new = landscape.seen_by(LIBRARY), landscape.seen_by(LATER)
    await old.open()
    await new.created(a_project("one"))
    assert new.connection is not None
    keeper = LibraryPruner(new.connection, new.clock, unused_for=timedelta(hours=2))
    for hour in range(5):
        await old.created(a_project(f"old-{hour}"))
        await keeper.prune()
        new.clock.advance(3600)
    assert await landscape.libraries() == {LIBRARY.name, LATER.name}
    for _ in range(3):
        await keeper.prune()
        new.clock.advance(3600)
    assert await landscape.libraries() == {LATER.name}
    await old.created(a_project("late"))


async def test_the_library_that_had_no_version_goes(landscape: Landscape) -> None:
    kit = landscape.seen_by(LIBRARY)
    await landscape.command(
        "FUNCTION", "LOAD", "#!lua name=gardenbus\nredis.register_function('gb_put', function() end)"
    )
    await kit.open()
    found = await landscape.command("FUNCTION", "LIST")
    assert isinstance(found, list)
    assert len(found) == 1  # pyright: ignore[reportUnknownArgumentType]
