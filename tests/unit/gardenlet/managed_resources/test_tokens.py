"""Tokens are requested, renewed and placed as Gardener's token requestor does."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.managed_resources.responsibility import (
    ApplyObjects,
    LeaveAlone,
    ManagedResourceStep,
    RemoveObjects,
    ReportIgnored,
    next_step,
)
from gardenbus.gardenlet.domain.managed_resources.tokens import (
    is_token_secret,
    renewal_after,
    renewal_delay,
    token_request_of,
    wants_ca_bundle,
    with_token,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ACCOUNT = "serviceaccount.resources.gardener.cloud"
NAMED = {f"{ACCOUNT}/name": "me", f"{ACCOUNT}/namespace": "kube-system"}
FINALIZER = "resources.gardener.cloud/gardener-resource-manager"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def a_secret(annotations: dict[str, str], **data: str) -> Document:
    return {"metadata": {"annotations": annotations}, "data": {key: encoded(value) for key, value in data.items()}}


def test_a_secret_requests_a_token_by_its_labels() -> None:
    labels = {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}
    assert is_token_secret({"metadata": {"labels": labels}})
    assert not is_token_secret({"metadata": {"labels": {**labels, "resources.gardener.cloud/class": "garden"}}})


def test_a_request_names_its_account_and_the_secret_of_the_token() -> None:
    request = token_request_of(a_secret(NAMED))
    assert (request.namespace, request.account, request.labels, request.target) == ("kube-system", "me", {}, None)
    assert request.life == timedelta(hours=12)
    target = "token-requestor.resources.gardener.cloud/target-secret"
    more = {
        f"{ACCOUNT}/labels": '{"app": "x"}',
        f"{ACCOUNT}/token-expiration-duration": "1h",
        f"{target}-name": "t",
        f"{target}-namespace": "n",
    }
    request = token_request_of(a_secret({**NAMED, **more}))
    assert (request.labels, request.life, request.target) == ({"app": "x"}, timedelta(hours=1), ("n", "t"))


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({f"{ACCOUNT}/namespace": "x"}, f"annotation {ACCOUNT}/name is missing: give the name of the ServiceAccount"),
        ({**NAMED, f"{ACCOUNT}/labels": "["}, f"annotation {ACCOUNT}/labels is no JSON"),
        ({**NAMED, f"{ACCOUNT}/labels": "[]"}, f"annotation {ACCOUNT}/labels must be a JSON object"),
        ({**NAMED, f"{ACCOUNT}/token-expiration-duration": "long"}, "must be a duration"),
    ],
)
def test_an_annotation_that_is_wrong_is_named(annotations: dict[str, str], problem: str) -> None:
    with pytest.raises(BadRequest, match=problem.replace("[", r"\[")):
        token_request_of(a_secret(annotations))


def test_a_token_is_renewed_when_its_time_has_come_or_it_is_not_there() -> None:
    renewed_at = {f"{ACCOUNT}/token-renew-timestamp": timestamp(NOW + timedelta(minutes=50))}
    held = a_secret(renewed_at, token="t")
    assert renewal_delay(held, held, NOW) == timedelta(minutes=50)
    assert renewal_delay(held, held, NOW + timedelta(hours=1)) is None
    assert renewal_delay(held, None, NOW) is None
    assert renewal_delay(held, a_secret({}), NOW) is None
    assert renewal_delay(a_secret({}, token="t"), held, NOW) is None


def test_a_token_is_renewed_at_80_percent_of_its_life_of_at_most_a_day() -> None:
    assert renewal_after(NOW + timedelta(hours=1), NOW, 0.0) == timedelta(minutes=48)
    assert renewal_after(NOW + timedelta(hours=1), NOW, 1.0) == timedelta(minutes=50.4)
    assert renewal_after(NOW + timedelta(days=30), NOW, 0.0) == timedelta(hours=19.2)


def a_kubeconfig(**user: Any) -> str:
    return yaml.safe_dump(
        {
            "current-context": "shoot",
            "contexts": [{"name": "shoot", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://x"}}],
            "users": [{"name": "other", "user": {}}, {"name": "u", "user": user}],
        }
    )


def test_a_token_goes_into_the_kubeconfig_where_there_is_one() -> None:
    assert with_token(a_secret({}), "new") == {"token": encoded("new")}
    data = with_token(a_secret({}, kubeconfig=a_kubeconfig()), "new", b"ca")
    kubeconfig = yaml.safe_load(base64.b64decode(data["kubeconfig"]))
    assert kubeconfig["users"] == [{"name": "other", "user": {}}, {"name": "u", "user": {"token": "new"}}]
    assert kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"] == encoded("ca")
    assert "token" not in data


def test_a_kubeconfig_without_a_token_is_to_be_filled() -> None:
    renewed_at = {f"{ACCOUNT}/token-renew-timestamp": timestamp(NOW + timedelta(minutes=50))}
    assert renewal_delay(a_secret(renewed_at), a_secret({}, kubeconfig=a_kubeconfig()), NOW) is None
    assert renewal_delay(a_secret(renewed_at), a_secret({}, kubeconfig=a_kubeconfig(token="t")), NOW) is not None


def test_something_else_in_the_place_of_a_kubeconfig_is_an_error() -> None:
    with pytest.raises(BadRequest, match="no kubeconfig"):
        with_token(a_secret({}, kubeconfig="- a"), "new")


def test_the_certificate_authority_is_put_beside_the_token_where_it_is_wanted() -> None:
    assert wants_ca_bundle(a_secret({f"{ACCOUNT}/inject-ca-bundle": "true"}))
    assert with_token(a_secret({}), "new", b"ca") == {"token": encoded("new"), "bundle.crt": encoded("ca")}


SERVED = ("seed", "")


@pytest.mark.parametrize(
    ("resource_class", "finalizers", "deleting", "step"),
    [
        ("seed", [], False, ApplyObjects("seed")),
        ("", [], False, ApplyObjects("")),
        ("resources", [FINALIZER], False, ApplyObjects("")),
        ("seed", [f"{FINALIZER}-seed"], True, RemoveObjects("seed")),
        ("seed", [FINALIZER], False, RemoveObjects("")),
        ("garden", [f"{FINALIZER}-seed"], False, RemoveObjects("seed")),
        ("garden", [], False, LeaveAlone()),
        ("seed", [f"{FINALIZER}-garden"], False, LeaveAlone()),
        ("seed", ["other"], True, LeaveAlone()),
    ],
)
def test_the_class_that_holds_a_finalizer_acts_before_the_present_one(
    resource_class: str, finalizers: list[str], deleting: bool, step: ManagedResourceStep
) -> None:
    metadata: Document = {"finalizers": finalizers, **({"deletionTimestamp": "now"} if deleting else {})}
    assert next_step({"metadata": metadata, "spec": {"class": resource_class}}, SERVED) == step


def test_an_ignored_managed_resource_is_reported_unless_it_is_being_deleted() -> None:
    annotations = {"resources.gardener.cloud/ignore": "true"}
    metadata: Document = {"annotations": annotations, "finalizers": [FINALIZER]}
    assert next_step({"metadata": metadata}, SERVED) == ReportIgnored()
    assert next_step({"metadata": metadata, "spec": {"class": "garden"}}, SERVED) == LeaveAlone()
    assert next_step({"metadata": {**metadata, "deletionTimestamp": "now"}}, SERVED) == RemoveObjects("")
