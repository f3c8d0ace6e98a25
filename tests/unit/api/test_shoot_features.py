"""Feature gates and admission plug-ins by version, and what a placed shoot keeps of its network, DNS and pools."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.kubernetes_features import admission_plugins, feature_gates
from tests.support.builders import a_cloudprofile, a_shoot, merged
from tests.unit.api.test_rules_by_kind import fields_of

COMPONENTS = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")


def a_cluster(version: str = "1.34.1", **kubernetes: Any) -> Document:
    return a_shoot(spec={"kubernetes": {"version": version, **kubernetes}})


def plugins(*listed: Document) -> Document:
    return a_cluster(kubeAPIServer={"admissionPlugins": list(listed)})


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize(
    ("name", "value", "version", "is_accepted"),
    [
        ("NoSuchGate", True, "1.34.1", False),
        ("AllAlpha", True, "1.34.1", True),
        ("BtreeWatchCache", False, "1.32.7", True),
        ("BtreeWatchCache", False, "1.31.7", False),
        ("BtreeWatchCache", False, "1.33.1", False),
        ("BtreeWatchCache", True, "1.33.1", True),
        ("AppArmor", True, "1.32.0", True),
        ("AppArmor", True, "1.33.0", False),
        ("AllAlpha", "yes", "1.34.1", False),
    ],
)
def test_a_feature_gate_is_one_of_the_version(
    component: str, name: str, value: object, version: str, *, is_accepted: bool
) -> None:
    found = fields_of(a_cluster(version, **{component: {"featureGates": {name: value}}}))
    assert found == ([] if is_accepted else [f"spec.kubernetes.{component}.featureGates.{name}"])


def test_a_pool_has_the_gates_of_its_own_version() -> None:
    shoot = a_cluster("1.33.1")
    (pool,) = shoot["spec"]["provider"]["workers"]
    pool["kubernetes"] = {"version": "1.32.7", "kubelet": {"featureGates": {"BtreeWatchCache": False}}}
    assert fields_of(shoot) == []
    del pool["kubernetes"]["version"]
    assert fields_of(shoot) == ["spec.provider.workers[0].kubernetes.kubelet.featureGates.BtreeWatchCache"]


@pytest.mark.parametrize(
    ("plugin", "field"),
    [
        ({"name": "NoSuchPlugin"}, "name"),
        ({}, "name"),
        ({"name": "JobValidation"}, "name"),
        ({"name": "MutatingAdmissionWebhook", "disabled": True}, "disabled"),
        ({"name": "NodeRestriction", "disabled": True}, "disabled"),
        ({"name": "AlwaysAdmit", "config": {"a": "b"}}, "config"),
        ({"name": "EventRateLimit", "config": {"a": "b"}}, ""),
        ({"name": "ServiceAccount", "disabled": True}, ""),
    ],
)
def test_an_admission_plugin_is_one_of_the_version_and_may_be_what_it_is(plugin: Document, field: str) -> None:
    path = f"spec.kubernetes.kubeAPIServer.admissionPlugins[0].{field}"
    assert fields_of(plugins(plugin)) == ([path] if field else [])


def test_what_was_stored_before_the_rules_is_in_the_way_of_no_other_change() -> None:
    old = merged(
        plugins({"name": "NoSuchPlugin"}), {"spec": {"kubernetes": {"kubelet": {"featureGates": {"X": True}}}}}
    )
    assert fields_of(merged(old, {"spec": {"kubernetes": {"kubelet": {"maxPods": 99}}}}), old) == []


def test_the_tables_have_what_gardener_lists() -> None:
    assert len(feature_gates()) > 300
    assert len(admission_plugins()) == 42
    assert feature_gates()["AllBeta"].added == (1, 17)


def test_a_shoot_with_workers_has_a_type_of_network() -> None:
    assert fields_of(a_shoot(spec={"networking": {"type": None}})) == ["spec.networking.type"]
    assert fields_of(a_shoot(spec={"networking": None})) == ["spec.networking.type"]
    assert fields_of(a_shoot(spec={"networking": None, "provider": {"workers": []}})) == []


def pools(*listed: Document) -> Document:
    shoot = a_shoot()
    (pool,) = shoot["spec"]["provider"]["workers"]
    shoot["spec"]["provider"]["workers"] = [{**pool, "name": f"pool-{at}", **one} for at, one in enumerate(listed)]
    return shoot


@pytest.mark.parametrize(
    ("listed", "fields"),
    [
        ([{"zones": ["a", "b", "c"], "maximum": 2}], ["spec.provider.workers[0].maximum"]),
        ([{"zones": ["a", "b", "c"], "maximum": 3}], []),
        ([{"zones": ["a", "b"], "maximum": 1}, {"zones": ["b", "a"], "maximum": 2}], []),
        (
            [{"zones": ["a", "b"], "maximum": 1}, {"zones": ["a", "c"], "maximum": 2}],
            ["spec.provider.workers[0].maximum"],
        ),
        ([{"zones": ["a", "b"], "maximum": 1, "systemComponents": {"allow": False}}, {}], []),
        ([{"zones": ["a", "b"], "maximum": 0, "minimum": 0}, {}], []),
    ],
)
def test_pools_of_system_components_have_a_node_in_each_zone(listed: list[Document], fields: list[str]) -> None:
    assert fields_of(pools(*listed)) == fields


def test_the_newest_version_of_a_profile_does_not_expire() -> None:
    def offering(*versions: Document) -> Document:
        return a_cloudprofile(spec={"kubernetes": {"versions": list(versions)}})

    ends = {"expirationDate": "2099-01-01T00:00:00Z"}
    path = "spec.kubernetes.versions[1].expirationDate"
    assert fields_of(offering({"version": "1.33.5"}, {"version": "1.34.1", **ends})) == [path]
    assert fields_of(offering({"version": "1.33.5", **ends}, {"version": "1.34.1"})) == []
    old = offering({"version": "1.33.5"}, {"version": "1.34.1", **ends})
    assert fields_of(merged(old, {"spec": {"limits": {"maxNodesTotal": 9}}}), old) == []


PLACED = a_shoot(
    spec={
        "seedName": "aws",
        "kubernetes": {"kubeControllerManager": {"nodeCIDRMaskSize": 24}},
        "networking": {"ipFamilies": ["IPv4"]},
        "dns": {
            "domain": "apollo.example.org",
            "providers": [{"type": "aws-route53", "primary": True, "secretName": "dns"}],
        },
    }
)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"networking": {"type": "cilium"}}, "networking.type"),
        ({"networking": {"ipFamilies": ["IPv6", "IPv4"]}}, "networking.ipFamilies"),
        ({"networking": {"ipFamilies": ["IPv4", "IPv6"]}}, ""),
        ({"networking": {"ipFamilies": None}}, ""),
        (
            {"kubernetes": {"kubeControllerManager": {"nodeCIDRMaskSize": 23}}},
            "kubernetes.kubeControllerManager.nodeCIDRMaskSize",
        ),
        ({"kubernetes": {"kubeControllerManager": None}}, "kubernetes.kubeControllerManager.nodeCIDRMaskSize"),
        ({"dns": {"providers": []}}, "dns.providers"),
        ({"dns": {"providers": [{"type": "aws-route53", "primary": False, "secretName": "dns"}]}}, "dns.providers"),
        ({"dns": {"providers": [{"type": "google-clouddns", "primary": True, "secretName": "dns"}]}}, "dns.providers"),
        ({"dns": {"providers": [{"type": "aws-route53", "primary": True, "secretName": "another"}]}}, ""),
    ],
)
def test_a_placed_shoot_keeps_its_network_and_its_primary_provider(changes: Document, field: str) -> None:
    assert fields_of(merged(PLACED, {"spec": changes}), PLACED) == ([f"spec.{field}"] if field else [])


IN_PLACE: Document = {
    "updateStrategy": "AutoInPlaceUpdate",
    "machine": {"type": "m5.large", "image": {"name": "base", "version": "1.2.0"}},
    "volume": {"size": "20Gi"},
    "cri": {"name": "containerd"},
}
MANUALLY: Document = {"updateStrategy": "ManualInPlaceUpdate"}


def with_machine(image: str, version: str, kind: str = "m5.large") -> Document:
    return {**IN_PLACE, "machine": {"type": kind, "image": {"name": image, "version": version}}}


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({}, {"updateStrategy": "AutoInPlaceUpdate"}, "updateStrategy"),
        ({"updateStrategy": "AutoRollingUpdate"}, MANUALLY, "updateStrategy"),
        ({}, {"updateStrategy": "AutoRollingUpdate"}, ""),
        (IN_PLACE, {**IN_PLACE, "updateStrategy": None}, "updateStrategy"),
        (IN_PLACE, {**IN_PLACE, **MANUALLY}, ""),
        (IN_PLACE, with_machine("base", "1.2.0", "m5.xlarge"), "machine.type"),
        (IN_PLACE, with_machine("new", "1.2.0"), "machine.image.name"),
        (IN_PLACE, with_machine("base", "1.1.9"), "machine.image.version"),
        (IN_PLACE, with_machine("base", "1.10.0"), ""),
        (IN_PLACE, {**IN_PLACE, "volume": {"size": "30Gi"}}, "volume"),
        (
            {"controlPlane": {"backup": {"provider": "aws", "region": "x"}}},
            {"controlPlane": {"backup": {"provider": "gcp", "region": "x"}}},
            "controlPlane.backup.provider",
        ),
    ],
)  # fmt: skip
def test_a_pool_keeps_what_its_machines_cannot_change(before: Document, after: Document, field: str) -> None:
    found = fields_of(pools(after), pools(before))
    assert found == ([f"spec.provider.workers[0].{field}"] if field else [])
