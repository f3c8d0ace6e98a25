"""A header block that is made to hide what the server states of its sender is an impersonation."""

import pytest

from gardenbus.apiserver.domain.senders import check_sender
from gardenbus.common.adapters.nats.messages import decode_headers
from gardenbus.common.errors import Impersonation

STATED = b'Nats-Request-Info: {"acc":"OUT","user":"ann"}\r\n\r\n'
FORGED = b'Nats-Request-Info: {"acc":"GARDEN","user":"ann"}\r\n'
HIDDEN = {
    "within a value": b"NATS/1.0\r\nX: a" + STATED,
    "within a name": b"NATS/1.0\r\nX-" + STATED,
    "behind the first line": b"NATS/1.0" + STATED,
    "behind a status": b"NATS/1.0 200 OK" + STATED,
    "twice": b"NATS/1.0\r\n" + FORGED + STATED,
    "forged, and within a value": b"NATS/1.0\r\n" + FORGED + b"X: a" + STATED,
    "behind a forged mention": b"NATS/1.0\r\nX: Nats-Request-Info\r\n" + FORGED + STATED,
    "behind a line feed alone": b"NATS/1.0\r\nX: a\n" + STATED,
    "within what announcements leave out": b"NATS/1.0\r\nce-specversion: 1.0\r\nce-time: a" + STATED,
    "without a blank": b"NATS/1.0\r\nNats-Request-Info:{}\r\n\r\n",
}


@pytest.mark.parametrize("block", HIDDEN.values(), ids=HIDDEN)
def test_a_sender_that_is_hidden_is_an_impersonation(block: bytes) -> None:
    with pytest.raises(Impersonation, match="Nats-Request-Info cannot be read"):
        check_sender(decode_headers(block), "ann")


def test_a_sender_on_a_line_of_its_own_is_read() -> None:
    check_sender(decode_headers(b"NATS/1.0\r\nX: a\r\n" + STATED), "ann")
