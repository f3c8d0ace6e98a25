"""Whatever arrives as JSON is decoded, or is a msgspec.DecodeError."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.decoding import decode_json, json_decoder
from gardenbus.common.api.numbers import whole_number


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'"\xff"', "not UTF-8"),
        (rb'"\ud800 and so on"', "surrogate"),
        (b"", "truncated"),
    ],
)
def test_bad_json_is_one_kind_of_error(body: bytes, reason: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(body, dict[str, Any])
    with pytest.raises(msgspec.DecodeError, match=reason):
        json_decoder()(body)


@given(st.binary(max_size=200))
def test_no_body_raises_anything_else(body: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError):
        json_decoder()(body)


def test_a_body_of_another_type_is_a_validation_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_json(b"[]", dict[str, Any])
    assert decode_json(b'{"a": 1}', dict[str, Any]) == {"a": 1}


@pytest.mark.parametrize("text", ["", "-1", "1.0", " 1", "\u0661", "\u00b2", "9" * 19, "9" * 5000, None, 7, [], "x"])
def test_what_is_no_number_is_the_default(text: object) -> None:
    assert whole_number(text) == 0
    assert whole_number(text, -1) == -1


def test_a_number_is_read() -> None:
    assert whole_number("0") == 0
    assert whole_number("0042") == 42
    assert whole_number("9" * 18) == 10**18 - 1
