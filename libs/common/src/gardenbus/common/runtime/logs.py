"""Logs: structlog, one JSON object a line, or colours on a terminal.

Each line has `timestamp` (RFC 3339, UTC), `level`, `event`, `service` and `instance`. What libraries log through the
standard library joins the same stream from WARNING on. A line is written whatever its values are (printable.py).
"""

import logging
import sys
import time
from typing import Any

import msgspec
import structlog

from gardenbus.common.api.terminal_text import escaped_json
from gardenbus.common.runtime.printable import LINE_LIMIT, printable
from gardenbus.common.runtime.settings import LogFormat, LogLevel

_encode = msgspec.json.Encoder(enc_hook=str).encode


def configure_logging(
    service: str, *, instance: str = "", log_format: LogFormat = "auto", log_level: LogLevel = "info"
) -> None:
    """Set structlog up for this process. Call once, before the first line is written."""
    as_json = log_format == "json" or (log_format == "auto" and not sys.stdout.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _Timestamp(),
        _ServiceFields(service, instance),
    ]
    renderers: list[structlog.typing.Processor] = [_TerminalRenderer()]
    factory: Any = structlog.WriteLoggerFactory()
    if as_json:
        renderers = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_as_bytes)]
        factory = structlog.BytesLoggerFactory()
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[log_level.upper()]),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    _join_standard_library(shared, as_json=as_json)


class _ServiceFields:
    """Adds service and instance to each line."""

    def __init__(self, service: str, instance: str) -> None:
        self._members = {"service": service, "instance": instance} if instance else {"service": service}

    def __call__(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        for name, value in self._members.items():
            event.setdefault(name, value)
        return event


class _Timestamp:
    """Adds the timestamp: RFC 3339 in UTC, to the microsecond. The second is formatted once for all its lines."""

    def __init__(self) -> None:
        self._last = (-1, "")

    def __call__(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        last = self._last
        if last[0] != second:
            last = self._last = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        event["timestamp"] = f"{last[1]}.{nanoseconds // 1000:06d}Z"
        return event


class _TerminalRenderer:
    """Renders a line in colours: what a value says changes neither the terminal nor the next line."""

    def __init__(self) -> None:
        self._renderer = structlog.dev.ConsoleRenderer()

    def __call__(self, logger: object, method: str, event: structlog.typing.EventDict) -> str:
        line = self._renderer(logger, method, printable(structlog.processors.format_exc_info(logger, method, event)))
        return line.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace").decode()


def encode_line(event: structlog.typing.EventDict) -> bytes:
    """One line of JSON. As it is where that works, and else with printable values; nothing in it steers a terminal."""
    try:
        line = _encode(event)
    except Exception:  # noqa: BLE001  msgspec's own errors, and those of the values' __str__
        return _encode(printable(event))
    if len(line) > LINE_LIMIT:
        return _encode(printable(event))
    return line if line.isascii() and b"\x7f" not in line else escaped_json(line.decode()).encode()


def _as_bytes(event: Any, **_unused: object) -> bytes:
    return encode_line(event)


def _as_text(event: Any, **_unused: object) -> str:
    return encode_line(event).decode()


def _join_standard_library(shared: list[structlog.typing.Processor], *, as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stdout)
    renderer: structlog.typing.Processor = _TerminalRenderer()
    if as_json:
        renderer = structlog.processors.JSONRenderer(serializer=_as_text)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
