"""Lists of shoots: kept in order as they change, and filtered when somebody looks.

Each order that the table offers is kept: the one that is shown first from the beginning on, the others once all shoots
are there, a few rows at a time. A filter that takes long to apply is not applied again at once.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from gardenbus.common.api.garden.rows import ShootRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.ordered_rows import OrderedRows
from gardenbus.dashboard.domain.shoot_query import (
    ORDERS,
    ShootPage,
    ShootQuery,
    is_filtered,
    matching,
    name_text,
    page_of,
    place_text,
    select_rows,
)

FIRST_ORDER = "namespace"
AT_ONCE = 500
"""Rows put in order between two pauses for browsers."""

MANY_TO_SORT = 1_000
"""Rows that are put in another order where they are looked up by words, whatever share they are of all."""

RESULTS_KEPT = 4
QUICK_SECONDS = 0.03
"""Rows whose look takes no longer are looked up anew after each change."""

REST = 4.0
"""Time for which a result is kept, in multiples of what it took."""


class _Found(NamedTuple):
    rows: list[ShootRow]
    changes: int
    until: float


class ShootLists:
    """Orders and filters over a table of shoots; `changed` is to be called after each change of it."""

    def __init__(self, table: Mapping[ObjectKey, ShootRow], clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._clock = clock
        self._first = OrderedRows(ORDERS[FIRST_ORDER], (name_text, place_text))
        self._orders = {FIRST_ORDER: self._first}
        self._complete = {FIRST_ORDER}
        self._results: OrderedDict[ShootQuery, _Found] = OrderedDict()
        self._changes = 0
        self.namespaces: Counter[str] = Counter()
        self.regions: Counter[tuple[str, str]] = Counter()
        """Shoots by namespace, and by provider and region."""

    def changed(self, old: ShootRow | None, new: ShootRow | None) -> None:
        """Update after a change."""
        self._changes += 1
        self._count(old, -1)
        self._count(new, 1)
        for rows in self._orders.values():
            if old is not None and new is not None:
                rows.replace(old, new)
            elif new is not None:
                rows.put(new)
            elif old is not None:
                rows.remove(old)

    async def keep_all_orders(self) -> None:
        """Put all shoots into each order, with pauses; they are kept from then on."""
        for name in ORDERS.keys() - self._orders.keys():
            rows = self._orders[name] = OrderedRows(ORDERS[name])
            for number, key in enumerate(list(self._table)):
                if row := self._table.get(key):
                    rows.put(row)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)
            self._complete.add(name)
        for _ in self._first.join_texts():
            await asyncio.sleep(0)

    def named(self, words: Sequence[str], limit: int) -> list[ObjectKey]:
        """Return the shoots in whose name or namespace all words are found, at most so many of each rank.

        They are those of that name, those whose name begins with the first word, and all; each in order.
        """
        wanted = [word for word in words if word not in "shoot"]
        found = self._named(wanted, limit + 1)
        if words and len(found) > limit:
            found = [
                *self._named([*wanted, f"/{words[0]}\n"], limit),
                *self._named([*wanted, f"/{words[0]}"], limit),
                *found,
            ]
        return [ObjectKey("shoot", row.namespace, row.name) for row in dict.fromkeys(found)]

    def _named(self, words: Sequence[str], limit: int) -> list[ShootRow]:
        """Return the first rows in whose names all words are found; a name stands between `/` and a line break."""
        return list(islice(self._first.containing(words, 1), limit))

    def page(self, query: ShootQuery, among: Iterable[ObjectKey] | None = None) -> ShootPage:
        """Return a page; `among` are the keys to choose from, where they are few."""
        name, is_descending = query.sort.removeprefix("-"), query.sort.startswith("-")
        if among is not None:
            return page_of(select_rows([self._table[key] for key in among if key in self._table], query), query)
        if not is_filtered(query) and name in self._complete:
            rows = self._orders[name]
            page = rows.page_from_end if is_descending else rows.page
            return ShootPage(page(query.offset, query.limit), len(rows))
        page, total = page_of(self._found(query, name, is_descending=is_descending), query)
        return ShootPage([self._table.get(ObjectKey("shoot", row.namespace, row.name), row) for row in page], total)

    def _found(self, query: ShootQuery, name: str, *, is_descending: bool) -> list[ShootRow]:
        whole = msgspec.structs.replace(query, offset=0, limit=1)
        cached, began = self._results.get(whole), self._clock()
        if cached is not None and (cached.changes == self._changes or began < cached.until):
            return cached.rows
        rows = self._with_words(query, name)
        if rows is not None:
            rows = rows[::-1] if is_descending else rows
        elif name in self._complete:
            rows = matching(self._orders[name], query)
            rows = rows[::-1] if is_descending else rows
        else:
            rows = select_rows(self._table.values(), query)
        took = self._clock() - began
        until = began + took * (1 + REST) if took > QUICK_SECONDS else 0.0
        self._results.pop(whole, None)
        self._results[whole] = _Found(rows, self._changes, until)
        while len(self._results) > RESULTS_KEPT:
            self._results.popitem(last=False)
        return rows

    def _with_words(self, query: ShootQuery, name: str) -> list[ShootRow] | None:
        """Return the rows that have the words of a query, in order; None where there are too many to sort."""
        if not query.search.strip():
            return None
        most = len(self._first) if name == FIRST_ORDER else max(MANY_TO_SORT, len(self._first) // 10)
        found = list(islice(self._first.containing(query.search.lower().split()), most + 1))
        if len(found) > most:
            return None
        rows = matching(found, msgspec.structs.replace(query, search=""))
        if name != FIRST_ORDER:
            rows.sort(key=ORDERS[name])
        return rows

    def _count(self, row: ShootRow | None, by: int) -> None:
        if row is None:
            return
        place = row.provider, row.region
        self.namespaces[row.namespace] += by
        self.regions[place] += by
        if not self.namespaces[row.namespace]:
            del self.namespaces[row.namespace]
        if not self.regions[place]:
            del self.regions[place]
