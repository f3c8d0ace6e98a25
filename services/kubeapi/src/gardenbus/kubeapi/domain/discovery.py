"""Discovery documents: groups, versions and resources, aggregated or one by one."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.kubeapi.domain.resources import ApiResource, Subresource, groups

AGGREGATED_VERSIONS = ("v2", "v2beta1")


@cache
def aggregated(version: str, *, core: bool) -> Document:
    """All resources in one document (`APIGroupDiscoveryList`)."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [
                {"version": each, "resources": [*map(_aggregated, resources)], "freshness": "Current"}
                for each, resources in versions.items()
            ],
        }
        for group, versions in groups().items()
        if (group == "") is core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated(resource: ApiResource) -> Document:
    subresources = [
        {"subresource": each.name, "responseKind": _kind_of(resource, each), "verbs": [*each.verbs]}
        for each in resource.subresources
    ]
    found: Document = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": [*resource.verbs],
    }
    if resource.short_names:
        found["shortNames"] = [*resource.short_names]
    if subresources:
        found["subresources"] = subresources
    return found


def _kind_of(resource: ApiResource, subresource: Subresource) -> Mapping[str, str]:
    if not subresource.kind:
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {"group": subresource.group, "version": subresource.version, "kind": subresource.kind}


def api_versions(address: str) -> Document:
    """`/api`: versions of the core group."""
    found = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": [*groups()[""]], "serverAddressByClientCIDRs": found}


def group_list() -> Document:
    """`/apis`: all groups but the core one."""
    found = [_group(group, versions) for group, versions in groups().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(name: str) -> Document | None:
    """`/apis/<group>`; None where there is none."""
    versions = groups().get(name) if name else None
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Mapping[str, Sequence[ApiResource]]) -> Document:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(group_name: str, version: str) -> Document | None:
    """`/api/v1`, `/apis/<group>/<version>`; None where there is none."""
    resources = groups().get(group_name, {}).get(version)
    if resources is None:
        return None
    named = f"{group_name}/{version}" if group_name else version
    listed = [entry for resource in resources for entry in _entries(resource)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": named, "resources": listed}


def _entries(resource: ApiResource) -> list[Document]:
    own: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": [*resource.verbs],
    }
    if resource.short_names:
        own["shortNames"] = [*resource.short_names]
    parts: list[Document] = [
        {
            "name": f"{resource.plural}/{each.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "verbs": [*each.verbs],
            **({"group": each.group, "version": each.version} if each.kind else {}),
            "kind": each.kind or resource.kind,
        }
        for each in resource.subresources
    ]
    return [own, *parts]
