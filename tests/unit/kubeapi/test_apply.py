"""Server-side apply: fields that change hands, fields that go, and conflicts, in Kubernetes' words."""

import json
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.field_ownership import managed_fields, owners_of, written
from gardenbus.kubeapi.domain.manifests import presented
from gardenbus.kubeapi.domain.patches.apply import Applier, applied, created
from gardenbus.kubeapi.domain.statuses import Rejected
from tests.support.kube_apis import a_kube_api
from tests.support.managed_requests import A_NAMESPACE, Given, observed, sent_to

RECORDED = Path(__file__).with_name("recorded_applies.json")
"""Responses of kube-apiserver 1.34.4 (tests/kube/test_server_side_apply.py writes them)."""

FLUX, HELM = (Applier(name, "v1", is_forced=False, time="2026-11-30T00:00:00Z") for name in ("flux", "helm"))


def a_shoot(*workers: Document, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Shoot",
        "metadata": {"name": "apollo"},
        "spec": {**spec, "provider": {"workers": list(workers)}},
    }


def fields_of(document: Document, manager: str) -> set[str]:
    return {written(path) for each in owners_of(document) if each.manager == manager for path in each.paths}


async def test_responses_are_those_of_a_real_api_server() -> None:
    recorded: list[list[tuple[list[Any], Document]]] = json.loads(RECORDED.read_text())
    assert sum(expected["code"] == 409 for sequence in recorded for _, expected in sequence) > 20
    async with a_kube_api() as api:
        assert (await sent_to(api, A_NAMESPACE))[0] == 201
        for sequence in recorded:
            for given, expected in sequence:
                assert observed(*await sent_to(api, Given(*given))) == expected, given


def test_what_a_manager_leaves_out_goes_unless_another_one_has_it() -> None:
    first = created(a_shoot({"name": "a", "minimum": 1}, {"name": "b"}, region="eu", purpose="testing"), FLUX)
    shared = applied(first, a_shoot({"name": "b"}, region="eu"), HELM)
    after = applied(shared, a_shoot({"name": "a"}), FLUX)
    assert after["spec"] == {"region": "eu", "provider": {"workers": [{"name": "a"}, {"name": "b"}]}}
    assert fields_of(after, "flux") == {
        '.spec.provider.workers[name="a"]',
        '.spec.provider.workers[name="a"].name',
    }


def test_a_field_of_another_manager_is_a_conflict_and_by_force_changes_hands() -> None:
    present = created(a_shoot(region="eu", purpose="testing"), FLUX)
    given = a_shoot(region="us", purpose="production")
    with pytest.raises(Rejected) as rejected:
        applied(present, given, HELM)
    assert rejected.value.code == 409
    assert rejected.value.message == (
        'Apply failed with 2 conflicts: conflicts with "flux":\n- .spec.purpose\n- .spec.region'
    )
    assert [dict(each) for each in rejected.value.causes] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "flux"', "field": field}
        for field in (".spec.purpose", ".spec.region")
    ]
    after = applied(present, given, HELM._replace(is_forced=True))
    assert after["spec"]["region"] == "us"
    assert fields_of(after, "flux") == {".spec.provider.workers"}
    assert ".spec.region" in fields_of(after, "helm")


def test_what_was_there_before_the_first_apply_is_somebody_elses() -> None:
    with pytest.raises(Rejected, match=r'1 conflict: conflict with "before-first-apply" using v1: \.spec\.region'):
        applied(a_shoot(region="eu"), a_shoot(region="us"), FLUX)
    assert fields_of(applied(a_shoot(region="eu"), a_shoot(region="eu"), FLUX), "before-first-apply") >= {
        ".spec.region"
    }


def test_the_same_apply_once_more_changes_nothing() -> None:
    present = created(a_shoot({"name": "a"}, region="eu"), FLUX)
    later = FLUX._replace(time="2026-12-01T00:00:00Z")
    assert applied(present, a_shoot({"name": "a"}, region="eu"), later) == present


def test_clients_see_owners_as_managed_fields_and_no_annotation() -> None:
    present = created(a_shoot(region="eu"), FLUX)
    (text,) = present["metadata"]["annotations"].values()
    shown = json.loads(presented(json.dumps(present).encode()))
    assert shown["metadata"] == {"name": "apollo", "managedFields": managed_fields(text)}
    plain = json.dumps(a_shoot()).encode()
    assert presented(plain) is plain
