"""Lifecycle writes the landscape's history on a real NATS, whatever becomes of the stream."""

from gardenbus.common.api.history import HistoryPoint, decode_point
from gardenbus.common.errors import NotFound
from tests.contract.lifecycle.conftest import Scene
from tests.support.builders import a_seed
from tests.support.eventually import eventually


async def last_point(scene: Scene) -> HistoryPoint:
    try:
        stored = await scene.bus.last(scene.subjects.stream("HISTORY"), scene.subjects.history_point)
    except NotFound as error:
        raise AssertionError(error.message) from error
    assert stored is not None
    point = decode_point(stored.body)
    assert point is not None
    return point


async def test_replicas_write_a_first_point_once(scene: Scene) -> None:
    await scene.store.create(a_seed("s1"))
    await scene.start_lifecycle()
    await scene.start_lifecycle()

    async def written() -> None:
        assert set((await last_point(scene)).seeds) == {"s1"}

    await eventually(written)
    counts = await scene.bus.subjects(scene.subjects.stream("HISTORY"), scene.subjects.history_point)
    assert counts[scene.subjects.history_point] in (1, 2)  # a minute may have begun between
