"""Long fields of stored objects come back as they went in, and shorter texts of Shoots stand in the store."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.bench.manifests.shoots import placed
from gardenbus.common.adapters.redis.compression import (
    DICTIONARY,
    LONGEST_SHARED,
    MAX_BYTES,
    MIN_BYTES,
    SHARED_TEXTS,
    compress,
    decompress,
    decompress_shared,
)
from gardenbus.common.api.document import encode, split

SHOOT = placed("tulip", 3, "aws-eu1", "mixed")
SPEC = split(SHOOT).spec


@pytest.mark.parametrize("text", [SPEC, split(SHOOT).status, encode(SHOOT)], ids=["spec", "status", "last applied"])
def test_the_text_of_a_shoot_takes_a_fifth_of_its_length(text: bytes) -> None:
    assert decompress(compress(text)) == text
    assert len(compress(text)) < len(text) / 5


@given(st.binary(max_size=2 * MAX_BYTES).map(lambda inside: b'"' + inside))
def test_every_text_comes_back(text: bytes) -> None:
    assert decompress(compress(text)) == text


@pytest.mark.parametrize("size", [1, MIN_BYTES - 1, MAX_BYTES + 1])
def test_what_is_short_or_very_long_stays_as_it_is(size: int) -> None:
    assert compress(b'"' * size) == b'"' * size


def test_a_text_of_an_earlier_version_is_read() -> None:
    assert decompress(SPEC) == SPEC
    assert decompress(b"") == b""
    assert decompress(b"\0") == b"\0"


def test_a_field_that_is_cut_is_no_shorter_text() -> None:
    with pytest.raises(zlib.error):
        decompress(compress(SPEC)[:-3])


def test_the_dictionary_is_the_one_that_stored_fields_were_compressed_with() -> None:
    """Another one needs another format of the store: what was compressed with this one could not be read."""
    assert zlib.adler32(DICTIONARY) == 0xE165411B


def test_a_text_that_many_objects_have_is_read_once() -> None:
    fields = [compress(b'"a":"' + str(number).encode() * 300 + b'"') for number in range(SHARED_TEXTS + 20)]
    for field in (*fields, *fields, b"", b'"short":1'):
        assert decompress_shared(field) == decompress(field)
    assert decompress_shared(fields[-1]) is decompress_shared(bytes(bytearray(fields[-1])))


def test_a_shared_text_that_is_cut_is_an_error_each_time() -> None:
    field = compress(b'"a":"' + b"b" * 300 + b'"')
    for _ in range(2):
        with pytest.raises(zlib.error):
            decompress_shared(field[:-1])


def test_a_long_text_is_not_remembered() -> None:
    field = compress(b'"a":"' + "".join(map(str, range(3000))).encode() + b'"')
    assert len(field) > LONGEST_SHARED
    assert decompress_shared(field) == decompress(field)
    assert decompress_shared(field) is not decompress_shared(field)
