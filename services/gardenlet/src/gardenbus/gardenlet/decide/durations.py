"""Durations as Go writes them: `300ms`, `1h30m`, `2s`."""

import re
from datetime import timedelta
from typing import Any

_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 64


def parse_duration(value: Any) -> timedelta:
    """The duration that a text such as `1h30m` stands for; `0` is zero. Raises ValueError when it is none."""
    if not isinstance(value, bool) and value in ("0", 0):
        return timedelta(0)
    if not isinstance(value, str) or len(value) > _LONGEST or _WHOLE.fullmatch(value) is None:
        raise ValueError(f"must be a duration such as 30s, 5m or 1h30m, is {value!r}")
    try:
        return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(value)))
    except OverflowError as error:
        raise ValueError(f"is too long a duration: {value!r}") from error
