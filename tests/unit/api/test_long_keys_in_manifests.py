"""A key of megabytes costs a message nothing but its bytes: paths are written out for what is reported alone."""

import tracemalloc
from typing import Any

import pytest

from gardenbus.common.api.manifests.parser import parse, read_object, read_values
from gardenbus.common.errors import BadRequest

LONG = b"k" * 4_000_000
CUT = "k" * 80
MANY = 33_000
"""Just more values than one object may have."""
LONGEST_ERROR = 2000


def rejected(body: bytes) -> str:
    with pytest.raises(BadRequest) as rejection:
        parse(body)
    assert len(rejection.value.message) < LONGEST_ERROR
    return rejection.value.message


@pytest.mark.parametrize("invalid", [b"NaN", b'{"a":1,"a":2}', b"1e999"])
def test_an_invalid_value_below_a_long_key_is_found_without_writing_out_the_paths_of_others(invalid: bytes) -> None:
    body = b'{"%s":[%s%s]}' % (LONG, b"0," * 1_900_000, invalid)
    assert rejected(body).startswith(f"{CUT}[1900000]")


def test_a_long_repeated_key_is_cut_in_the_error() -> None:
    assert rejected(b'{"a":{"%s":1,"%s":2}}' % (LONG, LONG)) == f"a.{CUT}: given twice: keep one"


def test_a_deep_path_is_cut_in_the_error() -> None:
    levels = 400
    assert "NaN is no JSON number" in rejected(b'{"%s":' % (b"k" * 70) * levels + b"NaN" + b"}" * levels)


def test_of_many_invalid_values_the_first_alone_is_kept() -> None:
    tracemalloc.start()
    assert rejected(b'{"a":[%sNaN]}' % (b"NaN," * 500_000)).startswith("a[0]: NaN")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000


def test_a_repeated_key_of_an_outer_object_is_reported_before_what_is_invalid_inside() -> None:
    assert rejected(b'{"a":{"b":NaN},"c":1,"c":2}') == "c: given twice: keep one"
    assert rejected(b'{"a":[{"b":1},{"b":2,"b":3}],"c":NaN}').startswith("a[1].b: given twice")


def test_an_object_that_is_too_large_is_told_so_before_its_values_are_counted() -> None:
    body = b'{"%s":[%s0]}' % (LONG, b"0," * MANY)
    assert "are allowed: make it smaller" in rejected(body)


@pytest.mark.parametrize("body", [b'{"status":{"%s":[%s0]}}', b'{"a":1,"status":{"%s":[%s0]}}'])
def test_too_many_values_below_a_long_key_are_told_with_the_key_cut(body: bytes) -> None:
    body %= (LONG, b"0," * MANY)
    assert rejected(body).startswith(f"status.{CUT}[")
    with pytest.raises(BadRequest, match=f"^status.{CUT}\\["):
        read_object(body, "one object")


def test_too_many_values_below_a_long_key_in_yaml_are_told_with_the_key_cut() -> None:
    body = b"? %s\n: [%s0]\n" % (LONG, b"0," * 66_000)
    assert rejected(body).startswith(f"{CUT}[65533]: more than")


def merged(body: bytes) -> Any:
    (value,) = read_values(body)
    return value


def test_many_merged_mappings_are_put_together_once() -> None:
    entries = b",".join(b"{a%d: 1}" % number for number in range(21_000))
    assert len(merged(b"<<: [%s]\n" % entries)) == 21_000
    assert len(merged(b"".join(b"<<: {a%d: 1}\n" % number for number in range(16_000)))) == 16_000


def test_of_merged_mappings_the_first_wins_and_what_is_written_out_before_all() -> None:
    value = merged(b"b: own\n<<: [{a: 1, b: 1, c: 1}, {c: 2, d: 2}]\n<<: {d: 3, e: 3}\nz: own\n")
    assert value == {"a": 1, "b": "own", "c": 1, "d": 2, "e": 3, "z": "own"}
    assert list(value) == ["d", "e", "c", "a", "b", "z"]


def test_what_is_merged_and_no_mapping_is_told_with_its_place() -> None:
    for source in (b"[{a: 1}, 2]", b"text"):
        assert rejected(b"x:\n  <<: %s\n" % source) == "x: << takes a mapping or a list of mappings (line 2)"


@pytest.mark.parametrize(("kind", "version"), [(LONG[:1_000_000], b"v1"), (b"Shoot", LONG[:1_000_000])])
def test_a_long_type_of_a_list_is_not_copied_into_each_of_its_entries(kind: bytes, version: bytes) -> None:
    body = b'{"kind":"%sList","apiVersion":"%s","items":[%s{}]}' % (kind, version, b"{}," * 19_000)
    assert rejected(body) == "apiVersion and kind of a list have more than 1024 bytes: write them as documented"


def test_a_type_of_a_list_that_is_no_text_is_bounded_too() -> None:
    nested = b'{"kind":"ShootList","apiVersion":[%s0],"items":[{}]}' % (b"0," * 2_000)
    assert rejected(b'{"kind":"List","items":[%s]}' % nested).startswith("items[0]: apiVersion and kind")
