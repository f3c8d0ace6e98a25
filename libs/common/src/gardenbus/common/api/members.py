"""Membership of values of a manifest, looked up by hash: lists of any length are compared in the time of their length.

A value that is not valid may be a list or a mapping, which have no hash: their JSON stands for them.
"""

from collections.abc import Iterable
from typing import Any

from gardenbus.common.api.document import encode


class Members:
    """The values of a list, to ask whether others are among them; equal as in Python (1 and 1.0 are)."""

    def __init__(self, values: Iterable[object]) -> None:
        self._values = {hashable(value) for value in values}

    def __contains__(self, value: object) -> bool:
        return hashable(value) in self._values


def hashable(value: Any) -> object:
    """A value that can be a key: itself, or what stands for it."""
    try:
        hash(value)
    except TypeError:
        return encode(value)
    return value
