"""A line is logged whatever its values are: what they say may come from anybody."""

import json
import logging
import sys
from io import BytesIO, TextIOWrapper
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.runtime.logs import configure_logging, encode_line
from gardenbus.common.runtime.printable import VALUE_LIMIT


class Unprintable:
    """A value that fails when it is asked for its text."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

VALUES: dict[str, Any] = {
    "lone surrogate": "a\ud800b",
    "surrogate in a list": ["x", {"y": "\udfff"}],
    "surrogate as a key": {"\ud800": 1},
    "bytes": b"\xff\xfe\x00",
    "bytes as a key": {b"\xff": 1},
    "number beyond 64 bits": 2**200,
    "no number": float("nan"),
    "tuple as a key": {(1, 2): 3},
    "cycle": CYCLE,
    "deep": json.loads("[" * 900 + "]" * 900),
    "control characters": "\x00\x1b[31m\u2028\r\n",
    "no text": Unprintable(),
    "error": ValueError("\ud800"),
    "set": {1, "\ud800"},
}


@pytest.fixture(autouse=True)
def _as_before() -> object:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)


@pytest.mark.parametrize("name", VALUES)
def test_a_line_with_any_value_is_one_line_of_json(name: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    configure_logging("apiserver", log_format="json")
    structlog.get_logger().warning("message.rejected", subject="garden.report.a", reason=VALUES[name])
    structlog.get_logger().error("task.crashed", exc_info=ValueError(VALUES[name]))
    logging.getLogger("library").error("failed: %s", VALUES[name], exc_info=ValueError("\udc80"))
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.split(b"\n") if line]
    assert [line["event"].split(":")[0] for line in lines][:2] == ["message.rejected", "task.crashed"]
    assert lines[0]["subject"] == "garden.report.a"
    assert len(lines) == (2 if name == "no text" else 3), "what has no text cannot be formatted into a message"


@pytest.mark.parametrize("name", VALUES)
def test_a_terminal_shows_any_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = BytesIO()
    terminal = TextIOWrapper(shown, encoding="utf-8", errors="strict", write_through=True)
    monkeypatch.setattr(sys, "stdout", terminal)
    configure_logging("apiserver", log_format="console")
    structlog.get_logger().warning("message.rejected", reason=VALUES[name])
    assert b"message.rejected" in shown.getvalue()


def test_a_huge_text_is_cut(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    configure_logging("apiserver", log_format="json")
    structlog.get_logger().warning("message.rejected", reason="\ud800" + "x" * 10_000_000, list=["y" * 10_000_000])
    line = capfdbinary.readouterr().out
    assert len(line) < 4 * VALUE_LIMIT
    assert json.loads(line)["reason"].endswith("...")


_any_text = st.text(st.characters(exclude_categories=()), max_size=20)
_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _any_text | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_any_text | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_any_text, _anything, max_size=6))
def test_every_line_is_json_in_utf_8(fields: dict[str, Any]) -> None:
    line = encode_line({**fields, "event": "x"})
    assert b"\n" not in line
    assert json.loads(line.decode())["event"] == "x"
