"""`MemberAgentConfiguration`: the member clusters of one process of agents. Unknown fields are problems.

apiVersion: memberagent.config.gardenbus.io/v1alpha1
kind: MemberAgentConfiguration
metadata: {name: europe}
heartbeatPeriodSeconds: 60
clusters:
- metadata: {name: lisbon, labels: {region: south}}
  spec: {taints: [{key: dedicated, value: gpu, effect: NoSchedule}]}
  properties: {kubernetes-fleet.io/node-count: "4"}
  resourceUsage: {capacity: {cpu: "16"}, allocatable: {cpu: "15"}, available: {cpu: "9"}}
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.failure_injection import FailureRequest, parse_manifest_failures
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.errors import SettingsInvalid

KIND = "MemberAgentConfiguration"
API_VERSION = "memberagent.config.gardenbus.io/v1alpha1"
DEFAULT_NAME = "default"
_LARGEST_PERIOD_SECONDS = 600

Texts = dict[str, str]
Quantities = dict[str, str | int | float]


class _StrictStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of structs that reject unknown fields."""


class MemberBackendSettings(_StrictStruct, frozen=True):
    """The backend of clusters."""

    type: str = "local"
    """`local` (a directory on this machine for each cluster), `kubernetes` (an API server), or an installed one."""

    apply_seconds: float = 0.0
    """Duration of applying one Work, of `local`."""

    available_seconds: float = 0.0
    """Time from applied to available of a manifest that starts something, of `local`."""

    kubeconfig: str = "kubeconfig"
    """Kubeconfig of a cluster, of `kubernetes`: a file, relative to the cluster's directory in the state directory."""

    timeout_seconds: float = 10.0
    """Longest duration of a request to a cluster, of `kubernetes`."""

    options: dict[str, Any] = {}
    """Settings of a backend that is not the member agent's own, as it reads them."""


class ClusterMetadata(_StrictStruct, frozen=True):
    """Metadata of a MemberCluster."""

    name: str
    labels: Texts = {}
    annotations: Texts = {}


class TaintSettings(_StrictStruct, frozen=True):
    """A taint of a MemberCluster."""

    key: str
    """The taint's key."""

    value: str = ""
    """Compared by tolerations with the operator `Equal`."""

    effect: Literal["NoSchedule"] = "NoSchedule"
    """The only effect there is."""


class ClusterSpec(_StrictStruct, frozen=True):
    """Spec of a MemberCluster."""

    taints: tuple[TaintSettings, ...] = ()
    """Taints that keep placements off."""

    heartbeat_period_seconds: int | None = None
    """Overrides the configuration's period."""


class UsageSettings(_StrictStruct, frozen=True):
    """Resources of a cluster, quantities by resource."""

    capacity: Quantities = {}
    """Total resources."""

    allocatable: Quantities = {}
    """Resources that workloads may use."""

    available: Quantities = {}
    """Allocatable resources that are free."""


class ClusterSettings(_StrictStruct, frozen=True):
    """One cluster."""

    metadata: ClusterMetadata
    spec: ClusterSpec = ClusterSpec()
    properties: Quantities = {}
    """Properties that the agent reports."""

    resource_usage: UsageSettings = UsageSettings()
    namespaces: tuple[str, ...] = ()
    """Namespaces that exist in it from the start."""

    kubeconfig: str = ""
    """Overrides the backend's `kubeconfig`."""

    shoot: str = ""
    """The shoot of the landscape that it is (`namespace/name`): its kubeconfig comes from there."""

    failures: str = ""
    """Failures that are injected; their targets are manifests (see `failure_injection`)."""

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return self.metadata.name

    @property
    def failure_requests(self) -> tuple[FailureRequest, ...]:
        """The parsed failures."""
        return parse_manifest_failures(self.failures)


class ConfigurationMetadata(_StrictStruct, frozen=True):
    """Metadata of a configuration."""

    name: str = DEFAULT_NAME
    """Configurations with different names may run side by side."""


class MemberAgentConfiguration(_StrictStruct, frozen=True):
    """One process of member agents."""

    api_version: Literal["memberagent.config.gardenbus.io/v1alpha1"]
    kind: Literal["MemberAgentConfiguration"]
    metadata: ConfigurationMetadata = ConfigurationMetadata()
    clusters: tuple[ClusterSettings, ...] = ()
    """Clusters that it reports on."""

    heartbeat_period_seconds: int = 60
    """Period of each cluster's heartbeat; 1 to 600."""

    registration: Literal["Once", "Never"] = "Once"
    """`Once`: the agent registers its clusters, and not again after somebody removed them. `Never`: people apply the
    MemberClusters, and the agent reports on them."""

    enrol_seeds: bool = False
    """Makes the landscape's Seeds member clusters, too."""

    backend: MemberBackendSettings = MemberBackendSettings()
    """The backend of the clusters."""


def parse_configurations(text: str | bytes, *, source: str = "configuration") -> list[MemberAgentConfiguration]:
    """Read a file of one or several documents, YAML or JSON. Raises SettingsInvalid with what is wrong in each."""
    documents = reader.load_all(text, source=source)
    problems: list[str] = [] if documents else [f"{source}: no document"]
    found: list[MemberAgentConfiguration] = []
    for document in documents:
        try:
            found.append(msgspec.convert(document, MemberAgentConfiguration))
            problems += [f"{source}: {problem}" for problem in _problems(found[-1])]
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: of a lone surrogate
            problems.append(f"{source}: {error}")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return found


def check_together(configurations: Sequence[MemberAgentConfiguration]) -> list[str]:
    """Problems of several configurations of one process."""
    names = [cluster.name for each in configurations for cluster in each.clusters]
    problems = [f"cluster {name} is configured twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if sum(each.enrol_seeds for each in configurations) > 1:
        problems.append("enrolSeeds: set in more than one configuration")
    return problems


def _problems(configuration: MemberAgentConfiguration) -> list[str]:
    problems: list[str] = []
    if not configuration.clusters and not configuration.enrol_seeds:
        problems.append("clusters: there are none, and Seeds are not enrolled")
    if configuration.enrol_seeds and configuration.registration == "Never":
        problems.append("registration: cannot be Never where enrolSeeds is true: nothing else creates those clusters")
    problems += _problem("heartbeatPeriodSeconds", _period, configuration.heartbeat_period_seconds)
    for number, cluster in enumerate(configuration.clusters):
        problems += _cluster_problems(f"clusters[{number}]", cluster)
    backend = configuration.backend
    if min(backend.apply_seconds, backend.available_seconds) < 0:
        problems.append("backend: seconds must not be negative")
    if backend.timeout_seconds <= 0:
        problems.append("backend.timeoutSeconds: must be more than 0")
    return problems


def _cluster_problems(path: str, cluster: ClusterSettings) -> list[str]:
    problems: list[str] = []
    problems += _problem(f"{path}.metadata.name", reader.label, cluster.name)
    if cluster.spec.heartbeat_period_seconds is not None:
        problems += _problem(f"{path}.spec.heartbeatPeriodSeconds", _period, cluster.spec.heartbeat_period_seconds)
    usage = msgspec.structs.asdict(cluster.resource_usage)
    stated = {"properties": cluster.properties, **{f"resourceUsage.{name}": usage[name] for name in usage}}
    for field, values in stated.items():
        for name, value in values.items():
            problems += _problem(f"{path}.{field}.{name}", parse_quantity, value)
    problems += _problem(f"{path}.failures", parse_manifest_failures, cluster.failures)
    if cluster.shoot and not _is_shoot(cluster.shoot):
        problems.append(f"{path}.shoot: must be namespace/name, is {cluster.shoot!r}")
    if cluster.shoot and cluster.kubeconfig:
        problems.append(f"{path}.shoot: cannot stand beside kubeconfig: keep one of them")
    return problems


def _is_shoot(text: str) -> bool:
    parts = text.split("/")
    return len(parts) == 2 and all(parts)  # noqa: PLR2004 - namespace and name


def _problem(path: str, parse: Callable[[Any], object], value: object) -> list[str]:
    try:
        parse(value)
    except ValueError as error:
        return [f"{path}: {error}"]
    return []


_period = reader.checked(lambda value: 1 <= value <= _LARGEST_PERIOD_SECONDS, f"must be 1 to {_LARGEST_PERIOD_SECONDS}")
