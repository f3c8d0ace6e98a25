"""Query over shoot rows: filter, order and page. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.garden.rows import ShootRow
from gardenbus.common.api.short_cache import short_cache
from gardenbus.common.errors import BadRequest

LARGEST_PAGE = 1_000
DEFAULT_PAGE = 200

_URGENCY = {"failed": 0, "error": 1, "pending": 2, "deleting": 3, "processing": 4, "new": 5, "succeeded": 6}
"""Order by state, the most urgent first."""

ORDERS: Mapping[str, Callable[[ShootRow], Any]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "seed": lambda row: (row.seed or "~", row.namespace, row.name),
    "region": lambda row: (row.provider, row.region, row.namespace, row.name),
    "state": lambda row: (_URGENCY[row.state], row.namespace, row.name),
    "progress": lambda row: (row.progress, row.namespace, row.name),
    "created": lambda row: (row.created, row.namespace, row.name),
}


_FILTERS = ("search", "namespace", "seed", "provider", "region", "state")


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
    if query.sort.removeprefix("-") not in ORDERS:
        raise BadRequest(f"sort: {query.sort!r} is no column; there are {', '.join(ORDERS)}")
    if query.offset < 0 or not 1 <= query.limit <= LARGEST_PAGE:
        raise BadRequest(f"offset must not be negative, limit between 1 and {LARGEST_PAGE}")
    return query


def is_filtered(query: ShootQuery) -> bool:
    """Return True unless the query wants all shoots."""
    return any(getattr(query, name) for name in _FILTERS)


def select_rows(rows: Iterable[ShootRow], query: ShootQuery) -> list[ShootRow]:
    """Return all matching rows, in order."""
    wanted = matching(rows, query)
    wanted.sort(key=ORDERS[query.sort.removeprefix("-")], reverse=query.sort.startswith("-"))
    return wanted


def page_of(rows: Sequence[ShootRow], query: ShootQuery) -> ShootPage:
    """Return the requested page."""
    return ShootPage(rows[query.offset : query.offset + query.limit], len(rows))


def matching(rows: Iterable[ShootRow], query: ShootQuery) -> list[ShootRow]:
    """Return all matching rows, in the order in which they come: a pass a filter, the short ones first."""
    found = list(rows)
    if wanted := query.seed:
        found = [row for row in found if wanted in (row.seed, row.actual_seed)]
    if wanted := query.state:
        found = _in_state(found, wanted)
    if wanted := query.namespace:
        found = [row for row in found if row.namespace == wanted]
    if wanted := query.provider:
        found = [row for row in found if row.provider == wanted]
    if wanted := query.region:
        found = [row for row in found if row.region == wanted]
    for word in query.search.lower().split():
        found = _with_word(found, word)
    return found


def _in_state(rows: Iterable[ShootRow], state: str) -> list[ShootRow]:
    match state:
        case "waiting":
            return [row for row in rows if row.is_unschedulable]
        case "moving":
            return [row for row in rows if row.is_migrating]
        case "trouble":
            return [row for row in rows if row.state in ("error", "failed")]
        case _:
            return [row for row in rows if row.state == state]


def _with_word(rows: Iterable[ShootRow], word: str) -> list[ShootRow]:
    """Return the rows with a word in what they are called, where they are, or what they are for.

    Names are lower case, as the apiserver admits no others.
    """
    if "/" in word:
        return [row for row in rows if word in f"{row.namespace}/{row.name}" or word in _kind_of(row)]
    return [
        row for row in rows if word in row.name or word in row.namespace or word in row.seed or word in _kind_of(row)
    ]


def name_text(row: ShootRow) -> str:
    """Return the text that the words of a search for a name are found in."""
    return f"{row.namespace}/{row.name}"


def place_text(row: ShootRow) -> str:
    """Return the text of where a row is and what it is for, in which `search` finds words too."""
    return f"{row.seed}\0{_kind_of(row)}"


def _kind_of(row: ShootRow) -> str:
    return _lower(row.provider, row.region, row.purpose)


@short_cache(4096)
def _lower(*texts: str) -> str:
    return " ".join(texts).lower()
