"""Python's clients of Kubernetes on the Kubernetes API of a landscape: the programs of examples/kubernetes-clients."""

import sys
from importlib.util import find_spec

import pytest

from tests.support.eventually import eventually
from tests.support.kubernetes_api import EXAMPLES, KubernetesApi, missing

pytestmark = pytest.mark.slow
WITHIN = 90.0


def need(module: str) -> None:
    if find_spec(module) is None:
        missing(f"there is no {module}: `make test-kube` installs it")


def session(kubernetes_api: KubernetesApi, client: str) -> dict[str, str]:
    """Run a program with the manifest of a Shoot; what it prints, by the words before the colon."""
    need(client)
    program, manifest = str(EXAMPLES / f"with_{client}.py"), kubernetes_api.shoot_file(f"by-{client[:6]}")
    printed = kubernetes_api.text(sys.executable, program, manifest)
    return {name: text for name, _, text in (line.partition(": ") for line in printed.splitlines())}


def test_kubernetes_orders_a_shoot_and_follows_it_to_its_end(kubernetes_api: KubernetesApi) -> None:
    printed = session(kubernetes_api, "kubernetes")
    assert "aws-cork" in printed["seeds"].split()
    assert printed["created again"] == "409 AlreadyExists"
    assert printed["placed on"].startswith("aws-")
    assert printed["of the team"] == "by-kubern"
    assert printed["notes"] == "{'shoot': 'by-kubern', 'by': 'kubernetes'}"
    assert printed["deleted unconfirmed"] == "403 Forbidden"
    assert printed["gone"] == "by-kubern"


def test_lightkube_applies_a_shoot_and_follows_it_to_its_end(kubernetes_api: KubernetesApi) -> None:
    printed = session(kubernetes_api, "lightkube")
    assert "aws-cork" in printed["seeds"].split()
    assert printed["placed on"].startswith("aws-")
    assert printed["labels"] == "orbit"
    assert printed["notes"] == "{'a': '1'}"
    assert printed["keys"] == "{'key': 'dmFsdWU='}"
    assert printed["missing"] == "NotFound"
    assert printed["gone"] == "by-lightk"


def test_kr8s_orders_a_shoot_and_follows_it_to_its_end(kubernetes_api: KubernetesApi) -> None:
    printed = session(kubernetes_api, "kr8s")
    assert printed["version"].startswith("v1.")
    assert "aws-cork" in printed["seeds"].split()
    assert printed["placed on"].startswith("aws-")
    assert printed["of the team"] == "by-kr8s"
    assert printed["labels"] == "apollo"
    assert printed["notes"] == "True {'a': '1'}"
    assert printed["gone"] == "by-kr8s True"


async def test_an_operator_of_kopf_keeps_notes_of_shoots_until_they_are_gone(kubernetes_api: KubernetesApi) -> None:
    need("kopf")
    manifest = kubernetes_api.shoot_file("noted")
    operator = str(EXAMPLES / "operator_with_kopf.py")
    gardenbus = kubernetes_api.gardenbus
    async with kubernetes_api.running(sys.executable, "-m", "kopf", "run", "--namespace", "garden-dev", operator):
        gardenbus("apply", "-f", manifest)
        gardenbus("label", "shoot", "noted", "-n", "garden-dev", "noted=yes")
        gardenbus("patch", "shoot", "noted", "-n", "garden-dev", "-p", '{"spec":{"purpose":"evaluation"}}')

        async def purpose(wanted: str) -> None:
            assert kubernetes_api.has("configmap", "notes-noted")
            assert kubernetes_api.object("configmap", "notes-noted")["data"]["purpose"] == wanted

        await eventually(lambda: purpose("evaluation"), within=WITHIN, every=0.5)
        assert "notes.example.org/finalizer" in kubernetes_api.object("shoot", "noted")["metadata"]["finalizers"]
        gardenbus("patch", "shoot", "noted", "-n", "garden-dev", "-p", '{"spec":{"purpose":"development"}}')
        await eventually(lambda: purpose("development"), within=WITHIN, every=0.5)

        async def is_noted_in_an_event() -> None:
            assert "notes of noted were written" in gardenbus("events", "shoot/noted", "-n", "garden-dev")

        await eventually(is_noted_in_an_event, within=WITHIN, every=0.5)
        gardenbus("delete", "shoot", "noted", "-n", "garden-dev", "--confirm", "--wait=false")

        async def gone() -> None:
            assert not kubernetes_api.has("configmap", "notes-noted")
            assert not kubernetes_api.has("shoot", "noted")

        await eventually(gone, within=WITHIN, every=0.5)
