"""Reports Redis' replicas and Sentinels in the metadata of the relay's service, for those who see NATS alone."""

from collections.abc import Awaitable, Callable, Mapping

from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.diagnostics.replication import REDIS_REPLICAS, assess_replicas, reported

ReadInfo = Callable[[], Awaitable[Mapping[str, str]]]
Note = Callable[[str, str], None]


async def report_replicas(read_info: ReadInfo, note: Note, clock: Clock, seconds: float) -> None:
    """Report at intervals; nothing where Redis has no replicas and wants none, or while it is away."""

    async def report() -> None:
        try:
            findings = assess_replicas(await read_info())
        except Transient:
            findings = []
        note(REDIS_REPLICAS, reported(findings[0]) if findings else "")

    await forever(report, period_seconds=seconds, sleep=clock.sleep)
