"""Query over shoot rows: filter, order and page. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.garden.rows import ShootRow
from gardenbus.common.errors import BadRequest

LARGEST_PAGE = 1_000
DEFAULT_PAGE = 200

_URGENCY = {"failed": 0, "error": 1, "pending": 2, "deleting": 3, "processing": 4, "new": 5, "succeeded": 6}
"""Order by state, the most urgent first."""

_ORDERS: Mapping[str, Callable[[ShootRow], Any]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "seed": lambda row: (row.seed or "~", row.namespace, row.name),
    "region": lambda row: (row.provider, row.region, row.namespace, row.name),
    "state": lambda row: (_URGENCY[row.state], row.namespace, row.name),
    "progress": lambda row: (row.progress, row.namespace, row.name),
    "created": lambda row: (row.created, row.namespace, row.name),
}


class ShootQuery(msgspec.Struct, frozen=True):
    """Filter, order and page of shoots. Empty fields match all; `seed` also matches shoots that are still there."""

    search: str = ""
    namespace: str = ""
    seed: str = ""
    provider: str = ""
    region: str = ""
    state: str = ""
    """A state, `waiting` (unschedulable), `moving`, or `trouble` (error and failed)."""

    sort: str = "namespace"
    """A column, with `-` before it for descending order."""

    offset: int = 0
    limit: int = DEFAULT_PAGE


class ShootPage(NamedTuple):
    """One page of the matching rows, and their total."""

    rows: Sequence[ShootRow]
    total: int


def query_from(parameters: Mapping[str, str]) -> ShootQuery:
    """Parse a query string. Raises BadRequest with the invalid parameter."""
    unknown = sorted(parameters.keys() - set(ShootQuery.__struct_fields__))
    if unknown:
        raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(ShootQuery.__struct_fields__)}")
    try:
        query = msgspec.convert(dict(parameters), ShootQuery, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(str(error)) from error
    if query.sort.removeprefix("-") not in _ORDERS:
        raise BadRequest(f"sort: {query.sort!r} is no column; there are {', '.join(_ORDERS)}")
    if query.offset < 0 or not 1 <= query.limit <= LARGEST_PAGE:
        raise BadRequest(f"offset must not be negative, limit between 1 and {LARGEST_PAGE}")
    return query


def select_rows(rows: Iterable[ShootRow], query: ShootQuery) -> list[ShootRow]:
    """Return all matching rows, in order."""
    wanted = [row for row in rows if _matches(row, query)]
    wanted.sort(key=_ORDERS[query.sort.removeprefix("-")], reverse=query.sort.startswith("-"))
    return wanted


def page_of(rows: Sequence[ShootRow], query: ShootQuery) -> ShootPage:
    """Return the requested page."""
    return ShootPage(rows[query.offset : query.offset + query.limit], len(rows))


def _matches(row: ShootRow, query: ShootQuery) -> bool:
    if query.namespace and row.namespace != query.namespace:
        return False
    if query.seed and query.seed not in (row.seed, row.actual_seed):
        return False
    if query.provider and row.provider != query.provider:
        return False
    if query.region and row.region != query.region:
        return False
    if query.state and not _is_in(row, query.state):
        return False
    return all(word in _searchable_text(row) for word in query.search.lower().split())


def _is_in(row: ShootRow, state: str) -> bool:
    match state:
        case "waiting":
            return row.is_unschedulable
        case "moving":
            return row.is_migrating
        case "trouble":
            return row.state in ("error", "failed")
        case _:
            return row.state == state


def _searchable_text(row: ShootRow) -> str:
    return f"{row.namespace}/{row.name} {row.seed} {row.provider} {row.region} {row.purpose}".lower()
