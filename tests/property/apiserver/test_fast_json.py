"""What is read quickly is what the strict readers read."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.manifests.fast_json import is_deeper, read_fast
from gardenbus.common.api.manifests.strict_json import read_json
from gardenbus.common.errors import BadRequest

KEYS = st.sampled_from(["a", "b", "é", "x:y", 'q"', "", "back\\slash", "kind"])
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**18, 10**19, 0, -1]),
    st.floats(allow_nan=False, allow_infinity=False),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6), KEYS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
SCRAPS = [
    b'"a":1,',
    b":",
    b",",
    b'"',
    b"{",
    b"}",
    b"[",
    b"\\",
    b"\\u003a",
    b"1e400",
    b"9" * 20,
    b"-",
    b"\xff",
    b"\x01",
    b" ",
]


def strictly(body: bytes) -> list[Any] | None:
    try:
        return read_json(body.decode())
    except (BadRequest, UnicodeDecodeError):
        return None


@given(OBJECTS, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
def test_an_object_is_read_as_the_strict_reader_reads_it(
    document: dict[str, Any], escaped: bool, separators: tuple[str, str]
) -> None:
    body = json.dumps(document, ensure_ascii=escaped, separators=separators).encode("utf-8", "surrogatepass")
    plain = read_fast(body)
    if plain is not None:
        assert [repr(plain)] == [repr(value) for value in strictly(body) or []]


@given(OBJECTS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_what_is_damaged_is_read_alike_or_left_to_the_strict_reader(
    document: dict[str, Any], chance: random.Random, damages: int
) -> None:
    body = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for _ in range(damages):
        place = chance.randrange(len(body) + 1)
        body = body[:place] + chance.choice(SCRAPS) + body[place + chance.choice((0, 0, 1)) :]
    plain = read_fast(body)
    if plain is not None:
        assert [repr(plain)] == [repr(value) for value in strictly(body) or []]


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": [{"b": 1}, {"b": 1, "b": ":"}]}',
        rb'{"a": 1, "a": "\u003a"}',
        b'{"a": 9223372036854775808}',
        b'{"a": 1e999}',
        b'{"a": NaN}',
        b'{"a": 1} {"b": 2}',
        b"[]",
        b"a: 1",
        b'{"a": "\xff"}',
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"",
    ],
)
def test_what_is_not_plainly_in_order_is_left_to_the_strict_reader(body: bytes) -> None:
    assert read_fast(body) is None


@given(st.integers(1, 70), st.integers(1, 70))
def test_depth_counts_the_outermost(depth: int, levels: int) -> None:
    document: dict[str, Any] = {}
    for _ in range(depth - 1):
        document = {"wide": [], "a": document} if depth > 2 else {"a": document}
    assert is_deeper(document, levels) == (depth > levels)
