"""Holds a page of a few entries back until the shoots that were created on it have seeds.

A scheduler binds most shoots by the apiserver's hint, within milliseconds: one message then says that a shoot was
created and bound, and none queues it. With the hints, an order that comes alone takes 5.0 ms of processor time instead
of 5.8, and of 7.3 with the hints alone (decision 31). The switch is `held-pages` in GARDENBUS_DISABLED_SHORTCUTS.
"""

from gardenbus.common.ports.clock import Clock
from gardenbus.relay.domain.announcements import shoots_bound_soon
from gardenbus.relay.ports.outbox import Outbox, OutboxPage

FEW_ENTRIES = 50
"""Entries of a page that may be read again before it is announced."""

PLACING_SECONDS = 0.02
"""Longest time that an announcement is put off for schedulers to place what was just created."""

READ_AGAIN_MAX = 5

SHORTEST_WAIT_SECONDS = 0.001
"""Redis takes less for a wait without end."""

READ_ONCE_SECONDS = 1.0
"""Time for which nothing is put off after no shoot was placed in time: there may be no scheduler, or no room."""


class HeldPage:
    """Reads the oldest page of an outbox; `is_enabled` False, each is announced as it was read first."""

    def __init__(self, outbox: Outbox, clock: Clock, size: int, *, is_enabled: bool = True) -> None:
        self._outbox = outbox
        self._clock = clock
        self._size = size
        self._read_once_until = 0.0 if is_enabled else float("inf")

    async def read(self, page: OutboxPage, *, announced_unblock_index: int) -> OutboxPage:
        """The page as it is once its shoots have seeds, or the time is over. Raises Transient."""
        began = self._clock.monotonic()
        if len(page.entries) > FEW_ENTRIES or began < self._read_once_until:
            return page
        awaited = at_first = shoots_bound_soon(page, announced_unblock_index=announced_unblock_index)
        for _ in range(READ_AGAIN_MAX):
            if not awaited:
                break
            left = began + PLACING_SECONDS - self._clock.monotonic()
            if left < SHORTEST_WAIT_SECONDS:
                if at_first <= awaited:
                    self._read_once_until = began + READ_ONCE_SECONDS
                break
            await self._outbox.wait(left)
            page = await self._outbox.head(self._size)
            awaited = shoots_bound_soon(page, announced_unblock_index=announced_unblock_index)
        return page
