"""What is taken for plain at one look, the rules have nothing to say about."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.validation import shoot
from gardenbus.apiserver.domain.validation.fast_path import has_common_metadata, has_common_spec
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.apiserver.domain.validation.metadata import (
    check_labels,
    label_problem,
    qualified_name_problem,
)
from gardenbus.bench.manifests.shoots import shoot as shoot_of_bench
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import RESERVED_TAINT
from tests.support.builders import a_shoot

FULL = a_shoot(
    metadata={"labels": {"team": "a", "example.org/b": ""}, "annotations": {"example.org/c": "d"}},
    spec={
        "provider": {
            "type": "aws",
            "workers": [
                {
                    "name": "a",
                    "minimum": 1,
                    "maximum": 2,
                    "zones": ["x", "y"],
                    "machine": {"type": "large", "image": {"name": "linux", "version": "1.2.3"}},
                    "volume": {"type": "ssd", "size": "50Gi"},
                    "maxSurge": 1,
                    "maxUnavailable": 0,
                    "labels": {"example.org/purpose": "large"},
                    "taints": [{"key": "example.org/a", "value": "b", "effect": "NoSchedule"}],
                    "systemComponents": {"allow": True},
                    "kubernetes": {"kubelet": {"maxPods": 250}},
                },
                {
                    "name": "b",
                    "machine": {"type": "large"},
                    "zones": [],
                    "systemComponents": {"allow": False},
                    "maxSurge": 0,
                    "maxUnavailable": 1,
                },
            ],
        },
        "networking": {
            "type": "cilium",
            "nodes": "10.0.0.0/16",
            "pods": "10.1.0.0/16",
            "services": "fd00::/64",
            "ipFamilies": ["IPv4", "IPv6"],
        },
        "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
        "dns": {"domain": "a.example.org"},
        "seedSelector": {"matchLabels": {"ring": "1"}, "providerTypes": ["aws", "gcp"]},
        "tolerations": [{"key": "example.org/a", "value": "b"}, {"key": "c"}],
        "accessRestrictions": [{"name": "eu-access-only", "options": {"a": "b"}}, {"name": "other"}],
        "kubernetes": {
            "version": "1.34.2",
            "kubeAPIServer": {
                "requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200},
                "defaultNotReadyTolerationSeconds": 300,
                "defaultUnreachableTolerationSeconds": 300,
                "eventTTL": "1h0m0s",
            },
            "kubeControllerManager": {"nodeMonitorGracePeriod": "40s"},
            "kubeScheduler": {"profile": "balanced"},
            "kubeProxy": {"enabled": True, "mode": "IPTables"},
            "kubelet": {"failSwapOn": True, "maxPods": 110, "serializeImagePulls": False},
            "verticalPodAutoscaler": {"enabled": True, "updaterInterval": "1m0s", "recommenderInterval": "1m0s"},
        },
        "hibernation": {"enabled": False},
        "maintenance": {
            "confineSpecUpdateRollout": True,
            "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": False},
            "timeWindow": {"begin": "220000+0100", "end": "230000+0100"},
        },
        "purpose": "production",
        "schedulerName": "default-scheduler",
        "exposureClassName": "public",
        "cloudProfile": {"kind": "CloudProfile", "name": "aws"},
    },
)

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, "", "a", "b", "A", "a.b", "a/b", "a\n", "-a", "é", "a" * 64, "a" * 254, "x", "c", "IPv6",
        "10.0.0.0/8", "10.0.0.0", "::/0", "aws", "1", 0, 1, 3, -1, 1.0, 1.5, 2**31, 2**70, True, False, [], {},
        ["x"], ["x", "x"], "infrastructure", ["x", 1], [None], [""], [{}], ["IPv4", "IPv4"],
        {"a": 1}, {"": "a"}, {"a": None},
        {"type": None}, {"name": "a"}, [{"name": "a"}], [{"name": "a"}, {"name": "a"}],
        [{"key": "c"}, {"key": "c", "value": "d"}],
        {"a/b/c": "d"}, {"x" * 80: "d"}, {"A.example.org/b": "c"}, {"matchLabels": {"a": "b c"}},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"failureTolerance": {}}, {"kind": "", "name": "a"},
        "a--b", "10.0.0.1/16", {"gardener.cloud/operation": "foo"}, {"allow": False}, [{"key": "a", "effect": "No"}],
        {"maxPods": -1}, {"mode": "x"}, {"requests": {"maxMutatingInflight": -1}}, {"main": {"autoscaling": {}}},
        {"updaterInterval": "-1s"}, {"enabled": True}, {"kubernetesDashboard": {"enabled": True}}, {"name": "docker"},
        {"machineDrainTimeout": "-1s"}, {"alerting": {"emailReceivers": ["x"]}}, {"nodeMonitorGracePeriod": "0s"},
        {"credentials": {"sshKeypair": {"rotationPeriod": "1s"}}}, 16, 64, 5001, 2501, "25h", "0s", "24h", "9999h",
        {"key": RESERVED_TAINT, "effect": "NoSchedule"}, [{"key": "a", "effect": "NoExecute"}] * 2, ["IPv6"],
        {"memorySwap": {}}, {"NodeSwap": True}, "NFTables", "bin-packing", "NoExecute",
        "220000+0100", "221000+0100", "250000+0100", {"begin": "220000+0100"}, {"schedules": [{"start": "0 8 * * *"}]},
    ]
)  # fmt: skip

NEW_FIELDS = (
    "seedName", "cloudProfileName", "finalizers", "ownerReferences", "uid", "resourceVersion", "generateName",
    "creationTimestamp", "deletionTimestamp", "status", "controlPlane", "matchExpressions", "namespace", "value",
    "maxSurge", "maxUnavailable", "taints", "dataVolumes", "systemComponents", "updateStrategy", "clusterAutoscaler",
    "zones", "kubelet", "kubeAPIServer", "kubeControllerManager", "kubeProxy", "etcd", "verticalPodAutoscaler",
    "addons", "cri", "priority", "sysctls", "machineControllerManager", "architecture", "autoRotation", "monitoring",
    "requests", "eventTTL", "apiAudiences", "workers", "nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv6", "kubeMaxPDVols",
    "memorySwap", "featureGates", "maxParallelImagePulls", "evictionHard", "allow", "effect",
)  # fmt: skip


def _below(container: Any) -> list[Any]:
    return [*container.values()] if isinstance(container, dict) else [*container]  # pyright: ignore[reportUnknownArgumentType]


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for one in _below(value):
            yield from _containers(one)


@st.composite
def shoots(draw: st.DrawFn) -> Document:
    """A shoot with everything in it, and a few things changed."""
    document = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(0, 3))):
        container: Any = draw(st.sampled_from([one for one in _containers(document) if one]))
        is_mapping = isinstance(container, dict)
        fields: list[Any] = sorted({*container, *NEW_FIELDS}) if is_mapping else [*range(len(container))]
        field: Any = draw(st.sampled_from(fields))
        if is_mapping and field in container and draw(st.booleans()):
            del container[field]
        elif is_mapping and draw(st.integers(0, 9)) == 0:
            container[draw(st.sampled_from(["é", "a/b/c", "-a", "", "a" * 70, "a\n"]))] = "a"
        else:
            container[field] = copy.deepcopy(draw(VALUES))
    return document


@given(shoots())
@settings(max_examples=1_500)
def test_no_rule_speaks_against_what_is_plain(document: Document) -> None:
    metadata: Any = document.get("metadata")
    if not metadata or isinstance(metadata, str | int | float | list):
        return
    if has_common_metadata(metadata):
        assert _faults_of_metadata(metadata) == ()
    if has_common_spec(document):
        event("plain")
        errors = FieldErrors()
        shoot.check(FieldCursor.root(document, errors), None)
        assert errors.problems == ()


def test_a_shoot_with_everything_in_it_is_plain() -> None:
    assert has_common_metadata(FULL["metadata"])
    assert has_common_spec(FULL)


@pytest.mark.parametrize("families", [None, [], ["IPv4"]])
def test_a_mask_of_nodes_is_plain_where_the_shoot_has_ipv4_alone(families: list[str] | None) -> None:
    document = copy.deepcopy(FULL)
    document["spec"]["networking"] = {"type": "calico", "ipFamilies": families}
    document["spec"]["kubernetes"]["kubeControllerManager"]["nodeCIDRMaskSize"] = 24
    assert has_common_spec(document)
    document["spec"]["networking"] = {"type": "calico", "ipFamilies": ["IPv6"]}
    assert not has_common_spec(document)


@pytest.mark.parametrize(
    "document", [a_shoot(), *(shoot_of_bench(f"s{number}", number, "mixed") for number in range(20))]
)
def test_a_shoot_is_plain_with_its_defaults(document: Document) -> None:
    assert has_common_spec(with_creation_defaults(with_defaults(document)))


def _faults_of_metadata(metadata: Document) -> tuple[Any, ...]:
    """What the rules say, asked one by one: as a whole they look whether it is plain themselves."""
    errors = FieldErrors()
    place = FieldCursor(metadata, "metadata", errors)
    check_labels(place, "labels")
    for field in ("finalizers", "ownerReferences"):
        assert not place.has(field)
    for field in ("uid", "resourceVersion", "generateName", "creationTimestamp", "deletionTimestamp"):
        place.text(field)
    for key in place.text_map("annotations"):
        assert not qualified_name_problem(key)
    for field in ("name", "namespace"):
        assert not label_problem(metadata[field])
    return errors.problems
