"""Follower of the last message of every subject, restarted until it has nothing to follow."""

from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, ReplayDone, StreamMessage
from gardenbus.common.ports.clock import Clock

_log = structlog.stdlib.get_logger()

RESTART_SECONDS = 1.0


class ReplayConsumer(Protocol):
    """Consumer of a stream that may be replayed at any time."""

    def replay_began(self) -> None:
        """Prepare for all last messages again."""
        ...

    async def deliver(self, message: StreamMessage) -> None:
        """Handle one message. Raises GardenbusError to restart the follower."""
        ...

    async def replay_ended(self) -> None:
        """Handle the end of the replay. Raises GardenbusError to restart the follower."""
        ...


async def follow_last(
    bus: Bus, clock: Clock, stream: str, filters: Callable[[], Sequence[str]], consumer: ReplayConsumer
) -> None:
    """Deliver the last message of every subject, then new ones. Returns once `filters` is empty at a restart."""
    while subjects := filters():
        consumer.replay_began()
        try:
            async with bus.follow(stream, subjects, last_per_subject=True) as follower:
                async for event in follower:
                    if isinstance(event, StreamMessage):
                        with skip_unreadable(event, raised=GardenbusError):
                            await consumer.deliver(event)
                    elif isinstance(event, ReplayDone):
                        await consumer.replay_ended()
                    else:
                        _log.warning("follow.restarted", stream=stream, reason=event.reason)
                        consumer.replay_began()
        except GardenbusError as error:
            _log.warning("follow.interrupted", stream=stream, reason=error.message)
        await clock.sleep(RESTART_SECONDS)
