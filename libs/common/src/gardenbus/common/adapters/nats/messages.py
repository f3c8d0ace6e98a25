"""Messages as they are on the wire: header blocks, and the command that publishes."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gardenbus.common.errors import BadRequest

_ILLEGAL = re.compile(r"[\x00-\x20\x7f]|^\.|\.\.|\.$|^$")
_LINE_BREAKS = str.maketrans({"\r": " ", "\n": " ", "\0": " "})
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_HEADER_LINE = b"NATS/1.0\r\n"
_EVENT_BEGINS = b"\r\nce-specversion: "
_EVENT_ENDS = b"\r\nce-time: "
_MOST_NAMES = 1000
_REQUEST_INFO = b"Nats-Request-Info"
_REQUEST_INFO_LINE = b"\r\nNats-Request-Info: "
_HIDDEN = "stands more than once, or not on a line of its own"
"""Value of that header where no sender can be read from it; it is no JSON."""
_possible_names: set[str] = set()
"""Header names that have been found possible."""


class RawMessage(NamedTuple):
    """A message as it came off the wire; `header` is the undecoded block, empty without headers."""

    subject: str
    reply: str
    body: bytes
    header: bytes

    @property
    def status(self) -> int:
        """The inline status of a control message (404, 408, 409, 503, 100); 0 for an ordinary message."""
        digits = self.header[9:12]
        return int(digits) if self.header[8:9] == b" " and digits.isdigit() else 0

    @property
    def description(self) -> str:
        """The text beside the status."""
        return self.header[13 : self.header.find(b"\r\n")].decode("utf-8", "replace").strip()


def decode_headers(block: bytes) -> dict[str, str]:
    """Read a header block; of a repeated name the last value counts, but for the header that names a sender.

    The server writes that one behind the sender's own, over their final CRLF: where there is none, into the last line.
    Where it stands in any other way than once, as a line, it is returned with a value that nobody can read.

    The attributes of a CloudEvent (in the relay's order) are left out: they repeat, for others, what our headers hold.
    """
    headers: dict[str, str] = {}
    if block:
        is_hidden = (count := block.count(_REQUEST_INFO)) and not (count == 1 and _REQUEST_INFO_LINE in block)
        begin = block.find(_EVENT_BEGINS)
        if begin >= 0 and (last := block.find(_EVENT_ENDS, begin)) >= 0:
            block = block[:begin] + block[block.find(b"\r\n", last + 2) :]
        for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
            name, separator, value = line.partition(":")
            if separator:
                headers[name] = value.strip()
        if is_hidden:
            headers[_REQUEST_INFO.decode()] = _HIDDEN
    return headers


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Write a header block; line breaks in values become spaces. Raises BadRequest for an impossible name."""
    return _HEADER_LINE + encode_header_lines(headers) + b"\r\n" if headers else b""


def encode_header_lines(headers: Mapping[str, str]) -> bytes:
    """The lines of a header block alone; see `encode_headers`."""
    if not _possible_names.issuperset(headers):
        _check_names(headers)
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\n") + text.count("\r") > 2 * len(headers) or "\0" in text:
        text = "".join([f"{name}: {value.translate(_LINE_BREAKS)}\r\n" for name, value in headers.items()])
    return text.encode()


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not _HEADER_NAME.fullmatch(name):
            raise BadRequest(f"{name!r} is no name for a header")
        if len(_possible_names) < _MOST_NAMES:
            _possible_names.add(name)


def publish_command(subject: str, body: bytes, header: bytes = b"", reply: str = "") -> bytes:
    """The protocol's command for one message. Raises BadRequest for a subject that cannot be published on."""
    if not _is_surely_legal(subject) and _ILLEGAL.search(subject):
        raise BadRequest(f"{subject[:200]!r} is no subject to publish on")
    if header:
        start = f"HPUB {subject} {reply} {len(header)} {len(header) + len(body)}\r\n".encode()
        return b"".join((start, header, body, b"\r\n"))
    return b"".join((f"PUB {subject} {reply} {len(body)}\r\n".encode(), body, b"\r\n"))


def _is_surely_legal(subject: str) -> bool:
    """Fast path for nearly all subjects, quicker than the pattern."""
    return (
        subject.isprintable()
        and subject.isascii()
        and " " not in subject
        and ".." not in subject
        and subject[-1:] not in (".", "")
        and subject[0] != "."
    )
