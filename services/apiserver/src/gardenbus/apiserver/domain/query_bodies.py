"""Bodies of queries."""

from typing import Protocol, TypeVar

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.errors import BadRequest


class Limited(Protocol):
    """A query that states how much it wants."""

    @property
    def limit(self) -> int:
        """Objects in the response, at the most."""
        ...


Body = TypeVar("Body")
LimitedBody = TypeVar("LimitedBody", bound=Limited)


def read_body(body: bytes, wanted: type[Body], described: str) -> Body:
    """Read a body, which may be empty. Raises BadRequest, which begins as `described`."""
    try:
        return decode_json(body if body.strip() else b"{}", wanted)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{described}: {error}") from error


def read_query(body: bytes, wanted: type[LimitedBody], described: str) -> LimitedBody:
    """Read the body of a query for a list, which may be empty. Raises BadRequest, which begins as `described`."""
    query = read_body(body, wanted, described)
    if query.limit < 1:
        raise BadRequest("limit: must be at least 1")
    return query
