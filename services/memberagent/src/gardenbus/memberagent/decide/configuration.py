"""The configuration of member agents: which clusters one process speaks for, and how. Strict in all that it holds.

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

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
import yaml

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.member_clusters import reporter_of
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.memberagent.decide.failures import FailureRequest, parse_failure_requests

KIND = "MemberAgentConfiguration"
API_VERSION = "memberagent.config.gardenbus.io/v1alpha1"
DEFAULT_NAME = "default"
FINGERPRINT = "memberagent.gardenbus.io/configuration"
"""Annotation of a MemberCluster: what its agent registered it as. People's changes stay until that changes.

A MemberCluster without it was applied by people as a whole, and is theirs: the agent only reports on it.
"""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LARGEST_PERIOD_SECONDS = 600

Texts = dict[str, str]
Quantities = dict[str, str | int | float]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Strict: what is not known is a mistake."""


class BackendSettings(_Part, frozen=True):
    """How the clusters are played."""

    type: Literal["local"] = "local"
    """A directory on this machine for each cluster."""

    apply_seconds: float = 0.0
    """How long applying one Work takes."""

    available_seconds: float = 0.0
    """How long a manifest that has to start something needs from being applied to being available."""


class ClusterMetadata(_Part, frozen=True):
    """What a cluster is called."""

    name: str
    """Its name."""

    labels: Texts = {}
    """Its labels."""

    annotations: Texts = {}
    """Its annotations."""


class TaintSettings(_Part, frozen=True):
    """What keeps placements off."""

    key: str
    """What it is about."""

    value: str = ""
    """Compared where a toleration says `Equal`."""

    effect: Literal["NoSchedule"] = "NoSchedule"
    """The only effect there is."""


class ClusterSpec(_Part, frozen=True):
    """What is wanted of a cluster."""

    taints: tuple[TaintSettings, ...] = ()
    """What keeps placements off."""

    heartbeat_period_seconds: int | None = None
    """Another period than the configuration's."""


class UsageSettings(_Part, frozen=True):
    """What a cluster has; quantities by resource."""

    capacity: Quantities = {}
    """All there is."""

    allocatable: Quantities = {}
    """What of it can be used."""

    available: Quantities = {}
    """What of that is free."""


class ClusterSettings(_Part, frozen=True):
    """One cluster."""

    metadata: ClusterMetadata
    spec: ClusterSpec = ClusterSpec()
    properties: Quantities = {}
    """What is measured of it."""

    resource_usage: UsageSettings = UsageSettings()
    """What it has, and what of it is free."""

    namespaces: tuple[str, ...] = ()
    """Those that are in it already."""

    failures: str = ""
    """Failures that are asked for: see `decide.failures`; targets are manifests."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def failure_requests(self) -> tuple[FailureRequest, ...]:
        """The failures, read."""
        return parse_failure_requests(self.failures)


class ConfigurationMetadata(_Part, frozen=True):
    """What a configuration is called."""

    name: str = DEFAULT_NAME
    """Configurations of different names run side by side."""


class MemberAgentConfiguration(_Part, frozen=True):
    """What one process of agents does."""

    api_version: Literal["memberagent.config.gardenbus.io/v1alpha1"]
    kind: Literal["MemberAgentConfiguration"]
    metadata: ConfigurationMetadata = ConfigurationMetadata()
    clusters: tuple[ClusterSettings, ...] = ()
    """The clusters that it speaks for."""

    heartbeat_period_seconds: int = 60
    """How often each is reported; 1 to 600."""

    registration: Literal["Once", "Never"] = "Once"
    """Whether the agent brings its clusters into the fleet: `Once`, and not again after they were taken out; or
    `Never`: people apply the MemberClusters, and the agent reports on them."""

    enrol_seeds: bool = False
    """Whether the landscape's Seeds become member clusters, too."""

    backend: BackendSettings = BackendSettings()
    """How the clusters are played."""


def parse_configurations(text: bytes, *, source: str = "configuration") -> list[MemberAgentConfiguration]:
    """Read a file of one or several documents, YAML or JSON. Raises SettingsInvalid with what is wrong in each."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise SettingsInvalid((f"{source}: {error}",)) from error
    problems: list[str] = [] if documents else [f"{source}: no document"]
    found: list[MemberAgentConfiguration] = []
    for document in documents:
        try:
            configuration = msgspec.convert(document, MemberAgentConfiguration)
        except msgspec.ValidationError as error:
            problems.append(f"{source}: {error}")
            continue
        problems += [f"{source}: {problem}" for problem in _problems(configuration)]
        found.append(configuration)
    if problems:
        raise SettingsInvalid(tuple(problems))
    return found


def check_together(configurations: Sequence[MemberAgentConfiguration]) -> list[str]:
    """What is wrong with several configurations as a whole."""
    names = [cluster.name for each in configurations for cluster in each.clusters]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [f"cluster {name} is configured twice" for name in twice]
    if sum(each.enrol_seeds for each in configurations) > 1:
        problems.append("enrolSeeds: more than one configuration says so")
    return problems


def _problems(configuration: MemberAgentConfiguration) -> list[str]:
    problems: list[str] = []
    if not configuration.clusters and not configuration.enrol_seeds:
        problems.append("clusters: there are none, and Seeds are not enrolled")
    if configuration.enrol_seeds and configuration.registration == "Never":
        problems.append("registration: cannot be Never where enrolSeeds is true: nobody else makes those clusters")
    periods = {"heartbeatPeriodSeconds": configuration.heartbeat_period_seconds}
    for number, cluster in enumerate(configuration.clusters):
        path = f"clusters[{number}]"
        if _LABEL.fullmatch(cluster.name) is None:
            problems.append(f"{path}.metadata.name: must be a lower-case RFC 1123 label, is {cluster.name!r}")
        if cluster.spec.heartbeat_period_seconds is not None:
            periods[f"{path}.spec.heartbeatPeriodSeconds"] = cluster.spec.heartbeat_period_seconds
        problems += _quantity_problems(f"{path}.properties", cluster.properties)
        for field in ("capacity", "allocatable", "available"):
            problems += _quantity_problems(f"{path}.resourceUsage.{field}", getattr(cluster.resource_usage, field))
        try:
            parse_failure_requests(cluster.failures)
        except ValueError as error:
            problems.append(f"{path}.failures: {error}")
    problems += [
        f"{path}: must be 1 to {_LARGEST_PERIOD_SECONDS}, is {period}"
        for path, period in periods.items()
        if not 1 <= period <= _LARGEST_PERIOD_SECONDS
    ]
    if min(configuration.backend.apply_seconds, configuration.backend.available_seconds) < 0:
        problems.append("backend: seconds must not be negative")
    return problems


def _quantity_problems(path: str, quantities: Quantities) -> list[str]:
    problems: list[str] = []
    for name, value in quantities.items():
        try:
            parse_quantity(value)
        except ValueError as error:
            problems.append(f"{path}.{name}: {error}")
    return problems


def member_cluster_manifest(cluster: ClusterSettings, *, period_seconds: int) -> Document:
    """The MemberCluster that a configured cluster is registered as."""
    return fingerprinted(
        {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {
                "name": cluster.name,
                "labels": dict(cluster.metadata.labels),
                "annotations": dict(cluster.metadata.annotations),
            },
            "spec": {
                "identity": identity_of(cluster.name),
                "heartbeatPeriodSeconds": cluster.spec.heartbeat_period_seconds or period_seconds,
                "taints": cast("list[Any]", msgspec.to_builtins(cluster.spec.taints)),
            },
        }
    )


def identity_of(cluster: str) -> Document:
    """Who speaks for a cluster."""
    return {"kind": "User", "name": reporter_of(cluster), "apiGroup": "rbac.authorization.k8s.io"}


def fingerprinted(manifest: Document) -> Document:
    """A manifest with the annotation by which it is known whether it has been registered as it is now."""
    digest = hashlib.sha256(encode(manifest)).hexdigest()[:16]
    metadata: Mapping[str, Any] = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), FINGERPRINT: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}
