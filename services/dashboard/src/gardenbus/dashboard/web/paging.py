"""Pages of lists in query strings: `offset`, `limit` and words to `search` for."""

from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request

from gardenbus.common.api.numbers import whole_number
from gardenbus.common.errors import BadRequest

LARGEST_PAGE = 100
DEFAULT_PAGE = 25


class PageQuery(NamedTuple):
    """Words that all must be found, in lower case, and the part of the list that is wanted."""

    words: list[str]
    offset: int
    limit: int

    @property
    def part(self) -> slice:
        """The page, of a whole list."""
        return slice(self.offset, self.offset + self.limit)


def page_query(request: Request, names: Sequence[str] = (), *, default: int = DEFAULT_PAGE) -> PageQuery:
    """Read which page is requested; there may be these parameters besides. Raises BadRequest."""
    parameters = (*names, "search", "offset", "limit")
    if unknown := sorted(set(request.query_params) - set(parameters)):
        raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(parameters)}")
    offset = whole_number(request.query_params.get("offset", "0"), -1)
    limit = whole_number(request.query_params.get("limit", str(default)), -1)
    if offset < 0 or not 1 <= limit <= LARGEST_PAGE:
        raise BadRequest(f"offset must not be negative, limit between 1 and {LARGEST_PAGE}")
    return PageQuery(request.query_params.get("search", "").lower().split(), offset, limit)
