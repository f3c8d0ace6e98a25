"""ShootValidator and ShootMutator: Gardener's own cases (`plugin/pkg/shoot/validator/admission_test.go`) as tables."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.maintenance_windows import NEEDS_RETRY
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit, mutate
from tests.support.builders import CORE, a_cloudprofile, a_project, a_shoot, merged

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ALLOWED: set[str] = set()
PAST, FUTURE = "2026-05-01T00:00:00Z", "2026-07-01T00:00:00Z"
OFFER: Document = {
    "kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.33.5", "expirationDate": PAST}]},
    "regions": [
        {
            "name": "eu-west-1",
            "zones": [
                {"name": "eu-west-1a"},
                {"name": "eu-west-1b", "unavailableMachineTypes": ["gpu"], "unavailableVolumeTypes": ["fast"]},
            ],
        }
    ],
    "machineTypes": [
        {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"},
        {"name": "gpu", "cpu": "8", "gpu": "1", "memory": "32Gi"},
        {"name": "disk", "cpu": "2", "gpu": "0", "memory": "8Gi", "storage": {"type": "gp3", "minSize": "30Gi"}},
    ],
    "volumeTypes": [{"name": "gp3", "minSize": "10Gi"}, {"name": "fast"}],
    "machineImages": [
        {
            "name": "gardenlinux",
            "versions": [
                {"version": "1.0.0", "expirationDate": PAST},
                {"version": "2.0.0", "expirationDate": FUTURE},
                {"version": "3.0.0", "expirationDate": PAST},
                {"version": "4.0.0"},
                {"version": "4.1.0", "kubeletVersionConstraint": "< 1.34"},
                {"version": "4.2.0", "cri": [{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}]},
            ],
        },
        {"name": "other", "versions": [{"version": "4.0.0"}]},
    ],
}
CRI: Document = {"cri": {"name": "containerd", "containerRuntimes": [{"type": "kata"}]}}


def image(version: str, name: str = "gardenlinux") -> Document:
    return {"machine": {"image": {"name": name, "version": version}}}


def a_pool(name: str = "pool-a", **changes: Any) -> Document:
    pool: Document = {"name": name, "zones": ["eu-west-1a"], "maximum": 1, **image("4.0.0")}
    return merged(merged(pool, {"machine": {"type": "m5.large"}}), changes)


def shoot_of(*pools: Document, **spec: Any) -> Document:
    return a_shoot(spec={"provider": {"workers": list(pools)}, **spec})


def facts(*others: Document) -> RelatedObjects:
    documents = (a_cloudprofile(spec=OFFER, metadata={"uid": "u", "resourceVersion": "1"}), *others)
    return RelatedObjects(
        objects={
            ObjectKey(each["kind"].lower(), each["metadata"].get("namespace") or "", each["metadata"]["name"]): each
            for each in documents
        },
        projects={"garden-dev": a_project()},
    )


def problems_of(shoot: Document, old: Document | None = None, *others: Document) -> dict[str, str]:
    try:
        admit(shoot, old, facts(*others), user="ann", now=NOW)
    except InvalidResource as error:
        return {each.field.removeprefix("spec.provider.workers[0]."): each.message for each in error.problems}
    return {}


@pytest.mark.parametrize(
    ("pool", "spec", "rejected"),
    [
        ({}, {}, ALLOWED),
        ({"zones": ["eu-west-1b"]}, {}, ALLOWED),
        ({"zones": ["eu-west-1b"], "machine": {"type": "gpu"}}, {}, {"machine.type"}),
        ({"zones": ["eu-west-1a"], "machine": {"type": "gpu"}}, {}, ALLOWED),
        ({"zones": ["eu-west-1a", "eu-west-1b"], "volume": {"type": "fast", "size": "5Gi"}}, {}, {"volume.type"}),
        ({"volume": {"type": "gp3", "size": "9Gi"}}, {}, {"volume.size"}),
        ({"volume": {"type": "gp3", "size": "10Gi"}}, {}, ALLOWED),
        ({"machine": {"type": "disk"}, "volume": {"type": "gp3", "size": "20Gi"}}, {}, {"volume.size"}),
        ({"machine": {"type": "disk"}, "volume": {"type": "fast", "size": "20Gi"}}, {}, ALLOWED),
        (image("4.1.0"), {}, {"machine.image"}),
        ({**image("4.1.0"), "kubernetes": {"version": "1.33.5"}}, {}, {"kubernetes.version"}),
        ({**image("4.2.0"), "cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}}, {}, ALLOWED),
        ({**image("4.2.0"), **CRI}, {}, {"cri.containerRuntimes[0].type"}),
        (CRI, {}, {"cri.containerRuntimes[0].type"}),
        ({"cri": {"name": "docker"}}, {}, {"cri.name"}),
        ({"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "1900m", "memory": "1Gi"}}}}, {}, ALLOWED),
        (
            {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "1"}, "systemReserved": {"cpu": "1"}}}},
            {},
            {"kubernetes.kubelet"},
        ),
        ({}, {"kubernetes": {"kubelet": {"kubeReserved": {"memory": "8Gi"}}}}, {"machine.type"}),
        (image("3.0.0"), {}, {"machine.image.version"}),
        (image("2.0.0"), {}, ALLOWED),
        ({}, {"kubernetes": {"version": "1.33.5"}}, {"spec.kubernetes.version"}),
    ],
)
def test_a_new_shoot_takes_what_the_profile_allows(pool: Document, spec: Document, rejected: set[str]) -> None:
    assert set(problems_of(shoot_of(a_pool(**pool), **spec))) == rejected


@pytest.mark.parametrize(
    ("before", "after", "rejected"),
    [
        (image("2.0.0"), image("3.0.0"), ALLOWED),  # forced updates go by way of versions that have expired
        (image("2.0.0"), image("1.0.0"), {"machine.image.version"}),
        ({}, image("3.0.0"), {"machine.image.version"}),
        ({}, {**image("3.0.0"), "name": "pool-b"}, {"machine.image.version"}),
        ({"kubernetes": {"version": "1.32.9"}}, {"kubernetes": {"version": "1.33.5"}}, ALLOWED),
        ({"volume": {"type": "gp3", "size": "5Gi"}}, {"volume": {"type": "gp3", "size": "5Gi"}, "maximum": 9}, ALLOWED),
        ({"volume": {"type": "gp3", "size": "5Gi"}}, {"volume": {"type": "gp3", "size": "6Gi"}}, {"volume.size"}),
        ({"machine": {"type": "gpu"}}, {"machine": {"type": "gpu"}, "zones": ["eu-west-1b"]}, {"machine.type"}),
    ],
)
def test_what_a_pool_has_may_stay_and_what_is_new_must_be_allowed(
    before: Document, after: Document, rejected: set[str]
) -> None:
    old, new = (shoot_of(a_pool(**pool)) for pool in (before, after))
    assert {field for field, reason in problems_of(new, old).items() if "5Gi" not in reason} == rejected


@pytest.mark.parametrize(
    ("before", "after", "rejected"),
    [("1.32.9", "1.33.5", ALLOWED), ("1.33.5", "1.34.0", {"spec.kubernetes.version"})],
)
def test_a_cluster_may_be_updated_to_a_version_that_has_expired(before: str, after: str, rejected: set[str]) -> None:
    old, new = (shoot_of(a_pool(), kubernetes={"version": version}) for version in (before, after))
    assert set(problems_of(new, old)) == rejected


@pytest.mark.parametrize(
    ("pools", "rejected"),
    [
        ([{"minimum": 2, "maximum": 5}], ALLOWED),
        ([{"minimum": 2, "maximum": 6}], ALLOWED),
        ([{"minimum": 6, "maximum": 6}], {"spec.provider.workers"}),
        ([{"minimum": 3, "maximum": 5}, {"name": "pool-b", "minimum": 2, "maximum": 5}], ALLOWED),
        ([{"minimum": 3, "maximum": 5}, {"name": "pool-b", "minimum": 3, "maximum": 5}], {"spec.provider.workers"}),
    ],
)
def test_a_shoot_has_no_more_nodes_than_the_limit_of_the_profile(pools: list[Document], rejected: set[str]) -> None:
    shoot = shoot_of(*(a_pool(**pool) for pool in pools))
    limited = a_cloudprofile(
        spec={**OFFER, "limits": {"maxNodesTotal": 5}}, metadata={"uid": "l", "resourceVersion": "1"}
    )
    assert set(problems_of(shoot, None, limited)) == rejected
    assert problems_of(shoot, shoot, limited) == {}


@pytest.mark.parametrize(
    ("had", "given", "expected"),
    [
        ({"name": "gardenlinux", "version": "2.0.0"}, None, {"name": "gardenlinux", "version": "2.0.0"}),
        (
            {"name": "gardenlinux", "version": "2.0.0"},
            {"name": "gardenlinux"},
            {"name": "gardenlinux", "version": "2.0.0"},
        ),
        ({"name": "other", "version": "3.9.9"}, {"name": "gardenlinux"}, {"name": "gardenlinux", "version": "4.2.0"}),
        (None, {"name": "other"}, {"name": "other", "version": "4.0.0"}),
        (None, None, {"name": "gardenlinux", "version": "4.2.0"}),
        (None, {"name": "unknown"}, {"name": "unknown"}),
    ],
)
def test_a_pool_keeps_its_image_until_another_is_named(
    had: Document | None, given: Document | None, expected: Document
) -> None:
    pool: Document = {"name": "pool-a", "machine": {"type": "m5.large"}}
    old = None if had is None else shoot_of({**pool, "machine": {**pool["machine"], "image": had}})
    new = shoot_of(pool if given is None else {**pool, "machine": {**pool["machine"], "image": given}})
    mutated = mutate(new, old, facts(), user="ann", now=NOW).document
    assert mutated["spec"]["provider"]["workers"][0]["machine"]["image"] == expected


@pytest.mark.parametrize(
    ("pool", "version"),
    [
        ({}, "4.2.0"),
        ({"kubernetes": {"version": "1.33.5"}}, "4.2.0"),
        ({"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}}, "4.2.0"),
    ],
)
def test_the_newest_image_is_one_that_runs_with_kubelet_and_runtime_of_the_pool(pool: Document, version: str) -> None:
    open_pool: Document = {"name": "pool-a", "machine": {"type": "m5.large"}, **pool}
    mutated = mutate(shoot_of(open_pool), None, facts(), user="ann", now=NOW).document
    assert section(mutated["spec"]["provider"]["workers"][0], "machine", "image").get("version") == version


def test_a_pool_that_no_image_runs_on_must_name_one() -> None:
    pool: Document = {"name": "pool-a", "machine": {"type": "m5.large"}, "cri": {"name": "docker"}}
    with pytest.raises(InvalidResource, match=r"workers\[0\]\.machine\.image: is not stated, .* no image that runs"):
        mutate(shoot_of(pool), None, facts(), user="ann", now=NOW)


def test_an_image_for_older_kubelets_is_not_the_newest_for_a_newer_one() -> None:
    listed = [{"version": "1.0.0"}, {"version": "2.0.0", "kubeletVersionConstraint": "< 1.34"}]
    limited = a_cloudprofile(spec={**OFFER, "machineImages": [{"name": "gardenlinux", "versions": listed}]})
    mutated = mutate(shoot_of({"name": "pool-a", "machine": {}}), None, facts(limited), user="ann", now=NOW).document
    assert mutated["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] == "1.0.0"


@pytest.mark.parametrize(
    ("provider", "rejected"),
    [
        ({"type": "aws"}, ALLOWED),
        ({"type": "gcp, aws"}, ALLOWED),
        ({"type": "gcp"}, {"spec.secretBindingName"}),
        ({}, ALLOWED),
    ],
)
def test_a_binding_is_for_the_provider_of_the_shoot(provider: Document, rejected: set[str]) -> None:
    binding: Document = {"apiVersion": CORE, "kind": "SecretBinding", "provider": provider}
    binding["metadata"] = {"name": "key", "namespace": "garden-dev"}
    assert set(problems_of(shoot_of(a_pool(), secretBindingName="key"), None, binding)) == rejected


@pytest.mark.parametrize(
    ("constraints", "before", "after", "is_rejected"),
    [
        ([{"type": "HibernationPossible", "status": "False", "message": "webhook"}], False, True, True),
        ([{"type": "HibernationPossible", "status": "False", "message": "webhook"}], True, True, False),
        ([{"type": "HibernationPossible", "status": "False", "message": "webhook"}], True, False, False),
        ([{"type": "HibernationPossible", "status": "True", "message": ""}], False, True, False),
        ([{"type": "Other", "status": "False", "message": ""}], None, True, False),
        (None, None, True, False),
    ],
)
def test_a_cluster_is_put_to_sleep_only_where_it_can_wake_up(
    constraints: list[Document] | None, before: bool | None, after: bool, is_rejected: bool
) -> None:
    old, new = (
        shoot_of(a_pool(), hibernation={"enabled": enabled}) | {"status": {"constraints": constraints}}
        for enabled in (before, after)
    )
    if is_rejected:
        with pytest.raises(Forbidden, match="HibernationPossible is False: webhook"):
            admit(new, old, facts(), user="ann", now=NOW)
    else:
        admit(new, old, facts(), user="ann", now=NOW)


@pytest.mark.parametrize(
    ("state", "is_confined", "is_changed", "is_noted"),
    [
        ("Failed", True, True, True),
        ("Failed", False, True, False),
        ("Failed", True, False, False),
        ("Succeeded", True, True, False),
    ],
)
def test_a_failed_shoot_whose_change_waits_for_its_window_is_tried_again_there(
    state: str, is_confined: bool, is_changed: bool, is_noted: bool
) -> None:
    status = {"seedName": "seed-a", "lastOperation": {"type": "Reconcile", "state": state}}
    maintenance = {"confineSpecUpdateRollout": is_confined}
    old = with_defaults(shoot_of(a_pool(), maintenance=maintenance, seedName="seed-a")) | {"status": status}
    new = merged(old, {"spec": {"purpose": "production"}} if is_changed else {})
    mutated = mutate(new, old, facts(), user="ann", now=NOW).document
    assert section(mutated, "metadata", "annotations").get(NEEDS_RETRY) == ("true" if is_noted else None)


@pytest.mark.parametrize(
    ("networking", "rejected"),
    [
        ({"nodes": "10.0.0.0/16", "pods": "10.0.0.0/24"}, {"spec.networking.pods"}),
        ({"nodes": "100.64.0.0/16"}, {"spec.networking.services"}),
        ({"pods": None, "services": None}, ALLOWED),
        ({"pods": "100.64.0.0/12"}, {"spec.networking.services"}),
    ],
)
def test_the_networks_of_a_shoot_are_disjoint(networking: Document, rejected: set[str]) -> None:
    shoot = a_shoot()
    shoot["spec"]["networking"] |= networking
    assert invalid_fields(shoot) == rejected


@pytest.mark.parametrize(
    ("resources", "is_rejected"),
    [
        ([{"name": "kubeconfig", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "key"}}], False),
        ([{"name": "kubeconfig", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "key"}}], True),
        (None, True),
    ],
)
def test_the_kubeconfig_of_an_admission_plugin_stands_in_the_resources_too(resources: Any, is_rejected: bool) -> None:
    server = {"admissionPlugins": [{"name": "ImagePolicyWebhook", "kubeconfigSecretName": "key"}]}
    shoot = a_shoot(spec={"resources": resources, "kubernetes": {"kubeAPIServer": server}})
    path = "spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName"
    assert invalid_fields(shoot) == ({path} if is_rejected else ALLOWED)
    validate(shoot, shoot)


def invalid_fields(shoot: Document) -> set[str]:
    try:
        validate(shoot, None)
    except InvalidResource as error:
        return {problem.field for problem in error.problems}
    return ALLOWED
