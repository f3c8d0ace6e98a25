"""A follower skips what it cannot read; what a server says passes."""

from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.errors import BadRequest, GardenbusError, Unavailable
from gardenbus.common.ports.bus import StreamMessage

MESSAGE = StreamMessage("garden.changed.shoot.x", b"", {}, 7, datetime.now(UTC), None)


def counted() -> float:
    return REGISTRY.get_sample_value("gardenbus_unreadable_messages_total") or 0.0


def test_an_error_of_the_reader_is_counted_and_logged() -> None:
    before = counted()
    with capture_logs() as logs, skip_unreadable(MESSAGE):
        raise ValueError("not enough values")

    assert counted() == before + 1
    assert [(line["event"], line["subject"], line["sequence"]) for line in logs] == [
        ("message.unreadable", MESSAGE.subject, 7)
    ]


def test_what_a_server_says_passes() -> None:
    with pytest.raises(Unavailable), skip_unreadable(MESSAGE):
        raise Unavailable("away")
    with pytest.raises(BadRequest), skip_unreadable(MESSAGE, raised=GardenbusError):
        raise BadRequest("restart")
    with skip_unreadable(MESSAGE):
        raise BadRequest("of the message")
