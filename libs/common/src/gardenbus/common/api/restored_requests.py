"""Durable requests that were put back from a backup: on `garden.restored.<incarnation>.<sequence>.<tail>`.

`tail` is what they were sent on, without the prefix: it names the sender. Incarnation and sequence are those of the
stream that is lost, so that the store compares such a request by when it was sent. Only operators may publish there.
What the server stated about the sender is in a header of ours, which counts there only: no client may use the server's.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest

REQUEST_INFO = "Nats-Request-Info"
"""Header in which the server states who sent what came from another account; it takes it from no client."""

_SAVED_REQUEST_INFO = "Gardenbus-Restored-Request-Info"
_MOST_DIGITS = 19


class SentAs(NamedTuple):
    """A request's subject and headers as it was sent; of one that was put back also its `(incarnation, sequence)`."""

    subject: str
    headers: Mapping[str, str]
    place: tuple[int, int] | None = None


def is_restored(subject: str, subjects: Subjects) -> bool:
    """True for the subject of a request that was put back."""
    return subject.startswith(f"{subjects.prefix}.restored.")


def restored_subjects(subjects: Subjects) -> list[str]:
    """Filters for all of them."""
    tails = ("apply", "delete", *(f"{origin}.*.{verb}" for origin in ("as", "out") for verb in ("apply", "delete")))
    return [f"{subjects.prefix}.restored.*.*.{tail}" for tail in tails]


def put_back(sent: SentAs, subjects: Subjects) -> tuple[str, Mapping[str, str]]:
    """Subject and headers under which a request is put back that was sent at a place.

    Headers for the server itself are left out.
    """
    assert sent.place is not None
    incarnation, sequence = sent.place
    tail = sent.subject.removeprefix(f"{subjects.prefix}.")
    headers = {name: text for name, text in sent.headers.items() if not name.lower().startswith("nats-")}
    headers.pop(_SAVED_REQUEST_INFO, None)
    if REQUEST_INFO in sent.headers:
        headers[_SAVED_REQUEST_INFO] = sent.headers[REQUEST_INFO]
    return f"{subjects.prefix}.restored.{incarnation}.{sequence}.{tail}", headers


def sent_as(subject: str, headers: Mapping[str, str], subjects: Subjects) -> SentAs:
    """A stored request as it was sent, whether it was put back or not. Raises BadRequest for an impossible place."""
    if not is_restored(subject, subjects):
        return SentAs(subject, headers)
    incarnation, _, rest = subject.removeprefix(f"{subjects.prefix}.restored.").partition(".")
    sequence, _, tail = rest.partition(".")
    if not (_is_number(incarnation) and _is_number(sequence)):
        raise BadRequest(f"the subject {subject[:200]} is not restored.<incarnation>.<sequence>.<subject>")
    as_sent = {name: text for name, text in headers.items() if name != _SAVED_REQUEST_INFO}
    if _SAVED_REQUEST_INFO in headers:
        as_sent[REQUEST_INFO] = headers[_SAVED_REQUEST_INFO]
    return SentAs(f"{subjects.prefix}.{tail}", as_sent, (int(incarnation), int(sequence)))


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
