"""A message of a permitted size with very many values holds up nobody: it is rejected before they are looked at."""

import json
import time
from typing import Any

import pytest

from gardenbus.common.api.manifests.parser import MOST_MANIFESTS, parse, read_object
from gardenbus.common.api.manifests.strict_yaml import MOST_VALUES
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_shoot

WORKERS = 100_000
CONFIGMAP = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"garden-dev"},"data":{}}'


def a_shoot_with(workers: list[Any]) -> bytes:
    return json.dumps(a_shoot(spec={"provider": {"workers": workers}})).encode()


def in_yaml(workers: int) -> bytes:
    head = b"apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec:\n  provider:\n    workers:\n"
    return head + b"    - {}\n" * workers


def rejected(body: bytes) -> str:
    """What is said of it, and that it took no second."""
    began = time.process_time()
    with pytest.raises(BadRequest) as rejection:
        parse(body)
    assert time.process_time() - began < 1
    return rejection.value.message


@pytest.mark.parametrize(
    "body",
    [
        a_shoot_with([{}] * WORKERS),
        b'{"kind":"List","apiVersion":"v1","items":[' + a_shoot_with([{}] * WORKERS) + b"]}",
        CONFIGMAP + b"\n" + a_shoot_with([{}] * WORKERS),
        in_yaml(WORKERS),
        b"kind: List\napiVersion: v1\nitems:\n- spec: {provider: {workers: [" + b"{}," * WORKERS + b"]}}\n",
    ],
    ids=["JSON", "List", "second document", "YAML", "List in YAML"],
)
def test_an_object_with_too_many_values_is_rejected_with_the_field_and_the_bound(body: bytes) -> None:
    message = rejected(body)
    assert "spec.provider.workers[" in message
    assert f"more than {MOST_VALUES} values" in message


@pytest.mark.parametrize("as_yaml", [False, True])
def test_as_many_values_as_are_allowed_are_taken_and_one_more_is_not(as_yaml: bool) -> None:
    def body(number: int) -> bytes:
        """`data` is the first of the values, and the field of it the second."""
        return (
            (b"data:\n  a:\n" + b"  - 1\n" * number) if as_yaml else b'{"data":{"a":[%s]}}' % b",".join([b"1"] * number)
        )

    (document,) = parse(body(MOST_VALUES - 2))
    assert len(document["data"]["a"]) == MOST_VALUES - 2
    assert rejected(body(MOST_VALUES - 1)).startswith(f"data.a[{MOST_VALUES - 2}]: ")


def test_values_that_aliases_add_count() -> None:
    assert f"more than {MOST_VALUES} values" in rejected(b"a: &a [" + b"1," * 1000 + b"]\nb: [" + b"*a," * 40 + b"]")


def test_text_is_one_value_whatever_is_in_it() -> None:
    (document,) = parse(CONFIGMAP.replace(b'"data":{}', b'"data":{"a":"%s"}' % (b"1,{[" * 40_000)))
    assert len(document["data"]["a"]) == 160_000


def test_each_object_of_a_message_may_have_as_many() -> None:
    two = a_shoot_with([{}] * 20_000)
    assert len(parse(two + two)) == 2
    assert len(parse(b'{"kind":"List","items":[' + two + b"," + two + b"]}")) == 2
    assert len(parse(in_yaml(20_000) + b"---\n" + in_yaml(20_000))) == 2
    of_list = b"kind: List\nitems:\n" + (b"- data:\n    a: [" + b"1," * 20_000 + b"]\n") * 3
    assert len(parse(of_list)) == 3


def test_an_object_that_is_no_manifest_is_bounded_too() -> None:
    with pytest.raises(BadRequest, match=r"^spec\.provider\.workers"):
        read_object(a_shoot_with([{}] * WORKERS), "one object")
    with pytest.raises(BadRequest, match="one object"):
        read_object(b"{}{}", "one object")
    assert read_object(b'{"a": 1}', "one object") == {"a": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"{} " * 500_000,
        b"---\n" * 500_000,
        b"--- {}\n" * 500_000,
        b'{"kind":"List","items":[' + b",".join([b"{}"] * 340_000) + b"]}",
    ],
    ids=["JSON", "empty YAML", "YAML", "List"],
)
def test_more_manifests_than_a_message_may_have_are_rejected_with_the_bound(body: bytes) -> None:
    assert f"more than {MOST_MANIFESTS} manifests in one message" in rejected(body)


def test_as_many_manifests_as_are_allowed_are_taken() -> None:
    assert len(parse(CONFIGMAP * MOST_MANIFESTS)) == MOST_MANIFESTS


def test_a_file_may_have_more_manifests_than_a_message() -> None:
    assert len(parse(CONFIGMAP * (MOST_MANIFESTS + 1), most_manifests=MOST_MANIFESTS + 1)) == MOST_MANIFESTS + 1
