"""Retries with servers that do not acknowledge in time: a message is stored once, a full disk is said to be one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gardenbus.bench.harness.retries import BenchFailed, Retries
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus

STREAM = Subjects("garden").stream("BINDINGS")
MESSAGES = [Message(f"garden.binding.a.default.s{number}", b"{}") for number in range(10)]
CANNOT_WRITE = "NATS responds, but cannot write BINDINGS: its disk is full, or was"


class SlowBus(MemoryBus):
    """Stores so many messages of each batch, one number an attempt, and acknowledges none of them in time."""

    stored_unacknowledged: Sequence[int] = ()

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """See the port."""
        if not self.stored_unacknowledged:
            return await super().publish_batch(
                stream, messages, expected_last_sequence=expected_last_sequence, whole=whole
            )
        count, *self.stored_unacknowledged = self.stored_unacknowledged
        await super().publish_batch(stream, messages[:count], expected_last_sequence=expected_last_sequence)
        raise Unavailable(CANNOT_WRITE)


@pytest.mark.parametrize("stored", [[0], [4], [10], [3, 3], [0, 10], [9, 0, 0]])
async def test_what_was_not_acknowledged_is_stored_once_and_in_order(tmp_path: Path, stored: list[int]) -> None:
    bus = SlowBus(FakeClock())
    before = await bus.publish_batch(STREAM, MESSAGES[:1], expected_last_sequence=0)
    bus.stored_unacknowledged = stored
    last = await Retries(tmp_path, pause_seconds=0.0).publish_in_order(bus, STREAM, MESSAGES, after=before)
    assert last == before + len(MESSAGES) == (await bus.position(STREAM)).sequence
    again = await Retries(tmp_path).publish_in_order(bus, STREAM, [], after=last)
    assert again == last


async def test_a_full_disk_is_told_from_a_server_that_is_slow(tmp_path: Path) -> None:
    bus = SlowBus(FakeClock())
    bus.stored_unacknowledged = [0] * 3
    with pytest.raises(BenchFailed, match=r"10 messages on BINDINGS: the disk of .* is full .* make room"):
        await Retries(tmp_path, least_free_mb=1e12).publish_in_order(bus, STREAM, MESSAGES, after=0)
    bus.stored_unacknowledged = [0] * 3
    with pytest.raises(BenchFailed, match=r"not acknowledged for 0 s: NATS responds"):
        await Retries(tmp_path, seconds=0.0).publish_in_order(bus, STREAM, MESSAGES, after=0)
