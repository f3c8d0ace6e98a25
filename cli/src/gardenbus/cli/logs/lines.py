"""Lines of logs: read, chosen, and written for people. Pure.

Services write one JSON object a line (`timestamp`, `level`, `event`, `service`, …); NATS, Redis and tracebacks do not.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.terminal_text import escaped_cell
from gardenbus.common.errors import BadRequest

LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
LEVEL_ALIASES: Mapping[str, str] = {"warn": "warning"}

_SHOWN_SEPARATELY = ("timestamp", "level", "event", "service", "instance", "exception", "trace_id", "span_id")
"""Members with a place of their own in a line for people."""

_decode = json_decoder(dict[str, Any])
_PREFIX = re.compile(r"^\s*(?P<name>[\w.-]+?)(?:-\d+)?\s*\| (?P<rest>.*)$", re.DOTALL)
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z (?=\S)")
"""Timestamp that `docker compose logs --timestamps` and `kubectl logs --timestamps` add."""

_NATS = re.compile(r"^\[\d+\] (?P<at>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+) \[(?P<level>\w+)\] (?P<text>.*)$")
_REDIS = re.compile(r"^\d+:\w (?P<at>\d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d\.\d+) (?P<level>[.\-*#]) (?P<text>.*)$")
_NATS_LEVELS = {"WRN": "warning", "ERR": "error", "FTL": "critical", "DBG": "debug", "TRC": "debug"}
_REDIS_LEVELS = {"#": "warning", ".": "debug", "-": "debug"}
_DURATION = re.compile(r"^(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LONGEST_DAYS = 36_500
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Control sequences of terminals: `docker compose logs` erases the line before it writes one."""

_RESET, _DIM, _BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_LEVEL_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[1;31m", "debug": "\x1b[2m"}
_SERVICE_COLOURS = ("\x1b[36m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[92m", "\x1b[95m", "\x1b[94m")


class LogLine(NamedTuple):
    """One line. `at` is None where it is unknown when it was written; `members` is empty unless it was JSON."""

    at: datetime | None
    source: str
    level: str
    event: str
    members: Mapping[str, Any]
    raw: str
    is_readable: bool = True
    """False where the line has none of the forms that services, NATS and Redis write."""

    @property
    def trace(self) -> str:
        """The trace that it belongs to, "" where none is known."""
        return str(self.members.get("trace_id") or "")


class LineFilter:
    """Filter of lines. A shoot's lines bring along all later lines of their traces."""

    def __init__(
        self, *, level: str = "debug", since: datetime | None = None, trace: str = "", grep: str = "", shoot: str = ""
    ) -> None:
        level = LEVEL_ALIASES.get(level, level)
        if level not in LEVELS:
            raise BadRequest(f"there is no level {level!r}: {', '.join(LEVELS)}")
        try:
            self._pattern = re.compile(grep, re.IGNORECASE) if grep else None
        except re.error as error:
            raise BadRequest(f"--grep {grep!r} is no regular expression: {error}") from error
        self._least = LEVELS[level]
        self._since = since
        self._trace = trace
        self._shoot = shoot_pattern(shoot) if shoot else None
        self._traces: set[str] = set()

    def matches(self, line: LogLine) -> bool:
        """True when a line passes."""
        if self._since is not None and line.at is not None and line.at < self._since:
            return False
        if self._shoot is not None and not self._concerns_shoot(line):
            return False
        if LEVELS.get(line.level, LEVELS["info"]) < self._least:
            return False
        if self._trace and not line.trace.startswith(self._trace):
            return False
        return self._pattern is None or self._pattern.search(line.raw) is not None

    def _concerns_shoot(self, line: LogLine) -> bool:
        if self._shoot is not None and self._shoot.search(line.raw):
            if line.trace:
                self._traces.add(line.trace)
            return True
        return bool(line.trace) and line.trace in self._traces


def shoot_pattern(shoot: str) -> re.Pattern[str]:
    """Pattern of `NAMESPACE/NAME` (or a bare name) in a line, also as part of a subject or key. Raises BadRequest."""
    namespace, slash, name = shoot.rpartition("/")
    if not name or (slash and not namespace):
        raise BadRequest(f"{shoot!r}: write NAMESPACE/NAME")
    place = rf"(?<![\w-]){re.escape(namespace)}[/.:]" if namespace else r"[/.:]"
    return re.compile(rf"{place}{re.escape(name)}(?![\w-]|\.\w)")


def read_line(raw: str, source: str, *, local_offset: timedelta = timedelta(0)) -> LogLine:
    """Read a line of a service's, NATS' or Redis' log; `local_offset` is what their clocks are ahead of UTC.

    What `docker compose logs` puts in front of a line names its source; its timestamps are not needed.
    """
    text = _ESCAPES.sub("", raw.rstrip("\r\n")).lstrip("\r")
    if not text.startswith("{") and (prefixed := _PREFIX.match(text)):
        source, text = prefixed["name"], prefixed["rest"]
    text = _STAMP.sub("", text)
    if text.startswith("{"):
        try:
            members = _decode(text)
        except msgspec.MsgspecError:
            members = {}
        if members:
            return LogLine(
                at=_instant(members.get("timestamp")),
                source=source or str(members.get("service") or ""),
                level=_level_of(members),
                event=str(members.get("event") or ""),
                members=members,
                raw=text,
            )
    for pattern, form, levels in ((_NATS, "%Y/%m/%d %H:%M:%S.%f", _NATS_LEVELS),
                                  (_REDIS, "%d %b %Y %H:%M:%S.%f", _REDIS_LEVELS)):  # fmt: skip
        if found := pattern.match(text):
            at = datetime.strptime(found["at"], form).replace(tzinfo=UTC) - local_offset
            return LogLine(at, source, levels.get(found["level"], "info"), found["text"], {}, text)
    return LogLine(None, source, "info", text, {}, text, is_readable=False)


def _level_of(members: Mapping[str, Any]) -> str:
    level = str(members.get("level") or "info").lower()
    return LEVEL_ALIASES.get(level, level)


def raw_json(line: LogLine) -> str:
    """A line as JSON: as it was written, or what is known of one that was none."""
    if line.members:
        return line.raw
    at = line.at.isoformat() if line.at else None
    fields = {"timestamp": at, "level": line.level, "event": line.event, "service": line.source}
    return msgspec.json.encode({name: value for name, value in fields.items() if value}).decode()


def pretty(line: LogLine, *, width: int, is_coloured: bool, zone: Any = UTC) -> str:
    """A line for people: when, who (padded to `width`), how bad, what, and what belongs to it, all of it escaped."""
    at = _shown_time(line.at, is_short=is_coloured, zone=zone)
    details = " ".join(
        f"{_paint(name, _DIM, is_coloured)}{_paint('=', _DIM, is_coloured)}{_value(value)}"
        for name, value in line.members.items()
        if name not in _SHOWN_SEPARATELY and value not in ("", None)
    )
    if line.trace:
        details = f"{details} {_paint(f'trace={line.trace}', _DIM, is_coloured)}".lstrip()
    level = _paint(f"{line.level:<7}", _LEVEL_COLOURS.get(line.level, ""), is_coloured)
    who = _paint(f"{line.source:<{width}}", colour_of(line.source), is_coloured)
    event = _paint(line.event, _BOLD if line.members else "", is_coloured)
    text = f"{_paint(at, _DIM, is_coloured)} {who} {level} {event} {details}".rstrip()
    exception = str(line.members.get("exception") or "")
    return text + "".join(f"\n    {escaped_cell(each)}" for each in exception.splitlines())


def colour_of(source: str) -> str:
    """A service's colour, the same each time."""
    return _SERVICE_COLOURS[sum(source.rstrip("-0123456789").encode()) % len(_SERVICE_COLOURS)]


def parse_duration(text: str) -> timedelta:
    """`90s`, `5m`, `2h`, `1d`. Raises BadRequest."""
    found = _DURATION.match(text)
    if not found:
        raise BadRequest(f"{text!r} is no duration: write 90s, 5m, 2h or 1d")
    seconds = float(found["number"]) * _UNITS[found["unit"]]
    if seconds > _LONGEST_DAYS * _UNITS["d"]:
        raise BadRequest(f"{text[:40]} is more than {_LONGEST_DAYS}d (100 years)")
    return timedelta(seconds=seconds)


def _shown_time(at: datetime | None, *, is_short: bool, zone: Any) -> str:
    if at is None:
        return " " * (12 if is_short else 24)
    if is_short:
        return at.astimezone(zone).strftime("%H:%M:%S.%f")[:12]
    return f"{at.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f')[:23]}Z"


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = escaped_cell(text)
    return f'"{text}"' if " " in text or not text else text


def _paint(text: str, colour: str, is_coloured: bool) -> str:  # noqa: FBT001 - one word at each of its calls
    shown = escaped_cell(text)
    return f"{colour}{shown}{_RESET}" if is_coloured and colour and text else shown


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None
