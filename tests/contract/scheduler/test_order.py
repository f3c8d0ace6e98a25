"""Order of those who wait, with real queues: no band starves, and who waits for room holds up nobody."""

from collections.abc import Sequence

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.ports.store import Creation
from tests.contract.scheduler.test_scheduler import Garden
from tests.support.builders import a_seed, a_shoot, merged, resolved_as
from tests.support.eventually import eventually

AT_ONCE = 100
SMALL_BATCH = 20


def prioritized(name: str, priority: int, **spec: object) -> Document:
    return merged(a_shoot(name, spec=spec), {"metadata": resolved_as({"priority": priority})})


async def create(garden: Garden, documents: Sequence[Document]) -> None:
    for start in range(0, len(documents), AT_ONCE):
        created = await garden.store.create_many([Creation(each) for each in documents[start : start + AT_ONCE]])
        assert all(isinstance(each, StoredObject) for each in created)


async def versions(garden: Garden) -> dict[str, int]:
    """The version of each shoot, by name: they grow from write to write of the whole landscape."""
    return {shoot.key.name: shoot.version for shoot in await garden.shoots()}


async def test_shoots_of_low_and_no_priority_are_bound_while_many_of_high_priority_wait(garden: Garden) -> None:
    high = [prioritized(f"high-{number}", 1) for number in range(1000)]
    await create(garden, [a_seed("a", shoots="5000"), *high, prioritized("low", -1), a_shoot("normal")])
    async with garden.scheduler(batch_size=SMALL_BATCH):
        await garden.expect({"a": 1002})
    bound_at = await versions(garden)
    for name in ("low", "normal"):
        later = [each for each in bound_at if each.startswith("high-") and bound_at[each] > bound_at[name]]
        assert len(later) > len(high) // 2, name


async def test_shoots_of_high_priority_that_fit_nowhere_are_not_decided_again_for_one_that_comes(
    garden: Garden,
) -> None:
    nowhere = {"seedSelector": {"matchLabels": {"planet": "pluto"}}}
    await create(garden, [a_seed("a"), *(prioritized(f"high-{number}", 1, **nowhere) for number in range(500))])
    async with garden.scheduler():
        await garden.expect_waiting(500)
        waiting = await versions(garden)
        await garden.hold(a_shoot("one"), prioritized("low", -1))

        async def both_bound() -> None:
            assert (await garden.seeds_of_shoots())["a"] == 2

        await eventually(both_bound, every=0.02)
        now = await versions(garden)
        assert {name: now[name] for name in waiting} == waiting
