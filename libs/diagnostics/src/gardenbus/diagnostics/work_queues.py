"""The work queues of a landscape: what waits in each, what is in flight, who listens."""

from typing import Any, NamedTuple

from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.bus_client import BusClient


class WorkRow(NamedTuple):
    """One work queue: its consumer, the messages that wait or are in flight, and the age of the oldest."""

    queue: str
    stream: str
    pending: int
    in_flight: int
    redelivered: int
    later: int
    listening: int
    delivered: int
    oldest: str | None

    @property
    def document(self) -> dict[str, Any]:
        """The row for programs."""
        return {("inFlight" if name == "in_flight" else name): value for name, value in self._asdict().items()}


async def work_rows(api: BusClient) -> list[WorkRow]:
    """Every queue of work in the landscape, in the order of its streams. Raises Unavailable."""
    rows: list[WorkRow] = []
    for short in jetstream.WORK_STREAMS:
        stream = api.subjects.stream(short)
        for consumer in await jetstream.consumers(api, stream):
            if not consumer.is_shared:
                continue
            oldest = None
            if consumer.pending or consumer.in_flight:
                oldest = await jetstream.first_of(api, stream, consumer.filter)
            later = 0
            if short == "QUEUES":
                timers = consumer.filter.replace(f"{api.subjects.prefix}.queue.", f"{api.subjects.prefix}.later.", 1)
                later = await jetstream.count_of(api, stream, timers)
            rows.append(
                WorkRow(
                    queue=consumer.name if short == "QUEUES" else short.lower(),
                    stream=stream,
                    pending=consumer.pending,
                    in_flight=consumer.in_flight,
                    redelivered=consumer.redelivered,
                    later=later,
                    listening=consumer.listening,
                    delivered=consumer.delivered,
                    oldest=oldest.at.isoformat(timespec="seconds") if oldest else None,
                )
            )
    return rows
