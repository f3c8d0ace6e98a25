"""Pictures that keep themselves current: redrawn in place on a terminal, printed again where there is none."""

import asyncio
from collections.abc import Awaitable, Callable

from rich.console import RenderableType
from rich.live import Live

from gardenbus.cli.output.console import console, is_animated, show

Picture = Callable[[], Awaitable[RenderableType]]


async def keep_showing(picture: Picture, *, every_seconds: float) -> None:
    """Draw a picture again and again, until cancelled."""
    if not is_animated(console):
        while True:
            show(await picture())
            await asyncio.sleep(every_seconds)
    with Live(await picture(), console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            live.refresh()
            await asyncio.sleep(every_seconds)
            live.update(await picture())
