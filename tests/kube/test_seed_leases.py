"""A gardenlet's heartbeats through the Kubernetes API of a landscape: its Lease is one of those on the bus."""

import base64
import json
from pathlib import Path

import pytest

from tests.support.kubernetes_api import KubernetesApi

pytestmark = pytest.mark.slow
SEED, NAMESPACE = "far", "gardener-system-seed-lease"


def a_lease(renewed: str) -> str:
    spec = {"holderIdentity": "its-gardenlet", "leaseDurationSeconds": 2, "renewTime": renewed}
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return json.dumps({**head, "metadata": {"name": SEED, "namespace": NAMESPACE}, "spec": spec})


def test_a_gardenlet_renews_the_lease_of_its_seed_and_nobody_else_does(
    kubernetes_api: KubernetesApi, binaries: str
) -> None:
    file = kubernetes_api.place / "far.json"
    kubernetes_api.gardenbus("identity", "issue", "--seed", SEED, "--ttl", "1h", "-o", str(file))
    login = json.loads(file.read_text())
    token = base64.b64encode(f"{login['user']}:{login['password']}".encode()).decode()
    kubectl = str(Path(binaries) / "kubectl")
    as_gardenlet = (kubectl, "--token", token, "-n", NAMESPACE)

    rejected = kubernetes_api.run(kubectl, "create", "-f", "-", given=a_lease("2026-01-02T03:04:05.000000Z"))
    assert "renewed by its gardenlet alone" in rejected.stderr

    kubernetes_api.text(*as_gardenlet, "create", "-f", "-", given=a_lease("2026-01-02T03:04:05.000000Z"))
    renewed = '{"spec":{"renewTime":"2026-01-02T03:04:07.000000Z"}}'
    kubernetes_api.text(*as_gardenlet, "patch", "lease", SEED, "--type", "merge", "-p", renewed)

    assert "its-gardenlet" in kubernetes_api.gardenbus("get", "leases", "-n", NAMESPACE)
    read = kubernetes_api.text(*as_gardenlet, "get", "lease", SEED, "-o", "jsonpath={.spec.renewTime}")
    assert read == "2026-01-02T03:04:07.000000Z"
