"""Rules of kinds that controllers read, from Gardener's own cases: charts, states of shoots, Secrets, Gardenlets."""

import base64
import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate, validate_status, validate_status_update
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import timestamp
from tests.support.builders import CORE, a_project, a_seed, a_shoot
from tests.support.valid_manifests import BASTION

SEED_MANAGEMENT = "seedmanagement.gardener.cloud/v1alpha1"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHART = {"ref": "registry.example.org/charts/os-x:v1.0.0"}
CUSTOM = "migration.controllerdeployment.gardener.cloud/type"
SECRET_SITE: Document = {"name": "site", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "site"}}
OPERATION = "gardener.cloud/operation"


def fields_of(document: Document, old: Document | None = None) -> list[str]:
    """The fields at fault, each once."""
    try:
        validate(document, old)
    except InvalidResource as invalid:
        return list(dict.fromkeys(problem.field for problem in invalid.problems))
    return []


def a_deployment(*, name: str = "os-x", annotations: Any = None, **fields: Any) -> Document:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": metadata, **fields}


def helm(**fields: Any) -> Document:
    return {"ociRepository": CHART, **fields}


@pytest.mark.parametrize(
    ("deployment", "at_fault"),
    [
        (a_deployment(), []),
        (a_deployment(helm=helm()), []),
        (a_deployment(helm={"rawChart": "eA=="}), []),
        (a_deployment(helm={}), ["helm"]),
        (a_deployment(helm=helm(rawChart="eA==")), ["helm"]),
        (a_deployment(name="os.x", helm=helm()), ["metadata.name"]),
        (a_deployment(helm={"ociRepository": {}}), ["helm.ociRepository"]),
        (a_deployment(helm={"ociRepository": {**CHART, "tag": "v1"}}), ["helm.ociRepository.tag"]),
        (a_deployment(helm={"ociRepository": {**CHART, "digest": "sha256:0"}}), ["helm.ociRepository.digest"]),
        (a_deployment(helm={"ociRepository": {"repository": "a"}}), ["helm.ociRepository"]),
        (a_deployment(helm={"ociRepository": {"repository": "a", "tag": "v1"}}), []),
        (a_deployment(helm={"ociRepository": {"repository": "a", "digest": "0"}}), ["helm.ociRepository.digest"]),
        (a_deployment(helm={"ociRepository": {"tag": "v1"}}), ["helm.ociRepository"]),
        (a_deployment(annotations={CUSTOM: "own"}), []),
        (a_deployment(annotations={CUSTOM: "own"}, helm=helm()), [f"metadata.annotations[{CUSTOM}]"]),
        (a_deployment(helm=helm(values={"a": ["{{ .resources.site.data.key }}"]}), resources=[SECRET_SITE]), []),
        (
            a_deployment(helm=helm(values={"a": "{{.resources.other.data.key}}"}), resources=[SECRET_SITE]),
            ["helm.values"],
        ),
        (a_deployment(helm=helm(values={"a": "{{ .Values.x }}"})), ["helm.values"]),
        (a_deployment(helm=helm(values={"a": "x }} {{"})), ["helm.values"]),
        (a_deployment(resources=[{**SECRET_SITE, "name": "my-site"}]), ["resources[0].name"]),
        (a_deployment(resources=[SECRET_SITE, SECRET_SITE]), ["resources[1].name"]),
        (
            a_deployment(resources=[{**SECRET_SITE, "resourceRef": {**SECRET_SITE["resourceRef"], "kind": "Shoot"}}]),
            ["resources[0].resourceRef.kind"],
        ),
    ],
)
def test_a_deployment_names_its_chart_and_what_its_values_name(deployment: Document, at_fault: list[str]) -> None:
    assert fields_of(deployment) == at_fault
    if at_fault != ["metadata.name"]:
        assert fields_of(deployment, deployment) == []


def a_state(**spec: Any) -> Document:
    metadata = {"name": "apollo", "namespace": "garden-dev"}
    return {"apiVersion": CORE, "kind": "ShootState", "metadata": metadata, "spec": spec}


REFERENCE = {"apiVersion": "v1", "kind": "Secret", "name": "key"}


@pytest.mark.parametrize(
    ("state", "at_fault"),
    [
        (a_state(), []),
        (a_state(gardener=[{"name": "ca", "type": "secret"}], extensions=[{"kind": "Worker"}]), []),
        (a_state(gardener=[{"type": "secret"}]), ["spec.gardener[0].name"]),
        (a_state(extensions=[{"name": "apollo"}]), ["spec.extensions[0].kind"]),
        (a_state(extensions=[{"kind": "ControlPlane", "purpose": ""}]), ["spec.extensions[0].purpose"]),
        (
            a_state(extensions=[{"kind": "Worker", "resources": [{"resourceRef": REFERENCE}]}]),
            ["spec.extensions[0].resources[0].name"],
        ),
        (a_state(resources=[{**REFERENCE, "data": {}}]), []),
        (a_state(resources=[{"resourceRef": REFERENCE, "data": {}}]), []),
        (a_state(resources=[{**REFERENCE, "kind": "Shoot"}]), ["spec.resources[0].kind"]),
        (a_state(resources=[{"data": {}}]), [f"spec.resources[0].{field}" for field in ("apiVersion", "kind", "name")]),
    ],
)
def test_a_state_names_what_it_is_of(state: Document, at_fault: list[str]) -> None:
    assert fields_of(state) == at_fault
    assert fields_of(state, state) == []


def a_secret(
    kind: str, *, internal: bool, data: Mapping[str, bytes] | None = None, annotations: Any = None
) -> Document:
    metadata = {"name": "key", "namespace": "garden-dev", **({"annotations": annotations} if annotations else {})}
    version, name = (CORE, "InternalSecret") if internal else ("v1", "Secret")
    encoded = {key: base64.b64encode(value).decode() for key, value in (data or {}).items()}
    return {"apiVersion": version, "kind": name, "metadata": metadata, "type": kind, "data": encoded}


ACCOUNT = "kubernetes.io/service-account.name"


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize(
    ("kind", "data", "at_fault"),
    [
        ("Opaque", {"any": b"x"}, []),
        ("Opaque", {"a b": b"x"}, ["data[a b]"]),
        ("Opaque", {"big": b"x" * (1024 * 1024 + 1)}, ["data"]),
        ("kubernetes.io/tls", {"tls.crt": b""}, ["data[tls.key]"]),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": b""}, ["data[ssh-privatekey]"]),
        ("kubernetes.io/basic-auth", {"password": b""}, []),
        ("kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b'{"auths": {}}'}, []),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b"auths"}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]"]),
        ("kubernetes.io/service-account-token", {}, [f"metadata.annotations[{ACCOUNT}]"]),
        ("example.org/own", {}, []),
    ],
)
def test_a_secret_has_what_its_type_needs(
    kind: str, data: Mapping[str, bytes], at_fault: list[str], *, internal: bool
) -> None:
    secret = a_secret(kind, internal=internal, data=data)
    assert fields_of(secret) == at_fault
    assert fields_of(secret, secret) == []


@pytest.mark.parametrize("internal", [True, False])
def test_an_immutable_secret_stays_and_so_does_each_type(*, internal: bool) -> None:
    secret = a_secret("Opaque", internal=internal, data={"a": b"x"})
    frozen = {**secret, "immutable": True}
    assert fields_of(frozen, secret) == []
    assert fields_of(secret, frozen) == ["immutable"]
    assert fields_of({**frozen, "data": {}}, frozen) == ["data"]
    assert fields_of({**secret, "type": "example.org/own"}, secret) == ["type"]


def test_a_token_of_an_account_names_it() -> None:
    assert (
        fields_of(a_secret("kubernetes.io/service-account-token", internal=True, annotations={ACCOUNT: "robot"})) == []
    )


def a_gardenlet(**changes: Any) -> Document:
    deployment = {"helm": {"ociRepository": CHART}, **changes.pop("deployment", {})}
    return {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "Gardenlet",
        "metadata": {"name": "berlin", "namespace": "garden", **changes.pop("metadata", {})},
        "spec": {"deployment": deployment, **changes},
    }


def config(**fields: Any) -> Document:
    return {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", **fields}


@pytest.mark.parametrize(
    ("gardenlet", "at_fault"),
    [
        (a_gardenlet(), []),
        (a_gardenlet(metadata={"namespace": "garden-dev"}), ["metadata.namespace"]),
        (a_gardenlet(metadata={"name": "ber.lin"}), ["metadata.name"]),
        (a_gardenlet(metadata={"annotations": {OPERATION: "force-redeploy"}}), []),
        (a_gardenlet(metadata={"annotations": {OPERATION: "dance"}}), [f"metadata.annotations[{OPERATION}]"]),
        (a_gardenlet(deployment={"helm": {}}), ["spec.deployment.helm.ociRepository"]),
        (
            a_gardenlet(deployment={"helm": {"ociRepository": {"repository": "a"}}}),
            ["spec.deployment.helm.ociRepository"],
        ),
        (a_gardenlet(deployment={"replicaCount": -1}), ["spec.deployment.replicaCount"]),
        (a_gardenlet(deployment={"podLabels": {"a/b/c": "x"}}), ["spec.deployment.podLabels"]),
        (a_gardenlet(config={}), []),
        (a_gardenlet(config={**config(), "kind": "Shoot"}), ["spec.config.kind"]),
        (a_gardenlet(config=config()), []),
        (a_gardenlet(config=config(seedConfig={"metadata": {"name": "x"}})), ["spec.config.seedConfig.metadata.name"]),
        (
            a_gardenlet(config=config(seedConfig={"spec": {"settings": {"verticalPodAutoscaler": {"enabled": True}}}})),
            [],
        ),
        (
            a_gardenlet(config=config(gardenClientConnection={"kubeconfig": "/etc/kubeconfig"})),
            ["spec.config.gardenClientConnection.kubeconfig"],
        ),
    ],
)
def test_a_gardenlet_has_a_chart_and_a_configuration(gardenlet: Document, at_fault: list[str]) -> None:
    assert fields_of(gardenlet) == at_fault
    if at_fault != ["metadata.name"]:
        assert fields_of(gardenlet, gardenlet) == []


def test_a_gardenlet_keeps_what_shoots_on_its_seed_rely_on() -> None:
    def on(nodes: str) -> Document:
        return a_gardenlet(config=config(seedConfig={"spec": {"networks": {"nodes": nodes}}}))

    assert fields_of(on("10.9.0.0/16"), on("10.1.0.0/16")) == ["spec.config.seedConfig.spec.networks.nodes"]


@pytest.mark.parametrize(
    ("bootstrap", "merges", "connection", "at_fault"),
    [
        ("BootstrapToken", True, {"bootstrapKubeconfig": {"name": "a"}}, []),
        ("BootstrapToken", True, {"kubeconfig": "/a"}, ["kubeconfig"]),
        ("ServiceAccount", False, {"kubeconfig": "/a"}, ["kubeconfig"]),
        ("None", True, {}, []),
        ("None", False, {"acceptContentTypes": "x"}, ["kubeconfig"]),
        ("None", False, {"kubeconfig": "/a"}, []),
        (
            "None",
            True,
            {"bootstrapKubeconfig": {}, "kubeconfigSecret": {}},
            ["bootstrapKubeconfig", "kubeconfigSecret"],
        ),
    ],
)
def test_the_connection_of_a_gardenlet_goes_with_its_bootstrap(
    bootstrap: str, connection: Document, at_fault: list[str], *, merges: bool
) -> None:
    gardenlet = {
        "bootstrap": bootstrap,
        "mergeWithParent": merges,
        "config": config(gardenClientConnection=connection),
    }
    managed_seed: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "gardenlet": gardenlet},
    }
    below = "spec.gardenlet.config.gardenClientConnection."
    assert fields_of(managed_seed) == [f"{below}{field}" for field in at_fault]


def status_fields_of(document: Document, before: Document, after: Document, *, reported: bool = False) -> list[str]:
    """The fields at fault of a status that is changed."""
    old, new = ({**document, "status": status} for status in (before, after))
    try:
        if reported:
            validate_status(new, old)
        else:
            validate_status_update(new, old, NOW)
    except InvalidResource as invalid:
        return [problem.field for problem in invalid.problems]
    return []


@pytest.mark.parametrize(
    ("status", "at_fault"),
    [
        ({"networking": {"nodes": ["10.1.0.0/16"], "egressCIDRs": ["192.0.2.1/32"]}}, []),
        ({"networking": {"pods": ["10.1.0.1/16"]}}, ["status.networking.pods[0]"]),
        ({"networking": {"egressCIDRs": ["192.0.2.1"]}}, ["status.networking.egressCIDRs[0]"]),
        ({"advertisedAddresses": [{"name": "external", "url": "https://api.example.org:443"}]}, []),
        ({"advertisedAddresses": [{"url": "https://api.example.org"}]}, ["status.advertisedAddresses[0].name"]),
        (
            {"advertisedAddresses": [{"name": "a", "url": "https://a.example.org"}] * 2},
            ["status.advertisedAddresses[1].name"],
        ),
        *(
            ({"advertisedAddresses": [{"name": "a", "url": url}]}, ["status.advertisedAddresses[0].url"])
            for url in ("http://a", "https://", "https://me@a", "https://a#b", "https://a?b", "https://[a", "")
        ),
    ],
)
@pytest.mark.parametrize("reported", [True, False])
def test_a_shoot_reports_ranges_and_addresses(status: Document, at_fault: list[str], *, reported: bool) -> None:
    assert status_fields_of(a_shoot(), {}, status, reported=reported) == at_fault
    changed = {**copy.deepcopy(status), "observedGeneration": 2}
    assert status_fields_of(a_shoot(), status, changed, reported=reported) == [], "what is stored blocks no report"


@pytest.mark.parametrize(
    ("document", "before", "after", "at_fault"),
    [
        (a_shoot(), {}, {"technicalID": "shoot--dev--a"}, []),
        (a_shoot(), {"technicalID": "shoot--dev--a"}, {"technicalID": "shoot--dev--b"}, ["status.technicalID"]),
        (a_shoot(), {"uid": "1"}, {}, ["status.uid"]),
        (a_seed("berlin"), {}, {"clusterIdentity": "one"}, []),
        (a_seed("berlin"), {"clusterIdentity": "one"}, {"clusterIdentity": "two"}, ["status.clusterIdentity"]),
        (a_project("dev"), {"phase": "Pending"}, {"phase": "Ready"}, []),
        (a_project("dev"), {"phase": "Ready"}, {}, ["status.phase"]),
        (a_project("dev"), {}, {"observedGeneration": 1}, []),
    ],
)
def test_a_request_keeps_identities_and_phases(
    document: Document, before: Document, after: Document, at_fault: list[str]
) -> None:
    assert status_fields_of(document, before, after) == at_fault


def test_no_request_puts_the_heartbeat_of_a_bastion_into_the_future() -> None:
    late, early = ({"lastHeartbeatTimestamp": timestamp(NOW + timedelta(hours=hours))} for hours in (1, -1))
    assert status_fields_of(BASTION, {}, early) == []
    assert status_fields_of(BASTION, early, late) == ["status.lastHeartbeatTimestamp"]
    assert status_fields_of(BASTION, late, late) == [], "a clock that is behind is no request's problem"
