"""Feature gates and plug-ins that a maintenance takes out. Cases as in Gardener's maintenance reconciler test."""

from datetime import UTC, datetime

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_maintenance import plan_maintenance
from gardenbus.controllermanager.domain.unsupported_features import without_unsupported_features
from tests.support.builders import a_shoot, merged

GATES = {"AppArmor": True, "WatchList": True}
"""AppArmor is in Kubernetes until 1.32, WatchList in every version."""
COMPONENTS = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")


def a_spec(version: str, *pools: Document) -> Document:
    components = {name: {"featureGates": GATES} for name in COMPONENTS}
    return {"kubernetes": {"version": version, **components}, "provider": {"type": "aws", "workers": list(pools)}}


def a_pool(name: str, version: str | None = None) -> Document:
    own = {"version": version} if version else {}
    return {"name": name, "kubernetes": {**own, "kubelet": {"featureGates": GATES, "maxPods": 100}}}


def test_what_every_version_has_stays() -> None:
    spec = a_spec("1.32.9", a_pool("a"))
    cleaned = without_unsupported_features(spec)
    assert cleaned.spec is spec
    assert cleaned.operations == ()


def test_gates_go_from_each_component_by_its_own_version() -> None:
    cleaned = without_unsupported_features(a_spec("1.33.1", a_pool("old", "1.32.9"), a_pool("new")))
    for component in COMPONENTS:
        assert cleaned.spec["kubernetes"][component] == {"featureGates": {"WatchList": True}}
    old, new = cleaned.spec["provider"]["workers"]
    assert old == a_pool("old", "1.32.9")
    assert new["kubernetes"] == {"kubelet": {"featureGates": {"WatchList": True}, "maxPods": 100}}
    assert cleaned.operations[0] == (
        'Removed feature gates from "spec.kubernetes.kubeAPIServer.featureGates" because they are not supported in '
        'Kubernetes version "1.33.1": AppArmor'
    )
    assert '"spec.provider.workers[1].kubernetes.kubelet.featureGates"' in cleaned.operations[-1]


def test_a_spec_without_a_version_is_as_it_was() -> None:
    spec = a_spec("", a_pool("a"))
    assert without_unsupported_features(spec).spec is spec


def test_an_update_takes_out_gates_and_plugins_that_the_new_version_does_not_have() -> None:
    server = {"featureGates": GATES, "admissionPlugins": [{"name": "PersistentVolumeLabel"}, {"name": "PodSecurity"}]}
    shoot = merged(a_shoot(), {"spec": {"kubernetes": {"version": "1.30.9", "kubeAPIServer": server}}})
    offered: Document = {
        "kubernetes": {
            "versions": [
                {"version": "1.30.9", "expirationDate": "2026-01-01T00:00:00Z"},
                {"version": "1.31.1"},
                {"version": "1.33.0"},
            ]
        }
    }
    plan = plan_maintenance(shoot, offered, datetime(2026, 6, 1, tzinfo=UTC))
    assert plan.patch["spec"]["kubernetes"] == {
        "version": "1.31.1",
        "kubeAPIServer": {"admissionPlugins": [{"name": "PodSecurity"}]},
    }
    assert plan.operations[0] == (
        'Removed admission plugins from "spec.kubernetes.kubeAPIServer.admissionPlugins" because they are not '
        'supported in Kubernetes version "1.31.1": PersistentVolumeLabel'
    )
