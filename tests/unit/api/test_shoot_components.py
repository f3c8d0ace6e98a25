"""What a Shoot may say of its components, and what it cannot have without workers. The cases are Gardener's."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.workerless import workerless_warnings
from gardenbus.common.api.document import Document
from tests.support.builders import a_shoot, merged
from tests.unit.api.test_rules_by_kind import ABSENT, SHOOT, changed, fields_of

KUBELET, POOL = "spec.kubernetes.kubelet", "spec.provider.workers.0"
EVICTIONS = ("memoryAvailable", "imageFSAvailable", "imageFSInodesFree", "nodeFSAvailable", "nodeFSInodesFree")


def faults(path: str, value: Any) -> list[str]:
    """The fields at fault below `spec.kubernetes`, without that beginning."""
    return [
        field.removeprefix("spec.kubernetes.") for field in fields_of(changed(SHOOT, f"spec.kubernetes.{path}", value))
    ]


@pytest.mark.parametrize("field", ["evictionHard", "evictionSoft"])
@pytest.mark.parametrize("name", EVICTIONS)
@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        *(("100Mi", True), ("0", True), ("5%", True), ("0%", True), ("100%", True), ("1e3", True), ("1.5Gi", True)),
        *(("101%", False), ("110%", False), ("-5%", False), ("5.5%", False), ("-1Gi", False), ("100Mib", False)),
        *(("", False), ("abc", False), ("%", False), ("5 %", False)),
    ],
)
def test_an_eviction_starts_at_a_quantity_or_percent(field: str, name: str, value: str, *, is_taken: bool) -> None:
    assert faults(f"kubelet.{field}.{name}", value) == ([] if is_taken else [f"kubelet.{field}.{name}"])


@pytest.mark.parametrize("name", EVICTIONS)
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("evictionMinimumReclaim", ("0", "500Mi", 0), ("5%", "-1Mi", "x", "", True)),
        ("evictionSoftGracePeriod", ("0s", "1m30s", 0), ("-1s", "90", "soon", "", 5)),
    ],
)
def test_what_is_reclaimed_is_a_quantity_and_a_grace_period_a_time(
    field: str, name: str, good: tuple[Any, ...], bad: tuple[Any, ...]
) -> None:
    for value in good:
        assert faults(f"kubelet.{field}.{name}", value) == []
    for value in bad:
        assert faults(f"kubelet.{field}.{name}", value) == [f"kubelet.{field}.{name}"], value


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeralStorage", "pid"])
def test_what_is_reserved_is_not_below_zero(name: str) -> None:
    assert faults(f"kubelet.kubeReserved.{name}", "80m") == []
    assert faults(f"kubelet.kubeReserved.{name}", 0) == []
    for value in ("-80m", "many", "10%"):
        assert faults(f"kubelet.kubeReserved.{name}", value) == [f"kubelet.kubeReserved.{name}"]


TAKEN: list[tuple[str, Any]] = [
    ("kubelet", {"podPidsLimit": 100, "maxPods": 0, "containerLogMaxFiles": 2, "containerLogMaxSize": "10Mi"}),
    ("kubelet", {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 79, "imageMinimumGCAge": "0s"}),
    ("kubelet", {"streamingConnectionIdleTimeout": "30s", "serializeImagePulls": False, "maxParallelImagePulls": 5}),
    ("kubelet", {"memorySwap": {"swapBehavior": "NoSwap"}, "featureGates": {"NodeSwap": True}, "failSwapOn": False}),
    ("kubeAPIServer", {"requests": {"maxNonMutatingInflight": 5000, "maxMutatingInflight": 2500}, "eventTTL": "24h"}),
    ("kubeAPIServer", {"serviceAccountConfig": {"maxTokenExpiration": "720h"}, "tlsMinVersion": "VersionTLS13"}),
    ("kubeAPIServer", {"serviceAccountConfig": {"maxTokenExpiration": "0s"}}),
    ("kubeAPIServer", {"encryptionConfig": {"resources": ["configmaps", "deployments.apps"]}}),
    ("kubeAPIServer", {"autoscaling": {"minAllowed": {"cpu": "20m", "memory": "200M"}}}),
    ("kubeControllerManager", {"nodeMonitorGracePeriod": "40s", "horizontalPodAutoscaler": {"tolerance": 0.1}}),
    ("kubeScheduler", {"profile": "bin-packing"}),
    ("kubeProxy", {"enabled": False}),
    ("clusterAutoscaler", {"expander": "priority,least-waste", "startupTaints": ["example.org/starting"]}),
    ("verticalPodAutoscaler", {"enabled": True, "targetCPUPercentile": 1, "evictionTolerance": 0, "maxAllowed": {}}),
    ("etcd", {"main": {"autoscaling": {"minAllowed": {"memory": "300M"}}}}),
]


@pytest.mark.parametrize(("component", "value"), TAKEN)
def test_what_is_within_the_bounds_is_taken(component: str, value: Any) -> None:
    assert faults(component, value) == []


REJECTED: list[tuple[str, Any, str]] = [
    ("kubelet.podPidsLimit", 99, ""),
    ("kubelet.cpuManagerPolicy", "dynamic", ""),
    ("kubelet.imageMinimumGCAge", "-1s", ""),
    ("kubelet.containerLogMaxSize", "-1Mi", ""),
    ("kubelet.streamingConnectionIdleTimeout", "29s", ""),
    ("kubelet.streamingConnectionIdleTimeout", "4h1s", ""),
    ("kubelet.evictionPressureTransitionPeriod", "-1m", ""),
    ("kubelet.maxParallelImagePulls", 0, ""),
    ("kubelet", {"maxParallelImagePulls": 2, "serializeImagePulls": True}, ".maxParallelImagePulls"),
    ("kubelet", {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}, ".imageGCLowThresholdPercent"),
    ("kubelet", {"memorySwap": {"swapBehavior": "NoSwap"}, "failSwapOn": False}, ".memorySwap"),
    ("kubelet", {"memorySwap": {}, "failSwapOn": True}, ".memorySwap"),
    ("kubeAPIServer.requests.maxNonMutatingInflight", 5001, ""),
    ("kubeAPIServer.requests.maxMutatingInflight", 2501, ""),
    ("kubeAPIServer.eventTTL", "25h", ""),
    ("kubeAPIServer.eventTTL", "-1s", ""),
    ("kubeAPIServer.logging.verbosity", -1, ""),
    ("kubeAPIServer.tlsMinVersion", "VersionTLS11", ""),
    ("kubeAPIServer.serviceAccountConfig.maxTokenExpiration", "719h", ""),
    ("kubeAPIServer.serviceAccountConfig.maxTokenExpiration", "2161h", ""),
    ("kubeAPIServer.apiAudiences", ["a,b"], "[0]"),
    ("kubeAPIServer.apiAudiences", ["a", "a"], "[1]"),
    ("kubeAPIServer.encryptionConfig.resources", ["ConfigMaps"], "[0]"),
    ("kubeAPIServer.encryptionConfig.resources", ["*.apps"], "[0]"),
    ("kubeAPIServer.encryptionConfig.resources", ["secrets"], "[0]"),
    ("kubeAPIServer.encryptionConfig.resources", ["events.events.k8s.io"], "[0]"),
    ("kubeAPIServer.encryptionConfig.provider", {"type": "rot13"}, ".type"),
    ("kubeAPIServer.watchCacheSizes.resources", [{"resource": "Secrets", "size": 1}], "[0].resource"),
    ("kubeAPIServer.watchCacheSizes.resources", [{"resource": "secrets", "size": -1}], "[0].size"),
    ("kubeAPIServer.autoscaling.minAllowed", {"cpu": "19m"}, ".cpu"),
    ("kubeAPIServer.autoscaling.minAllowed", {"pods": "1"}, ".pods"),
    ("kubeAPIServer.autoscaling", {}, ".minAllowed"),
    ("kubeControllerManager.nodeMonitorGracePeriod", "0s", ""),
    ("kubeControllerManager.nodeCIDRMaskSizeIPv6", 80, ""),
    ("kubeControllerManager.horizontalPodAutoscaler.tolerance", 0, ""),
    ("kubeControllerManager.horizontalPodAutoscaler.syncPeriod", "999ms", ""),
    ("kubeScheduler.profile", "spread", ""),
    ("kubeScheduler.kubeMaxPDVols", "0", ""),
    ("kubeScheduler.kubeMaxPDVols", "ten", ""),
    ("kubeProxy.mode", "Userspace", ""),
    ("clusterAutoscaler.expander", "least-waste,cheapest", ""),
    ("clusterAutoscaler.maxNodeProvisionTime", "-1s", ""),
    ("clusterAutoscaler.maxDrainParallelism", -1, ""),
    ("clusterAutoscaler.startupTaints", ["a b"], "[0]"),
    ("clusterAutoscaler.statusTaints", ["node.gardener.cloud/critical-components-not-ready"], "[0]"),
    ("verticalPodAutoscaler.evictionTolerance", 1, ""),
    ("verticalPodAutoscaler.targetMemoryPercentile", 1.1, ""),
    ("verticalPodAutoscaler.recommenderUpdateWorkerCount", 0, ""),
    ("verticalPodAutoscaler.maxAllowed", {"pods": "1"}, ".pods"),
    ("etcd.main.autoscaling.minAllowed", {"memory": "299M"}, ".memory"),
    ("etcd.events.autoscaling.minAllowed", {"memory": "59M"}, ".memory"),
]


@pytest.mark.parametrize(("path", "value", "below"), REJECTED)
def test_what_is_beyond_the_bounds_is_rejected_with_its_field(path: str, value: Any, below: str) -> None:
    assert faults(path, value) == [path + below]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("priority", -2, "priority"),
        ("cri.name", "docker", "cri.name"),
        (
            "cri",
            {"name": "containerd", "containerRuntimes": [{"type": "g"}, {"type": "g"}]},
            "cri.containerRuntimes[1].type",
        ),
        ("machine.architecture", "x86", "machine.architecture"),
        ("machineControllerManager.machineDrainTimeout", "-1m", "machineControllerManager.machineDrainTimeout"),
        ("machineControllerManager.maxEvictRetries", -1, "machineControllerManager.maxEvictRetries"),
        ("machineControllerManager.inPlaceUpdateTimeout", "1m", "machineControllerManager.inPlaceUpdateTimeout"),
        ("machineControllerManager.disableHealthTimeout", True, "machineControllerManager.disableHealthTimeout"),
        ("sysctls", {"vm.max map": "1"}, "sysctls[vm.max map]"),
        ("sysctls", {"vm.max_map_count": ""}, "sysctls[vm.max_map_count]"),
        ("taints", [{"key": "a", "value": "b c", "effect": "NoExecute"}], "taints[0].value"),
        (
            "taints",
            [{"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}],
            "taints[0].key",
        ),
        ("kubernetes.kubelet.evictionHard.memoryAvailable", "101%", "kubernetes.kubelet.evictionHard.memoryAvailable"),
    ],
)
def test_what_a_worker_pool_cannot_be_is_rejected_with_its_field(path: str, value: Any, field: str) -> None:
    assert fields_of(changed(SHOOT, f"{POOL}.{path}", value)) == [f"spec.provider.workers[0].{field}"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"addons": {"kubernetesDashboard": {"enabled": True}}, "purpose": "production"},
            "kubernetesDashboard.enabled",
        ),
        (
            {"addons": {"kubernetesDashboard": {"enabled": True, "authenticationMode": "basic"}}},
            "kubernetesDashboard.authenticationMode",
        ),
        (
            {"addons": {"nginxIngress": {"enabled": True, "externalTrafficPolicy": "Any"}}},
            "nginxIngress.externalTrafficPolicy",
        ),
    ],
)
def test_addons_are_for_evaluations(spec: Document, field: str) -> None:
    assert fields_of(a_shoot(spec=spec)) == [f"spec.addons.{field}"]
    assert fields_of(a_shoot(spec={"addons": {"nginxIngress": {"enabled": True}}, "purpose": "evaluation"})) == []


def test_an_addon_that_is_off_may_say_anything() -> None:
    for addons in (
        {"kubernetesDashboard": {"enabled": False, "authenticationMode": "basic"}},
        {"nginxIngress": {"externalTrafficPolicy": "Any"}},
    ):
        off = a_shoot(spec={"addons": addons, "purpose": "production"})
        assert fields_of(off) == []
    on = merged(off, {"spec": {"addons": {"nginxIngress": {"enabled": True}}, "purpose": "evaluation"}})
    assert fields_of(on, off) == ["spec.addons.nginxIngress.externalTrafficPolicy"]


@pytest.mark.parametrize(
    ("period", "is_taken"), [("0s", True), ("30m", True), ("2160h", True), ("29m", False), ("2161h", False)]
)
@pytest.mark.parametrize("credential", ["observability", "sshKeypair", "etcdEncryptionKey"])
def test_credentials_rotate_between_half_an_hour_and_ninety_days(
    credential: str, period: str, *, is_taken: bool
) -> None:
    path = f"spec.maintenance.autoRotation.credentials.{credential}.rotationPeriod"
    assert fields_of(changed(SHOOT, path, period)) == ([] if is_taken else [path])


ZONAL = {"failureTolerance": {"type": "zone"}}


def pinned(*zones: str, **control_plane: Any) -> Document:
    """A shoot whose control plane is in some zones."""
    return a_shoot(spec={"controlPlane": {"zones": list(zones), **control_plane}})


def test_a_control_plane_is_in_one_zone_or_in_three() -> None:
    field = ["spec.controlPlane.zones"]
    assert fields_of(pinned("a")) == fields_of(pinned("a", "b", "c", highAvailability=ZONAL)) == []
    assert fields_of(pinned("a", "b")) == fields_of(pinned("a", "b", highAvailability=ZONAL)) == field


@pytest.mark.parametrize(
    ("old", "new", "is_taken"),
    [
        (pinned("a"), pinned("b"), False),
        (a_shoot(), pinned("a"), False),
        (pinned("a"), a_shoot(), True),
        (pinned("a"), pinned("a", "b", "c", highAvailability=ZONAL), True),
        (pinned("a"), pinned("b", "c", "d", highAvailability=ZONAL), False),
    ],
)
def test_a_control_plane_keeps_its_zones(old: Document, new: Document, *, is_taken: bool) -> None:
    assert fields_of(new, old) == ([] if is_taken else ["spec.controlPlane.zones"])


WORKERLESS = changed(changed(SHOOT, f"{POOL.removesuffix('.0')}", ABSENT), "spec.networking", ABSENT)
OF_NODES: list[tuple[str, Any]] = [
    ("addons", {"kubernetesDashboard": {"enabled": False}}),
    ("secretBindingName", "one"),
    ("credentialsBindingName", "one"),
    ("systemComponents", {"coreDNS": {}}),
    ("networking.providerConfig", {"kind": "NetworkConfig"}),
    ("provider.infrastructureConfig", {"kind": "InfrastructureConfig"}),
    ("provider.controlPlaneConfig", {}),
    ("provider.workersSettings", {"sshAccess": {"enabled": False}}),
    ("kubernetes.kubeScheduler", {}),
    ("kubernetes.kubeProxy", {"enabled": True}),
    ("kubernetes.kubelet", {"maxPods": 10}),
    ("kubernetes.clusterAutoscaler", {}),
    ("kubernetes.verticalPodAutoscaler", {"enabled": False}),
    ("kubernetes.kubeControllerManager.nodeCIDRMaskSize", 24),
    ("kubernetes.kubeControllerManager.horizontalPodAutoscaler", {}),
    ("kubernetes.kubeControllerManager.podEvictionTimeout", "2m"),
    ("kubernetes.kubeControllerManager.nodeMonitorGracePeriod", "40s"),
    ("maintenance.autoUpdate.machineImageVersion", False),
    ("maintenance.autoRotation.credentials.sshKeypair", {"rotationPeriod": "0s"}),
]


@pytest.mark.parametrize(("path", "value"), OF_NODES)
def test_a_shoot_without_workers_has_nothing_that_is_for_nodes(path: str, value: Any) -> None:
    stated = changed(WORKERLESS, f"spec.{path}", value)
    assert fields_of(stated) == fields_of(stated, WORKERLESS) == [f"spec.{path}"]
    assert fields_of(changed(stated, "spec.purpose", "testing"), stated) == [], "what is stored already may stay"
    older = changed(SHOOT, "spec.kubernetes.version", "1.32.9")
    assert f"spec.{path}" not in fields_of(changed(older, f"spec.{path}", value)), "with workers it is taken"


def test_a_shoot_without_workers_may_be_highly_available_and_have_a_range_for_services() -> None:
    stated = changed(WORKERLESS, "spec.controlPlane", {"highAvailability": ZONAL})
    validate(changed(stated, "spec.networking", {"services": "100.64.0.0/13", "ipFamilies": ["IPv4"]}), None)
    validate(changed(WORKERLESS, "spec.provider.workers", []), None)


def test_ranges_of_nodes_and_pods_are_warned_of_without_workers() -> None:
    networking = {"type": "calico", "nodes": "10.0.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
    stated = changed(WORKERLESS, "spec.networking", networking)
    validate(stated, None)
    assert [each.partition(":")[0] for each in workerless_warnings(stated["spec"])] == [
        f"spec.networking.{field}" for field in ("type", "pods", "nodes")
    ]
    assert list(workerless_warnings(SHOOT["spec"])) == list(workerless_warnings(WORKERLESS["spec"])) == []


def test_a_stored_value_beyond_its_bounds_is_in_the_way_of_no_other_one() -> None:
    stored = changed(SHOOT, f"{KUBELET}.evictionHard.memoryAvailable", "110%")
    assert fields_of(changed(stored, "spec.kubernetes.version", "1.34.4"), stored) == []
    assert fields_of(changed(stored, f"{KUBELET}.maxPods", 50), stored) == []
    assert fields_of(changed(stored, f"{KUBELET}.maxPods", -1), stored) == [f"{KUBELET}.maxPods"]
    other = changed(stored, f"{KUBELET}.evictionHard.memoryAvailable", "120%")
    assert fields_of(other, stored) == [f"{KUBELET}.evictionHard.memoryAvailable"]


def test_a_stored_pool_that_breaks_a_rule_may_move_in_the_list() -> None:
    pool = {"name": "old", "priority": -5}
    stored = a_shoot(spec={"provider": {"type": "aws", "workers": [pool]}})
    new = a_shoot(spec={"provider": {"type": "aws", "workers": [{"name": "new"}, pool]}})
    assert fields_of(new, stored) == []
    worse = a_shoot(spec={"provider": {"type": "aws", "workers": [{"name": "new", "priority": -6}, pool]}})
    assert fields_of(worse, stored) == ["spec.provider.workers[0].priority"]


SERVER = "kubeAPIServer"


@pytest.mark.parametrize(
    ("path", "value", "is_taken"),
    [
        (f"{SERVER}.auditConfig", {"auditPolicy": {}}, True),
        (f"{SERVER}.auditConfig", {"auditPolicy": {"configMapRef": {"name": "audit"}}}, True),
        (f"{SERVER}.auditConfig", {"auditPolicy": {"configMapRef": {}}}, False),
        (f"{SERVER}.auditConfig", {"auditPolicy": {"configMapRef": {"name": "Not a name"}}}, False),
        (f"{SERVER}.auditConfig", {"auditPolicy": {"configMapRef": {"name": "a", "namespace": "b.c"}}}, False),
        (f"{SERVER}.structuredAuthentication", {"configMapName": "authentication"}, True),
        (f"{SERVER}.structuredAuthentication", {"configMapName": ""}, False),
        (f"{SERVER}.structuredAuthorization", {"configMapName": "a", "kubeconfigs": []}, False),
        (f"{SERVER}.structuredAuthorization", {"configMapName": "a"}, False),
        (
            f"{SERVER}.watchCacheSizes",
            {"resources": [{"apiGroup": "apps", "resource": "deployments", "size": 5}]},
            True,
        ),
        (f"{SERVER}.watchCacheSizes", {"resources": [{"apiGroup": "Apps", "resource": "deployments"}]}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://tokens.example.org/path"}, True),
        (f"{SERVER}.serviceAccountConfig", {"issuer": ""}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "http://tokens.example.org"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://[::1"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://ann@tokens.example.org"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://tokens.example.org?a=b"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://tokens.example.org#a"}, False),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://a.b", "acceptedIssuers": ["https://c.d"]}, True),
        (f"{SERVER}.serviceAccountConfig", {"issuer": "https://a.b", "acceptedIssuers": ["https://a.b"]}, False),
        (f"{SERVER}.serviceAccountConfig", {"acceptedIssuers": ["https://a.b", "https://a.b"]}, False),
        (f"{SERVER}.serviceAccountConfig", {"acceptedIssuers": ["foo"]}, False),
        ("kubelet.imagePullCredentialsVerificationPolicy", "AlwaysVerify", False),
        ("kubelet.imagePullCredentialsVerificationPolicy", "SometimesVerify", False),
        ("kubelet.preloadedImagesVerificationAllowlist", ["registry.example.org/*"], False),
    ],
)
def test_an_api_server_and_a_kubelet_take_what_gardeners_api_takes(path: str, value: Any, *, is_taken: bool) -> None:
    found = fields_of(changed(SHOOT, f"spec.kubernetes.{path}", value))
    assert bool(found) is not is_taken
    assert all(field.startswith(f"spec.kubernetes.{path}") for field in found)


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBMjCB\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("path", "value", "is_taken"),
    [
        ("provider.type", "Not a type", False),
        ("provider.workers.0.cri", {"name": "containerd"}, True),
        ("provider.workers.0.cri", {}, False),
        ("provider.workers.0.cri", {"name": ""}, False),
        ("provider.workers.0.caBundle", CERTIFICATE, True),
        ("provider.workers.0.caBundle", "ca", False),
        ("provider.workers.0.volume", {"size": "20Gi", "name": "root"}, True),
        ("provider.workers.0.volume", {"size": "20Gi", "name": "Root Volume"}, False),
        ("provider.workers.0.machineControllerManager.autoPreserveFailedMachineMax", 0, True),
        ("provider.workers.0.machineControllerManager.autoPreserveFailedMachineMax", 100, False),
        ("exposureClassName", "internet", True),
        ("exposureClassName", "a" * 300, False),
        ("extensions", [{"type": "shoot-dns-service"}], True),
        ("extensions", [{"type": "Not a type"}], False),
        ("tolerations", [{"key": "a", "value": "Not a value!"}], False),
        ("systemComponents.coreDNS.rewriting.commonSuffixes", ["example.org", ".example.com", "a.b."], True),
        ("systemComponents.coreDNS.rewriting.commonSuffixes", ["org"], False),
        ("systemComponents.coreDNS.rewriting.commonSuffixes", [".org"], False),
        ("systemComponents.coreDNS.rewriting.commonSuffixes", ["a b.org"], False),
        ("systemComponents.coreDNS.rewriting.commonSuffixes", ["example.org", ".example.org"], False),
    ],
)
def test_a_shoot_takes_the_names_that_gardeners_api_takes(path: str, value: Any, *, is_taken: bool) -> None:
    found = fields_of(changed(SHOOT, f"spec.{path}", value))
    assert bool(found) is not is_taken, found
    assert all(field.startswith(f"spec.{path}".replace(".0", "[0]")) for field in found)
