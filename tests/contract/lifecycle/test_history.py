"""Lifecycle writes the landscape's history on a real NATS, whatever becomes of the stream."""

import pytest

from gardenbus.common.adapters.nats import streams
from gardenbus.common.api.history import HistoryChange, HistoryPoint, decode_point, encode
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Message
from tests.contract.lifecycle.conftest import Scene
from tests.support.builders import a_seed
from tests.support.eventually import eventually

FULL = 32 * 1024
"""Bytes of a stream that is soon full."""

MORE_THAN_FIT = 12


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


async def test_a_full_stream_drops_its_oldest_for_the_next_point_and_nothing_else_waits_for_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(streams.MAX_BYTES, "HISTORY", FULL)  # pyright: ignore[reportArgumentType]
    await scene.bus.ensure_streams()
    stream, change = scene.subjects.stream("HISTORY"), scene.subjects.history_change
    for number in range(MORE_THAN_FIT):
        old = HistoryChange("2026-01-02T03:04:05Z", "seed", f"old-{number}", "x" * (FULL // 8))
        await scene.bus.publish(Message(change, encode(old)))
    held = (await scene.bus.subjects(stream, ">"))[change]
    assert held < MORE_THAN_FIT
    await scene.add(a_seed("s1"))
    scene.start_heartbeats("s1")

    await scene.start_lifecycle()

    async def written() -> None:
        assert set((await last_point(scene)).seeds) == {"s1"}

    await eventually(written)
    assert (await scene.bus.subjects(stream, ">"))[change] <= held
    await scene.stop_heartbeats("s1")
    await scene.until_silent("s1")
