"""Durations as Go writes them: `10s`, `1h30m`, `1.5m`, `200ms`."""

import re
from datetime import timedelta

from gardenbus.common.api.shown_values import shown

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]++\.?+[0-9]*+|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
DURATION_PATTERN = rf"(?P<sign>[-+]?)(?:0|(?P<parts>(?:{_PART.pattern})+))"
_WHOLE = re.compile(DURATION_PATTERN)
LONGEST_DURATION = 64
"""Characters of a duration; a longer text is none."""


def parse_duration(value: object) -> timedelta:
    """Parse a duration (and the number 0: YAML reads `0` as one). Raises ValueError for anything else.

    Source: Go's `time.ParseDuration`; fractions of a microsecond are lost.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return timedelta(0)
    match = _WHOLE.fullmatch(value) if isinstance(value, str) and len(value) <= LONGEST_DURATION else None
    if match is None:
        raise ValueError(f"must be a duration such as 30s, 5m or 1h30m, is {shown(value)}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(match["parts"] or ""))
    try:
        return timedelta(seconds=-seconds if match["sign"] == "-" else seconds)
    except OverflowError as error:
        raise ValueError(f"is too long a duration: {value!r}") from error
