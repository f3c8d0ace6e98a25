"""Values of log lines, made printable: text without lone surrogates and what steers a terminal, of a bounded size.

Anybody's messages are logged, also while they are rejected: nothing in them may end the handler that does so.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from gardenbus.common.api.terminal_text import escaped

VALUE_LIMIT = 64 * 1024
"""Characters of one text."""

LINE_LIMIT = 4 * VALUE_LIMIT
"""Characters of all values of a line together, and bytes of a line that is written as it is."""

DEPTH_LIMIT = 16

_CUT = "..."
_INT64 = range(-(2**63), 2**64)


def printable(event: Mapping[str, Any]) -> dict[str, Any]:
    """Copy of a log line that every encoder takes. Its first members are kept when it is too long."""
    printer = _Printer()
    return {printer.text(name): printer.value(value, 1) for name, value in event.items()}


class _Printer:
    """Makes the values of one line printable, within its limit."""

    def __init__(self) -> None:
        self._left = LINE_LIMIT

    def value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return int(value) if value in _INT64 else self.text(hex(value))
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self.text(bytes(cast("bytes", value)[: VALUE_LIMIT + 1]).decode("utf-8", "backslashreplace"))
        if isinstance(value, Mapping):
            return self._members(cast("Mapping[Any, Any]", value), depth)
        if isinstance(value, list | tuple | AbstractSet):
            return self._elements(cast("list[Any]", value), depth)
        return self.text(_text_of(value))

    def text(self, text: object) -> str:
        text = text if isinstance(text, str) else _text_of(text)
        limit = max(0, min(VALUE_LIMIT, self._left))
        if len(text) > limit:
            text = text[:limit] + _CUT
        self._left -= len(text)
        return escaped(text)

    def _members(self, values: Mapping[Any, Any], depth: int) -> Any:
        members: dict[str, Any] = {}
        for name, value in values.items():
            if self._left <= 0 or depth >= DEPTH_LIMIT:
                members[_CUT] = _CUT
                break
            members[self.text(name)] = self.value(value, depth + 1)
        return members

    def _elements(self, values: "list[Any]", depth: int) -> list[Any]:
        elements: list[Any] = []
        for value in values:
            if self._left <= 0 or depth >= DEPTH_LIMIT:
                elements.append(_CUT)
                break
            elements.append(self.value(value, depth + 1))
        return elements


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  its author's error, not that of whoever logs it
        return f"<{type(value).__name__}>"
