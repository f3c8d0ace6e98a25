"""Bastions: what their gardenlet has extensions make, and what it reports, row by row of the table."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.extension_objects.bastions import bastion_object, plan_bastion
from tests.support.builders import NOW, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BASTION: Document = {
    "kind": "Bastion",
    "metadata": {"name": "door", "namespace": "garden-dev", "generation": 3, "finalizers": ["gardener"]},
    "spec": {
        "shootRef": {"name": "apollo"},
        "seedName": "aws-eu1",
        "providerType": "aws",
        "sshPublicKey": "ssh-ed25519 AAAA me",
        "ingress": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
    },
}
DELETING = {"metadata": {"deletionTimestamp": NOW}}
SUCCEEDED = {"lastOperation": {"type": "Create", "state": "Succeeded"}, "ingress": {"ip": "198.51.100.22"}}
WHERE = "Error while waiting for Bastion shoot--dev--apollo/door to become ready: "


def a_host(status: Document, **changes: Any) -> Document:
    return merged({"metadata": {"name": "door"}, "spec": bastion_object(BASTION).spec, "status": status}, changes)


def ready(status: Document) -> tuple[str, str, str]:
    (condition,) = status["conditions"]
    assert condition["type"] == "BastionReady"
    return condition["status"], condition["reason"], condition["message"]


def test_a_host_lets_the_owner_of_the_key_in_from_the_addresses_that_are_stated() -> None:
    wanted = bastion_object(BASTION)
    assert (wanted.namespace, wanted.name) == ("shoot--dev--apollo", "door")
    assert wanted.spec["type"] == "aws"
    assert wanted.spec["ingress"] == [{"ipBlock": {"cidr": "203.0.113.0/24"}}]
    script = base64.b64decode(wanted.spec["userData"]).decode()
    assert 'echo "ssh-ed25519 AAAA me" > /home/gardener/.ssh/authorized_keys' in script


def test_nothing_is_made_before_the_finalizer_is_there() -> None:
    plan = plan_bastion(merged(BASTION, {"metadata": {"finalizers": []}}), None, now=INSTANT)
    assert not plan.is_requested
    assert ready(plan.status)[:2] == ("Progressing", "Reconciling")


@pytest.mark.parametrize(
    ("live", "is_requested"),
    [
        (None, True),
        (a_host(SUCCEEDED, spec={"type": "gcp"}), True),
        (a_host({"lastOperation": {"state": "Failed"}}), True),
        (a_host({"lastOperation": {"state": "Error"}}), False),
        (a_host({"lastOperation": {"state": "Processing"}}), False),
        (a_host({}), False),
        (a_host(SUCCEEDED), False),
    ],
)
def test_a_host_is_requested_when_it_is_missing_another_or_failed(live: Document | None, *, is_requested: bool) -> None:
    assert plan_bastion(BASTION, live, now=INSTANT).is_requested == is_requested


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, "extension did not record a last operation yet"),
        ({"lastOperation": {"state": "Error"}}, "extension state is not Succeeded but Error"),
        (
            {"lastOperation": {"state": "Processing"}, "lastError": {"description": "No quota."}},
            "error during reconciliation: No quota.",
        ),
    ],
)
def test_an_error_is_reported_in_gardeners_words(status: Document, message: str) -> None:
    plan = plan_bastion(BASTION, a_host(status), now=INSTANT)
    assert ready(plan.status) == ("False", "FailedReconciling", WHERE + message)


def test_the_address_of_a_host_is_reported_once() -> None:
    plan = plan_bastion(BASTION, a_host(SUCCEEDED), now=INSTANT)
    assert ready(plan.status)[:2] == ("True", "SuccessfullyReconciled")
    assert plan.status["ingress"] == {"ip": "198.51.100.22"}
    assert plan.status["observedGeneration"] == 3
    again = plan_bastion(merged(BASTION, {"status": plan.status}), a_host(SUCCEEDED), now=INSTANT)
    assert again.status == {}


def test_a_bastion_goes_once_its_host_is_gone() -> None:
    going = merged(BASTION, DELETING)
    plan = plan_bastion(going, a_host(SUCCEEDED), now=INSTANT)
    assert plan.is_deleted
    assert ready(plan.status)[:2] == ("False", "DeletionInProgress")
    assert not plan_bastion(going, a_host(SUCCEEDED, **DELETING), now=INSTANT).is_deleted, "once is enough"
    assert ready(plan_bastion(going, None, now=INSTANT).status)[:2] == ("False", "Deleted")


def test_what_happens_is_said_of_the_bastion_alone() -> None:
    plan = plan_bastion(BASTION, a_host({"lastOperation": {"state": "Processing"}}), now=INSTANT)
    assert plan.status == {}
    assert section(BASTION, "status") == {}
