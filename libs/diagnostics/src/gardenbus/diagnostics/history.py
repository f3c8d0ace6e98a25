"""The landscape's history, read from its stream."""

from datetime import datetime, timedelta

from gardenbus.common.api.history import KEEP_ALIVE, decode_change, decode_point
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import FollowRestarted, ReplayDone, StreamMessage
from gardenbus.diagnostics.bus_client import BusClient
from gardenbus.diagnostics.history_record import HistoryRecord

STREAM = "HISTORY"
LATE = KEEP_ALIVE + timedelta(minutes=2)

NO_STREAM = "this landscape keeps no history: the stream HISTORY is not there (lifecycle is older, or it was removed)"
NO_POINTS = "the history has no points yet: lifecycle writes one within a minute"


async def read_history(api: BusClient) -> HistoryRecord:
    """All of it. Raises NotFound where there is no stream, Unavailable."""
    record = HistoryRecord()
    subjects = api.subjects
    try:
        await api.bus.position(subjects.stream(STREAM))
    except NotFound as error:
        raise NotFound(NO_STREAM) from error
    async with api.bus.follow(subjects.stream(STREAM), history_subjects(subjects)) as follower:
        async for event in follower:
            if isinstance(event, ReplayDone):
                break
            take_event(record, event, subjects)
    return record


def history_subjects(subjects: Subjects) -> list[str]:
    """Filters of the stream's messages."""
    return [subjects.history_point, subjects.history_change]


def take_event(record: HistoryRecord, event: object, subjects: Subjects) -> None:
    """Add what a follower of the stream has delivered; what is no point and no change is ignored."""
    if isinstance(event, FollowRestarted):
        record.clear()
    elif isinstance(event, StreamMessage) and event.marker is None:
        if event.subject == subjects.history_point and (point := decode_point(event.body)) is not None:
            record.add_point(point)
        elif event.subject == subjects.history_change and (change := decode_change(event.body)) is not None:
            record.add_change(change)


def note_on(record: HistoryRecord, now: datetime) -> str:
    """A note for readers: that it has no points, or that no replica writes any more; "" else."""
    if record.last_at is None:
        return NO_POINTS
    if now - record.last_at > LATE:
        return (
            f"the last point is of {record.last_at:%Y-%m-%d %H:%M} UTC: lifecycle writes one every ten minutes at least"
        )
    return ""
