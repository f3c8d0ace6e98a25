"""API groups and resources that a Shoot's `runtimeConfig` switches on and off.

A line has a group with its version, then its resources; `+` the version of Kubernetes that one came with, `-` the one
that it went with, and the bounds of its group hold for a resource as well. `!` marks what a cluster with workers cannot
do without, `!!` what one without workers cannot either. Source: `ValidateAPIGroupVersions` in Gardener's
`pkg/utils/validation/apigroups`, v1.149.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.workerless import is_workerless
from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of
from gardenbus.common.api.garden.kubernetes_features import VersionedFeature

_ENTRY = re.compile(r"(?P<name>[^+!]+?)(?:\+(?P<added>[0-9.]+))?(?:-(?P<removed>[0-9]+\.[0-9]+))?(?P<marks>!*)")


class _API(NamedTuple):
    """A group's version, or a resource in it: where it is, and whether clusters need it."""

    versions: VersionedFeature
    group: str
    is_needed: bool
    is_needed_without_workers: bool


def check_runtime_config(spec: FieldCursor) -> None:
    """Note APIs that the version of a Shoot does not have, and such that it cannot be without."""
    configuration = spec.nested("kubernetes", "kubeAPIServer", "runtimeConfig")
    version = numbers_of(spec.section("kubernetes").content.get("version"))[:2]
    for name in configuration.content:
        if problem := _problem(name, version):
            configuration.errors.add_error(f"{configuration.path}[{name[:80]}]", problem)
        elif configuration.boolean(name) is False and (needed := _needed(name, spec)):
            configuration.errors.add_error(
                f"{configuration.path}[{name}]", f"cannot be switched off: the shoot needs {needed}"
            )


def _problem(name: str, version: Numbers) -> str:
    api = _apis().get(name)
    if api is None:
        return "there is no such API: write it as apps/v1, or apps/v1/deployments"
    if not api.versions.is_in(version) or not _apis()[api.group].versions.is_in(version):
        return f"Kubernetes {'.'.join(map(str, version))} does not have this API: leave it out"
    return ""


def _needed(name: str, spec: FieldCursor) -> str:
    """The API that a shoot would lose with another, and cannot be without; "" where there is none."""
    is_of_workers = not is_workerless(spec.content)
    group = _apis()[name].group
    lost = [name, group] if name != group else [each for each, api in _apis().items() if api.group == name]
    for each in lost:
        api = _apis()[each]
        if api.is_needed if is_of_workers else api.is_needed_without_workers:
            return each
    return ""


@cache
def _apis() -> Mapping[str, _API]:
    """The APIs by name, each group before its resources."""
    found: dict[str, _API] = {}
    group = ""
    for line in _APIS.replace("\n  ", " ").split("\n"):
        first, *resources = line.split(" ")
        group, api = _api(first, "")
        found[group] = api
        for resource in resources:
            name, api = _api(resource, group)
            found[f"{group}/{name}"] = api
    return found


def _api(entry: str, group: str) -> tuple[str, _API]:
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        raise ValueError(f"no line of the table of APIs: {entry}")
    versions = VersionedFeature(numbers_of(parts["added"]), numbers_of(parts["removed"]))
    return parts["name"], _API(versions, group or parts["name"], bool(parts["marks"]), parts["marks"] == "!!")


_APIS = """\
admissionregistration.k8s.io/v1! mutatingadmissionpolicies+1.36 mutatingadmissionpolicybindings+1.36
  mutatingwebhookconfigurations! validatingadmissionpolicies+1.30 validatingadmissionpolicybindings+1.30
  validatingwebhookconfigurations!
admissionregistration.k8s.io/v1alpha1 mutatingadmissionpolicies+1.32 mutatingadmissionpolicybindings+1.32
  validatingadmissionpolicies validatingadmissionpolicybindings
admissionregistration.k8s.io/v1beta1 mutatingadmissionpolicies+1.34 mutatingadmissionpolicybindings+1.34
  mutatingwebhookconfigurations validatingadmissionpolicies+1.28 validatingadmissionpolicybindings+1.28
  validatingwebhookconfigurations
apps/v1! controllerrevisions daemonsets deployments replicasets statefulsets
apps/v1beta1 controllerrevisions deployments statefulsets
apps/v1beta2 controllerrevisions daemonsets deployments replicasets statefulsets
autoscaling/v1 horizontalpodautoscalers
autoscaling/v2 horizontalpodautoscalers!
autoscaling/v2beta1-1.36 horizontalpodautoscalers
autoscaling/v2beta2-1.36 horizontalpodautoscalers
batch/v1 cronjobs jobs
batch/v1beta1 cronjobs
certificates.k8s.io/v1 certificatesigningrequests!
certificates.k8s.io/v1alpha1 clustertrustbundles podcertificaterequests+1.34-1.35
certificates.k8s.io/v1beta1 clustertrustbundles+1.33 certificatesigningrequests podcertificaterequests+1.35
coordination.k8s.io/v1 leases!
coordination.k8s.io/v1alpha1+1.31-1.32 leasecandidates
coordination.k8s.io/v1alpha2+1.32 leasecandidates
coordination.k8s.io/v1beta1 leasecandidates+1.33 leases
discovery.k8s.io/v1 endpointslices!!
discovery.k8s.io/v1beta1 endpointslices
events.k8s.io/v1 events!!
events.k8s.io/v1beta1 events
extensions/v1beta1 daemonsets deployments ingresses networkpolicies replicasets
flowcontrol.apiserver.k8s.io/v1+1.29 flowschemas prioritylevelconfigurations
flowcontrol.apiserver.k8s.io/v1beta1 flowschemas prioritylevelconfigurations
flowcontrol.apiserver.k8s.io/v1beta2 flowschemas prioritylevelconfigurations
flowcontrol.apiserver.k8s.io/v1beta3 flowschemas prioritylevelconfigurations
internal.apiserver.k8s.io/v1alpha1 storageversions
networking.k8s.io/v1!! ingressclasses ingresses ipaddresses+1.33 networkpolicies servicecidrs+1.33
networking.k8s.io/v1alpha1-1.34 ipaddresses servicecidrs+1.29
networking.k8s.io/v1beta1 ingressclasses ingresses ipaddresses-1.31 servicecidrs-1.31
node.k8s.io/v1 runtimeclasses!
node.k8s.io/v1alpha1 runtimeclasses
node.k8s.io/v1beta1 runtimeclasses
policy/v1 poddisruptionbudgets!
policy/v1beta1 poddisruptionbudgets
rbac.authorization.k8s.io/v1!! clusterrolebindings clusterroles rolebindings roles
rbac.authorization.k8s.io/v1alpha1 clusterrolebindings clusterroles rolebindings roles
rbac.authorization.k8s.io/v1beta1 clusterrolebindings clusterroles rolebindings roles
resource.k8s.io/v1+1.34 deviceclasses resourceclaims resourceclaimtemplates resourceslices
resource.k8s.io/v1alpha2-1.31 podschedulingcontexts resourceclaimparameters+1.30 resourceclaims
  resourceclaimtemplates resourceclasses resourceclassparameters+1.30 resourceslices+1.30
resource.k8s.io/v1alpha3+1.31 deviceclasses-1.34 devicetaintrules+1.33 podschedulingcontexts-1.32
  resourceclaims-1.34 resourceclaimtemplates-1.34 resourcepoolstatusrequests+1.36 resourceslices-1.34
resource.k8s.io/v1beta1+1.32 deviceclasses resourceclaims resourceclaimtemplates resourceslices
resource.k8s.io/v1beta2+1.33 deviceclasses devicetaintrules+1.36 resourceclaims resourceclaimtemplates
  resourceslices
scheduling.k8s.io/v1 priorityclasses!
scheduling.k8s.io/v1alpha1-1.36 priorityclasses workloads+1.35
scheduling.k8s.io/v1alpha2+1.36 podgroups workloads
scheduling.k8s.io/v1beta1 priorityclasses
storage.k8s.io/v1! csidrivers csinodes csistoragecapacities storageclasses volumeattachments
  volumeattributesclasses+1.34
storage.k8s.io/v1alpha1 csistoragecapacities volumeattachments volumeattributesclasses+1.29
storage.k8s.io/v1beta1 csidrivers csinodes csistoragecapacities storageclasses volumeattachments
  volumeattributesclasses+1.31
storagemigration.k8s.io/v1alpha1+1.30-1.35 storageversionmigrations
storagemigration.k8s.io/v1beta1+1.35 storageversionmigrations
v1!! componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims
  persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services"""
