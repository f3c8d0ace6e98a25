"""Waits for the slot of a request, in turn with other users' requests (`domain/fair_slots`)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from gardenbus.apiserver.domain.fair_slots import FairSlots, Lane


class RequestSlots:
    """Slots of one apiserver."""

    def __init__(self, slots: int) -> None:
        self.slots = FairSlots(slots)

    @contextlib.asynccontextmanager
    async def held(self, lane: Lane, user: str, size: int) -> AsyncGenerator[None]:
        """Hold a slot, once it is this request's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def start() -> None:
            if not turn.done():
                turn.set_result(None)

        ticket = self.slots.enter(lane, user, size, start)
        try:
            if not ticket.is_started:
                await turn
            yield
        finally:
            self.slots.leave(ticket)
