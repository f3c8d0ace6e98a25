"""Relations between placements, clusters, bindings, Works and evictions, for `describe`."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX, namespace_of
from gardenbus.common.api.fleet.placement_parts import PARENT_BINDING_LABEL, of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, KINDS, PARENT_LABEL
from gardenbus.common.api.keys import ObjectKey

_BINDINGS = tuple(of(kind).binding.lower() for kind in KINDS)


class DependentsQuery(NamedTuple):
    """Query for the objects that belong to another: a word for them, the list's subject, and its selectors."""

    word: str
    tail: str
    labels: str = ""
    fields: str = ""


def fleet_relations(document: Document) -> Iterator[tuple[str, ObjectKey]]:
    """The objects that one of batch placement names, beside its owners."""
    spec = as_mapping(document.get("spec"))
    metadata = as_mapping(document.get("metadata"))
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
    kind = str(document.get("kind")).lower()
    if kind in _BINDINGS:
        parts = of(CLUSTER_KIND if kind == _BINDINGS[0] else KINDS[1])
        yield "cluster", ObjectKey("membercluster", "", str(spec.get("targetCluster") or ""))
        policy, resources = spec.get("schedulingPolicySnapshotName"), spec.get("resourceSnapshotName")
        yield "by policy", ObjectKey(parts.policy_snapshot.lower(), namespace, str(policy or ""))
        yield "brings", ObjectKey(parts.resource_snapshot.lower(), namespace, str(resources or ""))
    elif kind == "work":
        yield "cluster", ObjectKey("membercluster", "", namespace.removeprefix(CLUSTER_NAMESPACE_PREFIX))
    elif kind == "clusterresourceplacementeviction":
        yield "placement", ObjectKey(CLUSTER_KIND, "", str(spec.get("placementName") or ""))
        yield "cluster", ObjectKey("membercluster", "", str(spec.get("clusterName") or ""))
    elif kind == "clusterresourceplacementdisruptionbudget":
        yield "placement", ObjectKey(CLUSTER_KIND, "", name)
    elif kind == CLUSTER_KIND:
        yield "budget", ObjectKey("clusterresourceplacementdisruptionbudget", "", name)


def fleet_queries(document: Document) -> Sequence[DependentsQuery]:
    """Queries for the objects that belong to an object of batch placement."""
    metadata = as_mapping(document.get("metadata"))
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
    kind = str(document.get("kind")).lower()
    if kind == "membercluster":
        fields = f"spec.targetCluster={name}"
        bindings = [DependentsQuery("placements" if each == _BINDINGS[0] else "of namespaces", each, fields=fields)
                    for each in _BINDINGS]  # fmt: skip
        return [*bindings, DependentsQuery("Works", f"work.{namespace_of(name)}")]
    if kind in KINDS:
        ours = f"{PARENT_LABEL}={name}"
        tail = f"{of(kind).binding.lower()}{f'.{namespace}' if namespace else ''}"
        return [DependentsQuery("bindings", tail, ours), DependentsQuery("Works", "work", ours)]
    if kind in _BINDINGS:
        return [DependentsQuery("Works", "work", f"{PARENT_BINDING_LABEL}={name}")]
    return []


async def fleet_parties(api: ApiClient, document: Document) -> list[tuple[str, list[Document]]]:
    """Those who belong to an object and may be read, each list under a word. Raises ApiError, Unavailable."""
    found: list[tuple[str, list[Document]]] = []
    bindings: set[str] | None = None
    for related in fleet_queries(document):
        query = {"labelSelector": related.labels, "fieldSelector": related.fields}
        try:
            items = await api.items(related.tail, {name: text for name, text in query.items() if text})
        except ApiError as error:
            if error.error.get("code") != HTTPStatus.FORBIDDEN:
                raise
            continue  # Works hold Secrets: not everybody who reads a placement reads them
        if related.word == "bindings":
            bindings = {str(as_mapping(item.get("metadata")).get("name")) for item in items}
        elif bindings is not None:
            items = [item for item in items if _binding_of(item) in bindings]
        if items or related.word != "of namespaces":
            found.append((related.word, items))
    return found


def _binding_of(work: Document) -> str:
    return str(as_mapping(as_mapping(work.get("metadata")).get("labels")).get(PARENT_BINDING_LABEL) or "")
