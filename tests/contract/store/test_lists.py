"""Lists in pages."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import Page
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest


async def names_of(kit: StoreUnderTest, kind: str, namespace: str | None = None, limit: int = 2) -> list[str]:
    found: list[str] = []
    token: str | None = None
    while True:
        page = await kit.store.list_page(kind, namespace, limit=limit, continue_token=token)
        assert len(page.objects) <= limit
        found += [f"{entry.key.namespace}/{entry.key.name}" for entry in page.objects]
        token = page.continue_token
        if token is None:
            return found


async def test_a_list_holds_every_object_of_its_kind_once_in_order(kit: StoreUnderTest) -> None:
    for namespace, name in (("garden-b", "x"), ("garden-a", "z"), ("garden-a", "a.b"), ("garden", "m")):
        await kit.created(a_shoot(name, namespace))
    await kit.created(a_seed())
    assert await names_of(kit, "shoot") == ["garden-a/a.b", "garden-a/z", "garden-b/x", "garden/m"]
    assert await names_of(kit, "shoot", limit=1) == await names_of(kit, "shoot", limit=100)
    assert await names_of(kit, "seed") == ["/aws-eu1"]
    assert await names_of(kit, "project") == []


async def test_a_list_of_one_namespace_leaves_out_its_neighbours(kit: StoreUnderTest) -> None:
    for namespace in ("garden", "garden-a", "garden-a1", "garden0"):
        for name in ("one", "two", "three"):
            await kit.created(a_shoot(name, namespace))
    assert await names_of(kit, "shoot", "garden") == ["garden/one", "garden/three", "garden/two"]
    assert await names_of(kit, "shoot", "garden-a") == ["garden-a/one", "garden-a/three", "garden-a/two"]
    assert await names_of(kit, "shoot", "nowhere") == []


async def test_later_pages_carry_what_stood_when_the_first_was_read(kit: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        await kit.created(a_project(name))
    first = await kit.store.list_page("project", limit=2)
    assert first.continue_token is not None
    await kit.created(a_cloudprofile())
    await kit.created(a_project("d"))
    second = await kit.store.list_page("project", limit=2, continue_token=first.continue_token)
    assert (second.version, second.unblock_index) == (first.version, first.unblock_index)
    assert [entry.key.name for entry in second.objects] == ["c", "d"]
    fresh = await kit.store.list_page("project", limit=2)
    assert fresh.version > first.version
    assert fresh.unblock_index > first.unblock_index


async def test_a_list_shows_each_object_as_it_is_now(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(), last_applied=b"{}")
    changed = await kit.changed(seed, merged(seed.document(), {"metadata": {"labels": {"a": "b"}}}))
    page = await kit.store.list_page("seed")
    assert [entry.encoded() for entry in page.objects] == [changed.encoded()]
    assert page.objects[0].last_applied == b"", "only the apiserver needs it, and it reads single objects"
    assert page.version == changed.version


async def test_a_page_has_at_most_200_objects(kit: StoreUnderTest) -> None:
    for number in range(201):
        await kit.created(a_project(f"p{number:03}"))
    page: Page = await kit.store.list_page("project", limit=10_000)
    assert len(page.objects) == 200
    rest = await kit.store.list_page("project", limit=10_000, continue_token=page.continue_token)
    assert [entry.key for entry in rest.objects] == [ObjectKey("project", "", "p200")]
    assert rest.continue_token is None


@pytest.mark.parametrize("several", [1, 2, 500], ids="{0} namespaces a call".format)
async def test_objects_are_found_by_their_name_in_whatever_namespace(
    kit: StoreUnderTest, several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.common.adapters.redis.reads.NAMESPACES", several)
    for namespace in ("garden", "garden-a", "garden.a", "garden0", "z"):
        for name in ("0", "one", "two" if namespace != "garden-a" else "three"):
            await kit.created(a_shoot(name, namespace))
    await kit.created(a_seed("one"))
    assert [key.namespace for key in await kit.store.named("shoot", "two")] == ["garden", "garden.a", "garden0", "z"]
    assert await kit.store.named("shoot", "three") == [ObjectKey("shoot", "garden-a", "three")]
    assert len(await kit.store.named("shoot", "0")) == 5
    assert await kit.store.named("shoot", "on") == []
    assert await kit.store.named("seed", "one") == [ObjectKey("seed", "", "one")]
    assert await kit.store.named("project", "one") == []


@pytest.mark.parametrize("several", [1, 2, 500], ids="{0} namespaces a call".format)
async def test_names_are_found_by_how_they_begin(
    kit: StoreUnderTest, several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.common.adapters.redis.reads.NAMESPACES", several)
    for namespace in ("garden", "garden-a", "garden.a", "garden0"):
        for name in ("a", "ab", "abc" if namespace != "garden-a" else "abz", "b"):
            await kit.created(a_shoot(name, namespace))
    await kit.created(a_seed("abs"))
    assert await kit.store.names_with("shoot", "", limit=50) == ["a", "ab", "abc", "abz", "b"]
    assert await kit.store.names_with("shoot", "ab", limit=50) == ["ab", "abc", "abz"]
    assert await kit.store.names_with("shoot", "ab", "garden", limit=50) == ["ab", "abc"]
    assert await kit.store.names_with("shoot", "ab", "garden-", limit=50) == []
    assert await kit.store.names_with("shoot", "ac", limit=50) == []
    assert await kit.store.names_with("shoot", "[", limit=50) == []
    assert await kit.store.names_with("seed", "a", limit=50) == ["abs"]


@pytest.mark.parametrize("limit", [2, 3, 5])
async def test_of_many_names_the_first_and_the_last_are_found(kit: StoreUnderTest, limit: int) -> None:
    every = [f"s{number}" for number in range(9)]
    for name in every:
        await kit.created(a_shoot(name, "garden-a" if name < "s5" else "garden-b"))
    for namespace, first, last in ((None, "s0", "s8"), ("garden-a", "s0", "s4"), ("garden-b", "s5", "s8")):
        found = await kit.store.names_with("shoot", "s", namespace, limit=limit)
        assert (found[0], found[-1]) == (first, last)
        assert len(found) <= limit
        assert set(found) <= set(every)


async def test_a_token_of_somebody_elses_is_a_bad_request(kit: StoreUnderTest) -> None:
    for token in ("x", "bm8=", "ÄÖ", "W10="):
        with pytest.raises(BadRequest):
            await kit.store.list_page("seed", continue_token=token)


async def test_the_census_counts_objects_by_kind_and_the_outbox(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    await kit.created(a_seed("second"))
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    project = await kit.created(a_project())
    await kit.store.delete(project)
    census = await kit.store.census()
    assert census == {
        "objects.seed": 2,
        "objects.shoot": 1,
        "objects.project": 0,
        "outbox": len(await kit.entries()),
        "shoots.pending": 1,
        "shoots.waiting": 1,
        "shoots.waiting_unseen": 1,
    }


def an_operation(operation: str, state: str, updated: str = "") -> Document:
    times = {"lastUpdateTime": updated} if updated else {}
    return {"status": {"lastOperation": {"type": operation, "state": state, **times}}}


async def test_shoots_are_counted_by_state_and_the_longest_operations_named(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("full"))
    assert await kit.store.shoot_state_counts(5) == ({}, 0, [], 0)
    await kit.created(a_shoot("new"))
    await kit.marked_unschedulable(await kit.created(a_shoot("waiting")))
    rest = await kit.created(merged(a_shoot("rest"), an_operation("Create", "Succeeded")))
    await kit.bound(rest, "full")
    moving = await kit.created(merged(a_shoot("moving"), an_operation("Migrate", "Processing", "2025-01-01T00:00:00Z")))

    counts = await kit.store.shoot_state_counts(2)
    assert counts.states == {"new": 1, "pending": 1, "succeeded": 1, "processing": 1}
    assert (counts.busy, counts.uncounted) == (3, 0)
    assert [key.name for key in counts.longest] == ["moving", "new"]

    await kit.changed(moving, merged(moving.document(), an_operation("Migrate", "Failed", "2025-01-01T00:00:00Z")))
    await kit.store.delete(await kit.now(rest.key))
    counts = await kit.store.shoot_state_counts(2)
    assert counts.states == {"new": 1, "pending": 1, "deleting": 1, "failed": 1}
    assert counts.busy == 4


async def test_an_instant_that_is_none_counts_as_the_creation(kit: StoreUnderTest) -> None:
    await kit.created(merged(a_shoot("odd"), an_operation("Reconcile", "Error", "a b\nc")))
    counts = await kit.store.shoot_state_counts(2)
    assert (counts.states, [key.name for key in counts.longest]) == ({"error": 1}, ["odd"])
