"""Reading messages: what is taken, and that each refusal names place and fix."""

import json
import time
from typing import Any

import pytest
import yaml

from gardenbus.common.api.manifests import strict_yaml
from gardenbus.common.api.manifests.parser import parse, read_values
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_seed, a_shoot


@pytest.fixture(params=[yaml.CSafeLoader, yaml.SafeLoader], ids=["libyaml", "without libyaml"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_yaml, "_LOADER", request.param)


def rejection(body: bytes) -> str:
    with pytest.raises(BadRequest) as caught:
        parse(body)
    return caught.value.message


def value_of(text: str) -> Any:
    return parse(f"a: {text}\n".encode())[0]["a"]


def test_json_is_read_with_its_unknown_fields() -> None:
    shoot = a_shoot(spec={"nobodyKnows": {"x": [1, 2.5, None, True]}})
    assert parse(json.dumps(shoot).encode()) == [shoot]


def test_a_number_without_a_fraction_is_an_integer_however_it_is_written() -> None:
    for body in (b'{"a": 3.0, "b": [1e2]}', b'{"a": 3.0, "b": [1e2], "c": "\\u0061"}', b"a: 3.0\nb: [1e2]"):
        read = parse(body)[0]
        assert (type(read["a"]), type(read["b"][0])) == (int, int)
        assert (read["a"], read["b"]) == (3, [100])


def test_several_json_documents_may_follow_one_another() -> None:
    assert parse(b'{"a": 1}\n{"b": 2} {"c": 3}') == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_several_yaml_documents_are_read_and_empty_ones_left_out() -> None:
    assert parse(b"---\n# nothing\n---\na: 1\n---\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


def test_lists_are_flattened_also_inside_of_lists() -> None:
    inner = {"kind": "List", "apiVersion": "v1", "items": [a_shoot()]}
    body = {"kind": "List", "apiVersion": "v1", "items": [a_seed(), inner]}
    assert [document["kind"] for document in parse(json.dumps(body).encode())] == ["Seed", "Shoot"]


def test_entries_of_a_typed_list_get_its_type() -> None:
    shoot = {name: value for name, value in a_shoot().items() if name not in ("kind", "apiVersion")}
    body = {"kind": "ShootList", "apiVersion": "core.gardener.cloud/v1beta1", "items": [shoot]}
    assert parse(json.dumps(body).encode()) == [a_shoot()]


def test_overrides_of_the_older_version_become_those_of_the_one_that_is_stored() -> None:
    older, newer = (f"placement.kubernetes-fleet.io/{version}" for version in ("v1alpha1", "v1beta1"))
    plain = f'{{"apiVersion": "{older}", "kind": "ClusterResourceOverride"}}'.encode()
    assert parse(plain) == [{"apiVersion": newer, "kind": "ClusterResourceOverride"}]
    listed = (
        f"kind: List\nitems: [{{apiVersion: {older}, kind: ResourceOverride}}, {{apiVersion: {older}, kind: Work}}]"
    )
    assert [each["apiVersion"] for each in parse(listed.encode())] == [newer, older]


def test_an_empty_list_holds_nothing() -> None:
    assert parse(b'{"kind": "List", "apiVersion": "v1", "items": []}') == []


def test_a_byte_order_mark_is_no_content() -> None:
    assert parse(b"\xef\xbb\xbfa: b") == [{"a": "b"}]


def test_yaml_may_start_with_a_brace() -> None:
    assert parse(b"{a: b}") == [{"a": "b"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("!!timestamp 2026-01-02", "2026-01-02"),
        ("12:30", "12:30"),
        ("220000+0100", "220000+0100"),
        ("1.34.1", "1.34.1"),
        ('"1.34"', "1.34"),
        ("1.34", 1.34),
        ("1e3", 1000),
        ("0x1f", 31),
        ("0644", 420),
        ("-0o17", -15),
        ("1_000", 1000),
        ("08", 8),
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("", None),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551616", 2.0**64),
        ("1e300", 1e300),
        ("-9007199254740991.0", 1 - 2**53),
        ("!!str 5", "5"),
        ("!!float 5", 5),
        ("<none>", "<none>"),
    ],
)
def test_yaml_scalars_are_read_as_kubernetes_reads_them(text: str, value: object) -> None:
    read = value_of(text)
    assert (read, type(read)) == (value, type(value))


def test_aliases_and_merge_keys_are_expanded_into_copies() -> None:
    first, second = parse(b"x: &x {k: [1]}\ny: *x\nz: {<<: *x, own: 1}\nw: {<<: [{a: 1}, {a: 2, b: 2}], b: 3}")[0], None
    assert second is None
    assert (first["y"], first["z"], first["w"]) == ({"k": [1]}, {"k": [1], "own": 1}, {"a": 1, "b": 3})
    first["y"]["k"].append(2)
    assert first["x"] == {"k": [1]}


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (b"\xff\xfe\x00", "not UTF-8: byte 0"),
        (b"a: b\nc: \xff", "line 2"),
        (b"", "holds no manifest"),
        (b"---\n---\n", "holds no manifest"),
        (b"hello", "'hello' is no manifest"),
        (b"[1, 2]", "a list is no manifest"),
        (b'{"a": 1', "not JSON: line 1, column 8"),
        (b"a: [", "not YAML: line [12], column"),
        (b"a:\n\t- b", "not YAML: line [12], column"),
        (b"a: \x01", "not YAML"),
        (b'{"a": 1, "a": 2}', "a: given twice"),
        (b'{"s": {"w": [{"n": 1, "n": 2}]}}', r"s\.w\[0\]\.n: given twice"),
        (b"s:\n  w:\n  - n: 1\n    n: 2\n", r"s\.w\[0\]\.n: given twice.*line 4"),
        (b'{"s": [NaN]}', r"s\[0\]: NaN"),
        (b'{"s": -Infinity}', "s: -Infinity"),
        (b"s: .nan", r"s: \.nan"),
        (b"s: -.Inf", r"s: -\.Inf"),
        (b'{"s": {"n": 1e999}}', r"s\.n: the number 1e999 is beyond"),
        (b'{"s": 1e-999}', "beyond what a double holds"),
        (b'{"s": 9223372036854775809}', "s: the number 9223372036854775809 is too large"),
        (b"s: 123456789012345678901234567", "too large to be kept exactly: write it as a string"),
        (b'{"s": ' + b"9" * 5000 + b"}", "too large"),
        (b"1: a", "the key 1 is not a string"),
        (b"yes: a", "the key yes is not a string"),
        (b"? [a]\n: b", "is not a string"),
        (b"a: !!python/object:os.system {}", "the tag !!python/object:os.system is not taken"),
        (b"a: !!python/name:os.system ''", "is not taken"),
        (b"a: !!binary aGk=", "the tag !!binary is not taken"),
        (b"a: !own b", "the tag !own is not taken"),
        (b"a: &a [*a]", "stands inside what it stands for"),
        (b"a: *b", "has no anchor"),
        (b"a: {<<: 5}", "<< takes a mapping"),
        (b'{"x": "\\ud800"}', "cannot be kept as JSON"),
        (b"a: " + b"[" * 200 + b"]" * 200, "nested deeper than 64"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "nested deeper than 64"),
        (b'{"a":' * 100_000, "deep"),
        (b"- " * 100_000, "deep"),
        (b"x" * 9_000_000, "8388608 are allowed"),
        (b'{"a": "' + b"x" * 5_000_000 + b'"}', "1048576 are allowed"),
        (b'{"a": 1} {"b": 1, "b": 1}', "b: given twice"),
        (b'{"kind": "List", "itms": []}', "items: must be a list of manifests, not null"),
        (b"kind: List\nitems: {}", "items: must be a list of manifests, not a mapping"),
        (b'{"kind": "List", "items": [{"a": 1}, 7]}', r"items\[1\]: a number is no manifest"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_place_and_fix(body: bytes, reported: str) -> None:
    with pytest.raises(BadRequest, match=reported):
        parse(body)


def test_sixty_four_levels_are_taken_and_one_more_is_not() -> None:
    deepest = b'{"a":' * 63 + b"{}" + b"}" * 63
    assert parse(deepest)
    assert "deeper than 64" in rejection(b'{"a":' + deepest + b"}")


@pytest.mark.parametrize("body", [rb'{"status": {"lastError": "\ud800"}}', rb'{"\udfff": 1}', rb'["\ud83d"]'])
def test_half_a_surrogate_pair_is_refused_in_whatever_is_read(body: bytes) -> None:
    with pytest.raises(BadRequest, match="cannot be kept as JSON"):
        read_values(body)


@pytest.mark.parametrize(
    "body", [rb'{"\ud83d": {"a": 1, "a": 2}}', rb'{"\ud83d": 1, "\ud83d": 2}', rb'{"\ud83d": NaN}']
)
def test_the_message_about_half_a_surrogate_pair_can_be_sent(body: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        read_values(body)
    assert rb"\ud83d" in caught.value.message.encode()


def test_what_is_nested_too_deeply_is_refused_in_whatever_is_read() -> None:
    assert read_values(b'{"a":' * 68 + b"1" + b"}" * 68)
    for levels in (69, 900):
        with pytest.raises(BadRequest, match="deeper than 64"):
            read_values(b'{"a":' * levels + b"1" + b"}" * levels)


def test_a_bomb_of_aliases_goes_off_nowhere() -> None:
    lines = ["a0: &a0 [" + ", ".join(["lol"] * 9) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 20)]
    began = time.process_time()
    assert "aliases add up to more than" in rejection("\n".join(lines).encode())
    assert time.process_time() - began < 5, "9 to the 20th values would take years"


def test_a_bomb_of_long_texts_goes_off_nowhere() -> None:
    body = b"a: &a " + b"x" * 100_000 + b"\nb: [" + b", ".join([b"*a"] * 10_000) + b"]"
    assert "aliases add up to more than" in rejection(body)


def test_an_object_of_exactly_one_mebibyte_is_taken_and_its_status_not_counted() -> None:
    envelope = len(b'{"a":""}')
    assert parse(b'{"a":"' + b"x" * (1024 * 1024 - envelope) + b'"}')
    assert parse(b'{"a":"x","status":{"b":"' + b"x" * (1024 * 1024) + b'"}}')
    assert "1048576 are allowed" in rejection(b'{"a":"' + b"x" * (1024 * 1024 - envelope + 1) + b'"}')
