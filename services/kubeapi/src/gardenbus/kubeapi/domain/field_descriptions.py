"""Descriptions of fields for `kubectl explain`: the sentences of the typed views, which the reference shows as well."""

import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import msgspec

from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.kubeapi.domain.field_docs import field_docs

_VIEWS: Mapping[str, type[msgspec.Struct]] = {
    "Shoot": Shoot,
    "Seed": Seed,
    "CloudProfile": CloudProfile,
    "NamespacedCloudProfile": NamespacedCloudProfile,
    "Project": Project,
    "SeedAutoscaler": SeedAutoscaler,
}

METADATA: Mapping[str, str] = {
    "annotations": "Free key-value pairs for tools; what is not for selecting.",
    "creationTimestamp": "Time at which the server stored the object first.",
    "deletionTimestamp": "Time at which the deletion was requested; finalizers hold the object for a while.",
    "finalizers": "Names of those who have work to do before the object is removed.",
    "generateName": "Prefix of a name that the server completes.",
    "generation": "Number that grows with each change of the spec.",
    "labels": "Key-value pairs that selectors match.",
    "name": "Name of the object, unique within its kind and namespace.",
    "namespace": "Namespace of the object; a Project has one.",
    "ownerReferences": "Objects that this one depends on: it is removed with the last of them.",
    "resourceVersion": "Version of the object; a write that states another one is rejected with a conflict.",
    "uid": "Id of the object, never used twice.",
}
"""Of metadata, the same for all kinds."""

_MORE: Mapping[str, Mapping[str, str]] = {
    "Shoot": {
        "spec.addons": "Additional components that are installed in the cluster.",
        "spec.controlPlane": "Settings of the control plane: its high availability, and zones of the seed.",
        "spec.dns": "Domain of the cluster and the providers of its records; without one it gets one of the landscape.",
        "spec.dns.domain": "Domain of the API server and the ingresses of the cluster; it never changes.",
        "spec.dns.providers": "DNS providers of the domain, and the Secrets with which records are made there.",
        "spec.extensions": "Extensions of the cluster, each with its own configuration.",
        "spec.hibernation": "Whether the cluster is hibernated, and schedules by which it is.",
        "spec.kubernetes": "Version of Kubernetes and the configuration of its components.",
        "spec.kubernetes.version": "Version of Kubernetes; it can be raised by one minor version at a time.",
        "spec.maintenance": "Time window of maintenance, and which versions are raised in it.",
        "spec.monitoring": "Settings of alerts about the cluster.",
        "spec.networking": "Network of the cluster: its type, and the ranges of nodes, pods and services.",
        "spec.provider": "Infrastructure provider, with its configuration and the worker pools.",
        "spec.resources": "Objects of the Project that extensions of the cluster refer to.",
        "spec.systemComponents": "Settings of the components that each cluster has.",
        "status.conditions": "Conditions of the control plane and the nodes, as they were observed last.",
        "status.lastOperation": "The last operation on the cluster: its type, state and progress.",
        "status.lastErrors": "Errors of the last operation, with Gardener's codes.",
    },
    "Seed": {
        "spec.backup": "Where the etcds of control planes on this seed are backed up to.",
        "spec.dns": "DNS provider and domain of what runs on the seed.",
        "spec.ingress": "Domain and controller of the seed's ingresses.",
        "spec.networks": "Ranges of the seed's network, and defaults for its shoots.",
        "spec.provider": "Infrastructure provider of the seed, its region and zones.",
        "spec.settings": "Settings of the seed: whether shoots are scheduled to it, excess capacity, load balancers.",
        "spec.taints": "Taints that a shoot has to tolerate to be placed here.",
        "status.capacity": "Shoots that the seed has room for.",
        "status.conditions": "Conditions of the gardenlet, backups, extensions and system components.",
    },
}
"""Of fields that no view describes: those that are asked for first."""

_TOP = {"spec": "What is wanted.", "status": "What was observed last; the server and the agents write it."}


@cache
def descriptions_of(kind: str) -> Mapping[str, str]:
    """Descriptions by path (`spec.dns.domain`); "" is the kind's own. Of a kind without a view there are few."""
    view = _VIEWS.get(kind)
    if view is None:
        return _TOP
    own = {path: text for path, text in _described(view, "") if not text.strip("`.").startswith(("spec", "status"))}
    return {**_TOP, "": (view.__doc__ or "").strip(), **own, **_MORE.get(kind, {})}


def _described(view: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str]]:
    docs, hints = field_docs(view), get_type_hints(view, include_extras=True)
    for field in msgspec.structs.fields(view):
        path, inner = f"{prefix}{field.encode_name}", _inside(hints[field.name])
        if text := docs.get(field.name):
            yield path, text
        if inner is None or path == "metadata":
            continue
        if not text and inner.__doc__:
            yield path, inner.__doc__.strip()
        yield from _described(inner, f"{path}.")


def _inside(hint: object) -> type[msgspec.Struct] | None:
    """The view in a type, also of its list or its alternative to None."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    if get_origin(hint) in (Union, types.UnionType, tuple, list, dict, Annotated):
        return next(filter(None, map(_inside, get_args(hint))), None)
    return None
