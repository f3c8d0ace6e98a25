"""Results that modules work out and keep: each module declares its own cache, and is the only one that reads it.

A cache stands with the landscape or the usage that its results were worked out from, as long as that lives. Its results
go when the index of seeds is replaced, when there are too many of them, and when its holder clears all caches.
"""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

MAX_REMEMBERED = 20_000
"""Results of one kind that are kept; then all are dropped, and worked out again on demand."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ResultCaches = dict[object, tuple[object, dict[Any, Any]]]
"""The caches of a holder, each with the index that its results are about."""


class ResultCache(Generic[Key, Value]):
    """The declaration of a module's results, of which at most `most` are kept."""

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most

    def of(self, holder: ResultCaches, index: object) -> dict[Key, Value]:
        """The results that a holder has about an index."""
        found = holder.get(self)
        if found is None or found[0] is not index:
            found = holder[self] = (index, {})
        return found[1]

    def keep(self, results: dict[Key, Value], key: Key, value: Value) -> Value:
        """Keep a result; returns it."""
        if len(results) >= self._most:
            results.clear()
        results[key] = value
        return value
