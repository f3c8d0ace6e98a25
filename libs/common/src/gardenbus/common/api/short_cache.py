"""Caches of pure functions of text that others send: bounded in entries, and in the size of what is kept."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

LONGEST_KEY = 512
"""Characters of the arguments that are remembered: names and ranges are far shorter, junk may be megabytes."""


def short_cache(entries: int, *, longest: int = LONGEST_KEY) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Remember the results for arguments (texts, or tuples of texts) that are short; call the function for others."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        remembered = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*args: object) -> T:
            return function(*args) if _size(args, longest) > longest else remembered(*args)

        return call

    return decorate


def _size(value: object, enough: int) -> int:
    """Characters in a value, counted until there are more than enough."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, tuple):
        return 0
    total = 0
    for part in value:  # pyright: ignore[reportUnknownVariableType]
        total += 1 + _size(part, enough)  # pyright: ignore[reportUnknownArgumentType]
        if total > enough:
            break
    return total
