"""What ConfigMaps and Secrets hold: names, needed entries, types, and objects that may not change."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource

VALUE = "YWFh"
TLS = {"tls.crt": VALUE, "tls.key": VALUE}


def an_object(kind: str = "Secret", **fields: Any) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "garden-dev"}, **fields}


def fields_at_fault(new: Document, old: Document | None = None) -> list[str]:
    try:
        validate(new, old)
    except InvalidResource as error:
        return [problem.field for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (an_object(data={"a-b_c.d": VALUE}), []),
        (an_object(data={"bad key": VALUE}), ["data[bad key]"]),
        (an_object(stringData={"..": "a"}), ["stringData[..]"]),
        (an_object("ConfigMap", data={"group:ops": "viewer", "ann@example.org": "operator"}), []),
        (an_object(type="kubernetes.io/tls", data=TLS), []),
        (an_object(type="kubernetes.io/tls", stringData={"tls.crt": "a", "tls.key": "b"}), []),
        (an_object(type="kubernetes.io/tls", data={"tls.crt": VALUE}), ["data[tls.key]"]),
        (an_object(type="kubernetes.io/ssh-auth"), ["data[ssh-privatekey]"]),
    ],
    ids=str,
)
def test_entries_have_names_of_files_in_secrets_and_those_that_the_type_needs(
    given: Document, fields: list[str]
) -> None:
    assert fields_at_fault(given) == fields


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_is_immutable_stays_as_it_is_but_for_its_metadata(kind: str) -> None:
    old = an_object(kind, immutable=True, data={"a": VALUE})
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert fields_at_fault(labelled, old) == []
    assert fields_at_fault({**old, "data": {"a": "YWFi"}}, old) == ["data"]
    assert fields_at_fault({**old, "immutable": False}, old) == ["immutable"]
    assert (
        fields_at_fault(an_object(kind, immutable=True, data={"a": "YWFi"}), an_object(kind, data={"a": VALUE})) == []
    )


def test_a_secret_keeps_its_type_and_one_without_is_opaque() -> None:
    assert fields_at_fault(an_object(type="other"), an_object()) == ["type"]
    assert fields_at_fault(an_object(type="Opaque"), an_object()) == []
    assert fields_at_fault(an_object(), an_object(type="other")) == ["type"]


def test_what_an_earlier_version_took_blocks_no_unrelated_change() -> None:
    old = an_object(type="kubernetes.io/tls", data={"bad key": VALUE})
    assert fields_at_fault({**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, old) == []
