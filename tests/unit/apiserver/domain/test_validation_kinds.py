"""Every field of the other kinds that something reads."""

from collections.abc import Callable
from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource, Unsupported
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_namespaced_cloudprofile,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
)

SEED_MANAGEMENT = "seedmanagement.gardener.cloud/v1alpha1"


EMPTY: Document = {}


def problems_of(document: Document, old: Document | None = None) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        validate(document, old)
    return {problem.field: problem.message for problem in caught.value.problems}


def a_config(**seed_config: Any) -> Document:
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "seedConfig": seed_config,
    }


def a_managed_seed(**changes: Any) -> Document:
    managed_seed: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "ManagedSeed",
        "metadata": {"name": "s1", "namespace": "garden"},
        "spec": {
            "shoot": {"name": "s1"},
            "gardenlet": {"bootstrap": "BootstrapToken", "mergeWithParent": True, "config": a_config()},
        },
    }
    return merged(managed_seed, changes)


def a_set(**changes: Any) -> Document:
    labels = {"name": "my-set"}
    managed_seed_set: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "ManagedSeedSet",
        "metadata": {"name": "my-set", "namespace": "garden"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"gardenlet": {"config": a_config(metadata={"labels": labels})}},
            },
            "shootTemplate": {"metadata": {"labels": labels}, "spec": a_shoot()["spec"]},
        },
    }
    return merged(managed_seed_set, changes)


def an_autoscaler(**changes: Any) -> Document:
    target = {"type": "Utilization", "averageUtilization": 50}
    autoscaler: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "SeedAutoscaler",
        "metadata": {"name": "my-set", "namespace": "garden"},
        "spec": {
            "scaleTargetRef": {"apiVersion": SEED_MANAGEMENT, "kind": "ManagedSeedSet", "name": "my-set"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": {"name": "shoots", "target": target}}],
        },
    }
    return merged(autoscaler, changes)


def an_exposure_class(**changes: Any) -> Document:
    return merged(
        {"apiVersion": CORE, "kind": "ExposureClass", "metadata": {"name": "internet"}, "handler": "h"}, changes
    )


def a_namespaced(kind: str, api_version: str = "v1", **fields: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "garden"}, **fields}


@pytest.mark.parametrize(
    "document",
    [
        a_seed(),
        a_cloudprofile(),
        a_namespaced_cloudprofile(),
        a_project(),
        a_region_configmap(),
        a_managed_seed(),
        a_set(),
        an_autoscaler(),
        an_exposure_class(),
        a_namespaced("Secret", data={"a": "aGk="}, stringData={"b": "hi"}),
        a_namespaced("ConfigMap", data={"a": "b"}, binaryData={"c": "aGk="}),
        a_namespaced("Lease", "coordination.k8s.io/v1", spec={"renewTime": "2026-01-02T03:04:05.123456Z"}),
        a_namespaced("ShootState", CORE, spec={"gardener": [{"name": "ca"}]}),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}},
        a_namespaced("BackupEntry", CORE, spec={"bucketName": "x", "seedName": "seed-a"}),
    ],
    ids=lambda document: document["kind"],
)
def test_a_good_manifest_passes_and_stays_good(document: Document) -> None:
    validate(document, None)
    validate(document, document)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": None}, "spec.provider.type"),
        ({"spec": {"provider": None}}, "spec.provider.type"),
        ({"spec": {"provider": {"type": ""}}}, "spec.provider.type"),
        ({"spec": {"provider": {"region": None}}}, "spec.provider.region"),
        ({"spec": {"provider": {"zones": ["a", 1]}}}, "spec.provider.zones[1]"),
        ({"spec": {"networks": {"pods": "10.0.0/16"}}}, "spec.networks.pods"),
        ({"spec": {"networks": {"shootDefaults": {"services": "x"}}}}, "spec.networks.shootDefaults.services"),
        ({"spec": {"settings": {"scheduling": {"visible": "true"}}}}, "spec.settings.scheduling.visible"),
        ({"spec": {"settings": {"zoneSelection": {"mode": "Always"}}}}, "spec.settings.zoneSelection.mode"),
        ({"spec": {"taints": [{"key": ""}]}}, "spec.taints[0].key"),
        ({"spec": {"taints": [{"key": "a"}, {"key": "a"}]}}, "spec.taints[1].key"),
        ({"spec": {"accessRestrictions": [{"name": 5}]}}, "spec.accessRestrictions[0].name"),
        ({"spec": {"dns": {"defaults": [{"domain": "a_b"}]}}}, "spec.dns.defaults[0].domain"),
        ({"spec": {"dns": {"defaults": {"domain": "a"}}}}, "spec.dns.defaults"),
        ({"spec": {"backup": "yes"}}, "spec.backup"),
        ({"status": {"allocatable": {"shoots": "many"}}}, "status.allocatable.shoots"),
        ({"status": {"allocatable": {"shoots": -1}}}, "status.allocatable.shoots"),
        ({"status": {"capacity": {"shoots": True}}}, "status.capacity.shoots"),
        ({"status": {"capacity": {"shoots": 20}, "allocatable": {"shoots": "21"}}}, "status.allocatable.shoots"),
        ({"status": {"capacity": ["shoots"]}}, "status.capacity"),
        ({"status": {"clientCertificateExpirationTimestamp": "soon"}}, "status.clientCertificateExpirationTimestamp"),
    ],
)
def test_each_rule_of_seeds_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(a_seed(**changes))


@pytest.mark.parametrize("build", [a_seed, a_shoot])
def test_resources_have_names_and_refer_to_what_can_be_named(build: Callable[..., Document]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    named = [
        {"name": "a", "resourceRef": secret},
        {"name": "a", "resourceRef": secret | {"kind": "Deployment", "apiVersion": "apps/v1"}},
        {"resourceRef": secret | {"name": ""}},
        {"name": "d", "resourceRef": {"kind": "Secret", "name": "s"}},
        {"name": "e"},
    ]
    document = build(spec={"resources": named})
    found = problems_of(document)
    assert found == {
        "spec.resources[1].name": "'a' is in the list already: name it once",
        "spec.resources[1].resourceRef.kind": "must be Secret (v1) or ConfigMap (v1) or WorkloadIdentity"
        " (security.gardener.cloud/v1alpha1), not 'Deployment' (apps/v1)",
        "spec.resources[2].name": "is needed: a string",
        "spec.resources[2].resourceRef.name": "is needed and is empty",
        "spec.resources[3].resourceRef.apiVersion": "is needed: a string",
        **{f"spec.resources[4].resourceRef.{part}": "is needed: a string" for part in ("apiVersion", "kind", "name")},
    }
    validate(document, document)
    validate(build(spec={"resources": named[:1]}), None)


def test_a_seed_keeps_its_networks() -> None:
    assert "spec.networks.pods" in problems_of(a_seed(spec={"networks": {"pods": "10.0.0.0/16"}}), a_seed())


def test_a_taint_may_stand_with_several_values() -> None:
    validate(a_seed(spec={"taints": [{"key": "a"}, {"key": "a", "value": "b"}]}), None)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": {"type": None}}, "spec.type"),
        ({"spec": {"seedSelector": {"providerTypes": ["a", "a"]}}}, "spec.seedSelector.providerTypes[1]"),
        ({"spec": {"regions": [{"name": "a"}, {"name": "a"}]}}, "spec.regions[1].name"),
        ({"spec": {"regions": [{"name": "a", "zones": [{"name": 1}]}]}}, "spec.regions[0].zones[0].name"),
        ({"spec": {"kubernetes": {"versions": [{"version": 1.3}]}}}, "spec.kubernetes.versions[0].version"),
        ({"spec": {"machineTypes": ["m5"]}}, "spec.machineTypes[0]"),
    ],
)
def test_each_rule_of_profiles_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(a_cloudprofile(**changes))


def test_a_namespaced_profile_needs_its_parent_and_keeps_it() -> None:
    assert "spec.parent.name" in problems_of(a_namespaced_cloudprofile(spec={"parent": None}))
    assert "spec.parent.kind" in problems_of(a_namespaced_cloudprofile(spec={"parent": {"kind": "Shoot"}}))
    moved = a_namespaced_cloudprofile(spec={"parent": {"name": "gcp"}})
    assert "spec.parent.name" in problems_of(moved, a_namespaced_cloudprofile())


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"namespace": "a.b"}, "spec.namespace"),
        ({"tolerations": {"defaults": [{"key": "a"}, {"key": "a"}]}}, "spec.tolerations.defaults[1].key"),
        ({"tolerations": {"whitelist": [EMPTY]}}, "spec.tolerations.whitelist[0].key"),
        ({"tolerations": []}, "spec.tolerations"),
        ({"members": {}}, "spec.members"),
    ],
)
def test_each_rule_of_projects_names_its_field(spec: Document, field: str) -> None:
    assert field in problems_of(a_project(spec=spec))


def test_a_project_keeps_its_namespace() -> None:
    assert "spec.namespace" in problems_of(a_project(namespace="garden-other"), a_project())
    assert "spec.namespace" in problems_of(a_project(spec=None), a_project())


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ("eu: far", "must be a whole number, not 'far'"),
        ("eu: 1.5", "must be a whole number"),
        ("eu: true", "must be a whole number"),
        ("[1, 2]", "map of regions"),
        ("just text", "map of regions"),
        ("~", "map of regions"),
        ("a: 1\na: 2", "given twice"),
        ("a: [", "not YAML"),
        ("a: 1\n---\nb: 2", "map of regions"),
    ],
)
def test_malformed_distances_are_refused(value: str, reported: str) -> None:
    assert reported in problems_of(a_region_configmap(data={"eu-west-1": value}))["data[eu-west-1]"]


def test_a_region_configmap_names_its_profiles() -> None:
    assert list(problems_of(a_region_configmap(cloudprofiles=" , "))) == [
        "metadata.annotations[scheduling.gardener.cloud/cloudprofiles]"
    ]


def test_an_empty_value_and_any_other_configmap_are_nobodys_distances() -> None:
    validate(a_region_configmap(data={"eu-west-1": ""}), None)
    validate(a_namespaced("ConfigMap", data={"a": "no: [map"}), None)
    assert problems_of(a_namespaced("ConfigMap", data={"a": 5}))


def test_secrets_hold_base64() -> None:
    assert "data[a]" in problems_of(a_namespaced("Secret", data={"a": "not base64!"}))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"handler": None}, "handler"),
        ({"scheduling": {"tolerations": [{"key": "a"}, {"key": "a"}]}}, "scheduling.tolerations[1].key"),
        ({"scheduling": {"seedSelector": {"matchLabels": []}}}, "scheduling.seedSelector.matchLabels"),
    ],
)
def test_each_rule_of_exposure_classes_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(an_exposure_class(**changes))


def test_an_exposure_class_keeps_its_handler() -> None:
    assert "handler" in problems_of(an_exposure_class(handler="other"), an_exposure_class())


@pytest.mark.parametrize("renewed", ["yesterday", "2026-01-02", "2026-01-02T03:04:05", 5])
def test_a_lease_has_a_time_with_its_zone(renewed: Any) -> None:
    lease = a_namespaced("Lease", "coordination.k8s.io/v1", spec={"renewTime": renewed})
    assert "spec.renewTime" in problems_of(lease)


def config_of(**changes: Any) -> Document:
    return {"spec": {"gardenlet": {"config": changes}}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metadata": {"namespace": "garden-dev"}}, "metadata.namespace"),
        ({"spec": {"shoot": None}}, "spec.shoot.name"),
        ({"spec": {"shoot": {"name": "a.b"}}}, "spec.shoot.name"),
        ({"spec": {"gardenlet": {"bootstrap": "Magic"}}}, "spec.gardenlet.bootstrap"),
        (config_of(kind="Other"), "spec.gardenlet.config.kind"),
        (config_of(apiVersion="v1"), "spec.gardenlet.config.apiVersion"),
        (
            config_of(resources={"capacity": {"shoots": 10}, "reserved": {"shoots": "11"}}),
            "spec.gardenlet.config.resources.reserved.shoots",
        ),
        (config_of(resources={"reserved": {"shoots": 1}}), "spec.gardenlet.config.resources.reserved.shoots"),
        (config_of(resources={"capacity": {"shoots": "x"}}), "spec.gardenlet.config.resources.capacity.shoots"),
        (config_of(seedConfig={"metadata": {"name": "s1"}}), "spec.gardenlet.config.seedConfig.metadata.name"),
        (
            config_of(seedConfig={"spec": {"networks": {"pods": "x"}}}),
            "spec.gardenlet.config.seedConfig.spec.networks.pods",
        ),
    ],
)
def test_each_rule_of_managed_seeds_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(a_managed_seed(**changes))


def templated(**changes: Any) -> Document:
    return {"spec": {"gardenlet": None, "seedTemplate": changes}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": {"gardenlet": None}}, "spec.gardenlet"),
        ({"spec": {"seedTemplate": {}}}, "spec.seedTemplate"),
        ({"spec": {"seed": {}}}, "spec.seed"),
        ({"spec": {"gardenlet": None, "seedTemplate": {}, "seed": {}}}, "spec.seed"),
        (templated(metadata={"name": "s1"}), "spec.seedTemplate.metadata.name"),
        (templated(metadata={"labels": {"a b": "c"}}), "spec.seedTemplate.metadata.labels"),
        (templated(spec={"provider": {"zones": ["a", "a"]}}), "spec.seedTemplate.spec.provider.zones[1]"),
        (templated(spec={"ingress": {"domain": "A b"}}), "spec.seedTemplate.spec.ingress.domain"),
        (
            templated(spec={"settings": {"verticalPodAutoscaler": {"enabled": True}}}),
            "spec.seedTemplate.spec.settings.verticalPodAutoscaler.enabled",
        ),
        (
            config_of(seedConfig={"spec": {"settings": {"verticalPodAutoscaler": {"enabled": True}}}}),
            "spec.gardenlet.config.seedConfig.spec.settings.verticalPodAutoscaler.enabled",
        ),
    ],
)
def test_a_managed_seed_states_its_seed_in_one_way(changes: Document, field: str) -> None:
    assert list(problems_of(a_managed_seed(**changes))) == [field]


@pytest.mark.parametrize("way", ["seedTemplate", "seed"])
def test_a_template_will_do_for_a_managed_seed_and_for_a_set(way: str) -> None:
    seed = {"metadata": {"labels": {"name": "my-set"}}, "spec": {"settings": {"scheduling": {"visible": True}}}}
    validate(a_managed_seed(spec={"gardenlet": None, way: seed}), None)
    validate(a_set(spec={"template": {"spec": {"gardenlet": None, way: seed}}}), None)


def test_the_older_template_may_become_the_newer_one() -> None:
    older = a_managed_seed(spec={"gardenlet": None, "seed": {}})
    validate(a_managed_seed(**templated()), older)
    assert list(problems_of(a_managed_seed(), older)) == ["spec.gardenlet"]


def test_all_of_the_capacity_may_be_reserved() -> None:
    validate(a_managed_seed(**config_of(resources={"capacity": {"shoots": "1k"}, "reserved": {"shoots": 1000}})), None)


def test_a_managed_seed_keeps_what_its_seed_keeps() -> None:
    def backed_up(**backup: str) -> Document:
        return a_managed_seed(**config_of(seedConfig={"spec": {"backup": backup or None}}))

    path = "spec.gardenlet.config.seedConfig.spec.backup"
    validate(backed_up(provider="aws"), backed_up())
    assert list(problems_of(backed_up(provider="gcp"), backed_up(provider="aws"))) == [f"{path}.provider"]
    assert list(problems_of(backed_up(provider="aws", region="r"), backed_up(provider="aws"))) == [f"{path}.region"]
    assert list(problems_of(backed_up(), backed_up(provider="aws"))) == [path]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"shoot": {"name": "other"}}, "spec.shoot.name"),
        ({"gardenlet": {"bootstrap": "None"}}, "spec.gardenlet.bootstrap"),
        ({"gardenlet": {"mergeWithParent": False}}, "spec.gardenlet.mergeWithParent"),
        ({"gardenlet": None, "seedTemplate": {}}, "spec.gardenlet"),
    ],
)
def test_a_managed_seed_keeps_what_it_was_set_up_with(spec: Document, field: str) -> None:
    assert field in problems_of(a_managed_seed(spec=spec), a_managed_seed())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metadata": {"namespace": "garden-dev"}}, "metadata.namespace"),
        ({"spec": {"replicas": -1}}, "spec.replicas"),
        ({"spec": {"selector": None}}, "spec.selector"),
        ({"spec": {"selector": {"matchLabels": None}}}, "spec.selector"),
        ({"spec": {"selector": {"matchLabels": {"x": "y"}}}}, "spec.template.metadata.labels"),
        ({"spec": {"selector": {"matchLabels": {"x": "y"}}}}, "spec.shootTemplate.metadata.labels"),
        (
            {"spec": {"selector": {"matchLabels": {"x": "y"}}}},
            "spec.template.spec.gardenlet.config.seedConfig.metadata.labels",
        ),
        ({"spec": {"template": {"spec": {"shoot": {"name": "a"}}}}}, "spec.template.spec.shoot"),
        (
            {"spec": {"template": {"spec": {"gardenlet": {"config": {"seedConfig": None}}}}}},
            "spec.template.spec.gardenlet.config.seedConfig",
        ),
        (
            {"spec": {"shootTemplate": {"spec": {"provider": {"workers": []}}}}},
            "spec.shootTemplate.spec.provider.workers",
        ),
        ({"spec": {"shootTemplate": {"spec": {"region": None}}}}, "spec.shootTemplate.spec.region"),
        (
            {"spec": {"shootTemplate": {"spec": {"addons": {"nginxIngress": {"enabled": True}}}}}},
            "spec.shootTemplate.spec.addons.nginxIngress.enabled",
        ),
        (
            {"spec": {"shootTemplate": {"spec": {"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}}}}},
            "spec.shootTemplate.spec.kubernetes.verticalPodAutoscaler.enabled",
        ),
        ({"spec": {"template": {"spec": {"gardenlet": None}}}}, "spec.template.spec.gardenlet"),
        ({"spec": {"template": {"spec": {"seedTemplate": {}}}}}, "spec.template.spec.seedTemplate"),
        (
            {"spec": {"template": {"spec": {"gardenlet": None, "seedTemplate": {}}}}},
            "spec.template.spec.seedTemplate.metadata.labels",
        ),
        ({"spec": {"scaleIn": {"drain": "yes"}}}, "spec.scaleIn.drain"),
        ({"spec": {"scaleIn": True}}, "spec.scaleIn"),
        ({"spec": {"revisionHistoryLimit": -1}}, "spec.revisionHistoryLimit"),
        ({"spec": {"updateStrategy": {"type": "OnDelete"}}}, "spec.updateStrategy.type"),
        (
            {"spec": {"updateStrategy": {"rollingUpdate": {"partition": "1"}}}},
            "spec.updateStrategy.rollingUpdate.partition",
        ),
        ({"status": {"replicas": 1, "readyReplicas": 2}}, "status.readyReplicas"),
        ({"status": {"pendingReplica": {"name": "other-1"}}}, "status.pendingReplica.name"),
    ],
)
def test_each_rule_of_sets_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(a_set(**changes))


def test_a_set_keeps_its_selector_and_its_numbers_never_fall() -> None:
    wider = a_set(spec={"selector": {"matchExpressions": [{"key": "name", "operator": "Exists"}]}})
    assert list(problems_of(wider, a_set())) == ["spec.selector"]
    assert list(problems_of(a_set(status={"nextReplicaNumber": 2}), a_set(status={"nextReplicaNumber": 3}))) == [
        "status.nextReplicaNumber"
    ]


def with_seed_spec(**spec: Any) -> Document:
    """A set whose replicas are seeds with such a spec."""
    return a_set(spec={"template": {"spec": {"gardenlet": {"config": {"seedConfig": {"spec": spec}}}}}})


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (a_set(), a_set(spec={"shootTemplate": {"spec": {"region": "elsewhere"}}}), "spec.shootTemplate.spec.region"),
        (
            a_set(),
            a_set(spec={"shootTemplate": {"spec": {"provider": {"type": "gcp"}}}}),
            "spec.shootTemplate.spec.provider.type",
        ),
        (
            with_seed_spec(backup={"provider": "aws"}),
            with_seed_spec(backup={"provider": "gcp", "region": "r"}),
            "spec.template.spec.gardenlet.config.seedConfig.spec.backup.provider",
        ),
        (
            with_seed_spec(ingress={"domain": "a.example.org"}),
            with_seed_spec(ingress={"domain": "b.example.org"}),
            "spec.template.spec.gardenlet.config.seedConfig.spec.ingress.domain",
        ),
    ],
)
def test_a_set_keeps_what_no_replica_could_follow(old: Document, new: Document, field: str) -> None:
    validate(old, old)
    assert field in problems_of(new, old)


def test_the_shoots_that_a_set_orders_keep_their_bounds() -> None:
    bad = {"spec": {"shootTemplate": {"spec": {"kubernetes": {"kubelet": {"maxPods": -1}}}}}}
    assert list(problems_of(a_set(**bad))) == ["spec.shootTemplate.spec.kubernetes.kubelet.maxPods"]
    validate(merged(a_set(**bad), {"spec": {"replicas": 2}}), a_set(**bad))


def measured(**target: Any) -> Document:
    return {"spec": {"metrics": [{"type": "Resource", "resource": {"name": "shoots", "target": target}}]}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metadata": {"namespace": "garden-dev"}}, "metadata.namespace"),
        ({"spec": {"scaleTargetRef": None}}, "spec.scaleTargetRef.name"),
        ({"spec": {"scaleTargetRef": {"kind": "Shoot"}}}, "spec.scaleTargetRef.kind"),
        ({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1"}}}, "spec.scaleTargetRef.apiVersion"),
        ({"spec": {"scaleTargetRef": {"name": None}}}, "spec.scaleTargetRef.name"),
        ({"spec": {"maxReplicas": None}}, "spec.maxReplicas"),
        ({"spec": {"maxReplicas": 0}}, "spec.maxReplicas"),
        ({"spec": {"minReplicas": 11}}, "spec.maxReplicas"),
        ({"spec": {"minReplicas": "1"}}, "spec.minReplicas"),
        ({"spec": {"metrics": [{"type": "Pods"}]}}, "spec.metrics[0].type"),
        (measured(type="Other"), "spec.metrics[0].resource.target.type"),
        (measured(type="Utilization"), "spec.metrics[0].resource.target.averageUtilization"),
        (measured(type="Utilization", averageUtilization=101), "spec.metrics[0].resource.target.averageUtilization"),
        (measured(type="AverageValue"), "spec.metrics[0].resource.target.averageValue"),
        (measured(type="AverageValue", averageValue="0"), "spec.metrics[0].resource.target.averageValue"),
    ],
)
def test_each_rule_of_autoscalers_names_its_field(changes: Document, field: str) -> None:
    assert field in problems_of(an_autoscaler(**changes))


def behaving(**rules: Any) -> Document:
    return {"spec": {"behavior": {"scaleDown": rules}}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": {"behavior": []}}, "spec.behavior"),
        ({"spec": {"behavior": {"scaleUp": 3}}}, "spec.behavior.scaleUp"),
        (behaving(stabilizationWindowSeconds=3601), "spec.behavior.scaleDown.stabilizationWindowSeconds"),
        (behaving(stabilizationWindowSeconds=-1), "spec.behavior.scaleDown.stabilizationWindowSeconds"),
        (behaving(selectPolicy="Most"), "spec.behavior.scaleDown.selectPolicy"),
        (behaving(policies=[]), "spec.behavior.scaleDown.policies"),
        (behaving(tolerance="-1"), "spec.behavior.scaleDown.tolerance"),
        (
            behaving(policies=[{"type": "Nodes", "value": 1, "periodSeconds": 1}]),
            "spec.behavior.scaleDown.policies[0].type",
        ),
        (
            behaving(policies=[{"type": "Pods", "value": 0, "periodSeconds": 1}]),
            "spec.behavior.scaleDown.policies[0].value",
        ),
        (
            behaving(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1801}]),
            "spec.behavior.scaleDown.policies[0].periodSeconds",
        ),
        (
            behaving(policies=[{"type": "Pods", "value": 1}]),
            "spec.behavior.scaleDown.policies[0].periodSeconds",
        ),
    ],
)
def test_each_rule_of_an_autoscalers_behavior_names_its_field(changes: Document, field: str) -> None:
    assert list(problems_of(an_autoscaler(**changes))) == [field]


@pytest.mark.parametrize("kind", ["Replicas", "Pods", "Percent"])
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_an_autoscaler_behaves_as_horizontal_ones_do(direction: str, kind: str) -> None:
    rules = {
        "stabilizationWindowSeconds": 300,
        "selectPolicy": "Min",
        "tolerance": "0.05",
        "policies": [{"type": kind, "value": 200, "periodSeconds": 1800}],
    }
    validate(an_autoscaler(spec={"behavior": {direction: rules}}), None)


def test_an_autoscaler_measures_any_resource_with_a_name_of_its_own() -> None:
    target = {"type": "AverageValue", "averageValue": "1500m"}
    measured_by = [{"type": "Resource", "resource": {"name": "example.com/gpus", "target": target}}]
    validate(an_autoscaler(spec={"metrics": measured_by}), None)
    measured_by[0]["resource"] = {"name": "a b", "target": target}
    assert list(problems_of(an_autoscaler(spec={"metrics": measured_by}))) == ["spec.metrics[0].resource.name"]


def test_nobody_writes_events_by_hand() -> None:
    with pytest.raises(Unsupported, match=r"^kind: Events are recorded"):
        validate(a_namespaced("Event"), None)


def test_heartbeats_are_sent_not_stored() -> None:
    heartbeats = {"name": "aws-cork", "namespace": "gardener-system-seed-lease"}
    heartbeat = a_namespaced("Lease", "coordination.k8s.io/v1", metadata=heartbeats)
    with pytest.raises(Unsupported, match=r"^metadata\.namespace: Leases of gardener-system-seed-lease are heartbeats"):
        validate(heartbeat, None)
    validate(heartbeat, heartbeat)
    validate(a_namespaced("Lease", "coordination.k8s.io/v1"), None)


def test_a_kind_that_is_not_understood_still_has_a_spec_that_is_a_mapping() -> None:
    assert list(problems_of(a_namespaced("BackupEntry", CORE, spec="x"))) == ["spec"]


def test_an_object_does_not_move_to_another_group() -> None:
    core = a_namespaced("BackupBucket", CORE)
    assert list(problems_of({**core, "apiVersion": "extensions.gardener.cloud/v1alpha1"}, core)) == ["apiVersion"]


def test_a_double_that_no_integer_holds_is_no_whole_number() -> None:
    autoscaler: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "SeedAutoscaler",
        "metadata": {"name": "my-set", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"kind": "ManagedSeedSet", "name": "my-set"}, "maxReplicas": 1e300},
    }
    assert "must be a whole number" in problems_of(autoscaler)["spec.maxReplicas"]
