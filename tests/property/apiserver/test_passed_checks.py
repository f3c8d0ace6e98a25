"""Checks of parts of a spec that passed before are left out, and no problem with them."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.apiserver.domain.validation.manifest import problems_of_new
from gardenbus.apiserver.domain.validation.passed_checks import (
    LONGEST_TEXT,
    MOST_CHECKS,
    PartCheck,
    PassedChecks,
    field_texts,
)
from gardenbus.apiserver.domain.validation.shoot import CHECKS_OF_CHANGES, CHECKS_OF_SPECS
from gardenbus.bench.manifests.shoots import shoot as shoot_of_bench
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import RESERVED_TAINT
from gardenbus.common.errors import FieldProblem
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
@settings(max_examples=500)
def test_a_check_reads_the_fields_of_its_row_alone(document: Document) -> None:
    spec = section(document, "spec")
    for fields, check in CHECKS:
        part = {field: value for field, value in spec.items() if field in fields}
        assert _problems(check, part) == _problems(check, spec)


@given(st.lists(shoots(), min_size=1, max_size=6), st.booleans())
@settings(max_examples=300)
def test_problems_are_the_same_after_other_specs(documents: Sequence[Document], are_updates: bool) -> None:
    passed = PassedChecks()
    for document in (FULL, *documents, *documents):
        spec, before = section(document, "spec"), section(FULL, "spec") if are_updates else {}
        assert _problems_of_all(passed, spec, before) == _problems_of_all(PassedChecks(), spec, before)
        passed.run(CHECKS, cursor := _cursor(spec), field_texts(cursor), {})


def test_a_check_that_passed_is_not_run_again() -> None:
    passed, runs = PassedChecks(), [0]

    def check(spec: FieldCursor) -> None:
        runs[0] += 1
        spec.text("region", required=True)

    def problems(spec: Document, before: Document) -> int:
        cursor = _cursor(spec)
        passed.run((PartCheck(("region",), check),), cursor, field_texts(cursor), before)
        return len(cursor.errors)

    assert [problems({"region": "a"}, {}), problems({"region": "a", "purpose": "testing"}, {})] == [0, 0]
    assert runs == [1]
    assert [problems({"region": 1}, {}), problems({"region": 1}, {})] == [1, 1]
    assert problems({"region": 2}, {"region": 2}) == 0
    assert problems({"region": 2}, {}) == 1
    longest = {"region": "a" * LONGEST_TEXT}
    runs[0] = 0
    assert [problems(longest, {}), problems(longest, {})] == [0, 0]
    assert runs == [2]


def test_no_more_checks_are_kept_than_are_allowed() -> None:
    passed, runs = PassedChecks(), [0]

    def check(_spec: FieldCursor) -> None:
        runs[0] += 1

    def run(number: int) -> None:
        cursor = _cursor({"region": str(number)})
        passed.run((PartCheck(("region",), check),), cursor, field_texts(cursor), {})

    for number in range(MOST_CHECKS + 1):
        run(number)
    run(MOST_CHECKS)
    assert runs == [MOST_CHECKS + 1]
    run(0)
    assert runs == [MOST_CHECKS + 2]


@pytest.mark.parametrize(
    "document", [FULL, a_shoot(), *(shoot_of_bench(f"s{number}", number, "mixed") for number in range(20))]
)
def test_a_new_shoot_passes_with_its_defaults(document: Document) -> None:
    document = with_creation_defaults(with_defaults(document))
    for _ in range(2):
        assert problems_of_new(document) == ()


CHECKS = (*CHECKS_OF_SPECS, *CHECKS_OF_CHANGES)


def _cursor(spec: Document) -> FieldCursor:
    return FieldCursor(spec, "spec", FieldErrors())


def _problems(check: Callable[[FieldCursor], None], spec: Document) -> Sequence[FieldProblem]:
    check(cursor := _cursor(spec))
    return cursor.errors.problems


def _problems_of_all(passed: PassedChecks, spec: Document, before: Document) -> Sequence[FieldProblem]:
    passed.run(CHECKS, cursor := _cursor(spec), field_texts(cursor), before)
    return cursor.errors.problems
