"""A spec that comes again and again is read as the parser reads it, in whatever message it stands."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.repeated_specs import MOST_SPECS, RepeatedSpecs
from gardenbus.common.api.document import encode
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.errors import BadRequest

SPECS = (
    '{"purpose":"production","kubernetes":{"version":"1.34.1"},"n":[1,2.5,-0.0,1e3]}',
    '{ "purpose" : "a:b" , "list": [ {}, [], null, true ] }',
    '{"purpose":"a","purpose":"b"}',
    '{"purpose":"\\u003a"}',
    '{"purpose":"\\"}{:"}',
    '{"n":12345678901234567890}',
    '{"n":123456789012345678}',
    '{"n":1e999}',
    '{"deep":' + "[" * 61 + "]" * 61 + "}",
    '{"deep":' + "[" * 62 + "]" * 62 + "}",
    '{"many":[' + ",".join("1" * 20_000) + "]}",
    "{}",
    "null",
    "[]",
    '{"ä":"\u2028"}',
)
METADATA = (
    '{"name":"a","namespace":"garden-dev"}',
    '{"name":"b","namespace":"garden-dev","labels":{"a":"b"}}',
    '{"name":"a","name":"b"}',
    '{"name":"\\u0061"}',
    '{"name":"a","labels":{' + ",".join(f'"k{number}":"v"' for number in range(70)) + "}}",
    '{"name":"a","deep":' + "[" * 63 + "]" * 63 + "}",
    '{"name":12345678901234567890}',
    "null",
    '"a:b"',
)
TYPES = ('"core.gardener.cloud/v1beta1"', '"core.gardener.cloud/v1"', "1", '"a:b"', '{"a":1,"a":2}')
KINDS = ('"Shoot"', '"Shoot"', '"Shoot"', '"Seed"', '"List"', '"ShootList"', "null")
FORMS: Sequence[Callable[[str, str, str, str], str]] = (
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"metadata":{m},"spec":{s}}}',
    lambda t, k, m, s: f' {{ "spec" : {s}\n, "metadata" : {m}, "kind":{k} ,"apiVersion":{t} }} ',
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"metadata":{m},"spec":{{}},"spec":{s}}}',
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"kind":"Shoot","metadata":{m},"spec":{s}}}',
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"metadata":{m},"spec":{s},"status":{{}}}}',
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"metadata":{m},"spec":{s}}} {{"kind":{k}}}',
    lambda t, k, m, s: f'{{"apiVersion":{t},"kind":{k},"metadata":{m},"spec":{s}',
    lambda t, k, m, s: f'{{"apiVersion":{t},"\\u006bind":{k},"metadata":{m},"spec":{s}}}',
)


def _outcome(read: Callable[[bytes], Sequence[Any]], body: bytes) -> object:
    try:
        return [encode(document) for document in read(body)]
    except BadRequest as error:
        return error.message


def a_body(form: Callable[[str, str, str, str], str], *members: str) -> bytes:
    return form(*members).encode()


BODIES: st.SearchStrategy[bytes] = st.builds(
    a_body,
    st.sampled_from(FORMS),
    st.sampled_from(TYPES),
    st.sampled_from(KINDS),
    st.sampled_from(METADATA),
    st.sampled_from(SPECS),
)


@given(st.lists(BODIES, min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_messages_are_parsed_as_without_what_came_before(bodies: Sequence[bytes]) -> None:
    specs = RepeatedSpecs()
    for spec in SPECS[:9]:  # they have come before
        for name in "abc":
            _outcome(specs.parse, FORMS[0](TYPES[0], KINDS[0], f'{{"name":"{name}"}}', spec).encode())
    shared = 0
    for body in bodies:
        assert _outcome(specs.parse, body) == _outcome(parse, body)
        for document in _parsed(specs, body):
            text = specs.encoded(document)
            shared += text is not None
            assert text in (None, encode(document.get("spec")))
    event(f"shared: {shared > 0}")


def _parsed(specs: RepeatedSpecs, body: bytes) -> Sequence[Any]:
    try:
        return specs.parse(body)
    except BadRequest:
        return ()


def test_a_spec_that_came_twice_is_one_object() -> None:
    specs = RepeatedSpecs()
    bodies = [FORMS[0](TYPES[0], KINDS[0], f'{{"name":"{name}"}}', SPECS[0]).encode() for name in "abcd"]
    first, second, third, fourth = (specs.parse(body)[0] for body in bodies)

    assert first["spec"] is not second["spec"]
    assert second["spec"] is third["spec"] is fourth["spec"]
    assert specs.encoded(first) is None
    assert specs.encoded(third) == encode(third["spec"])
    assert [each["metadata"]["name"] for each in (first, second, third, fourth)] == [*"abcd"]


def test_no_more_specs_are_kept_than_so_many() -> None:
    specs, kept = RepeatedSpecs(), list[Any]()
    for number in range(MOST_SPECS + 1):
        body = FORMS[0](TYPES[0], KINDS[0], METADATA[0], f'{{"n":{number}}}').encode()
        kept.append([specs.parse(body)[0] for _ in range(3)][-1])
    assert specs.encoded(kept[0]) is None
    assert all(specs.encoded(each) == encode(each["spec"]) for each in kept[1:])
