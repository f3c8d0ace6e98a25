"""Durations as Go writes them: `10s`, `1h30m`, `1.5m`, `200ms`."""

import re
from datetime import timedelta

_SECONDS_BY_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"(?P<sign>[-+]?)(?:0|(?P<parts>(?:{_PART.pattern})+))")


def parse_duration(text: str) -> timedelta:
    """Read a duration; raises ValueError. Source: Go's `time.ParseDuration` (anything below a microsecond is lost)."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration such as 10s or 1m30s")
    seconds = sum(float(number) * _SECONDS_BY_UNIT[unit] for number, unit in _PART.findall(match["parts"] or ""))
    try:
        return timedelta(seconds=-seconds if match["sign"] == "-" else seconds)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long") from error
