"""Reads a placement and what stands of it: policy snapshot, bindings, the newest resources, the clusters."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, parse_resource
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.fleet.placement_parts import IS_LATEST_LABEL, of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, KINDS, NAMESPACED_KIND, PARENT_LABEL
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound

ANY_PLACEMENT = "placement"
"""The word for both kinds."""

_WORDS = (ANY_PLACEMENT, f"{ANY_PLACEMENT}s")
_NOT_FOUND = 404


class PlacementArg(NamedTuple):
    """A placement by name; a kind of None is either, the cluster-scoped one first."""

    kind: str | None
    name: str


class PlacementState(NamedTuple):
    """A placement and what stands of it, as manifests."""

    placement: Document
    snapshot: Document | None
    """Of its policy, the latest; None while there is none, or not exactly one."""

    bindings: Sequence[Document]
    resources: str
    """The newest resource snapshot, by the name of its first part; "" while there is none."""

    clusters: Sequence[str]
    """All member clusters."""


def parse_placement_arg(words: Sequence[str]) -> PlacementArg | None:
    """Read `placement NAME`, `crp NAME`, `rp NAMESPACE/NAME`, `crp/NAME`….

    None where the words are about something else; raises BadRequest when they name no placement, or several.
    """
    first, slash, rest = words[0].partition("/")
    if not slash and len(words) == 1:
        return None
    kind = None
    if first.lower() not in _WORDS:
        try:
            kind = parse_resource([first]).kind
        except BadRequest:
            return None
        if kind not in KINDS:
            return None
    names = ([rest] if slash else []) + list(words[1:])
    if len(names) != 1 or not names[0]:
        raise BadRequest("one placement is explained: placement NAME, crp NAME, or rp NAME -n NAMESPACE")
    return PlacementArg(kind, names[0])


async def get_placement(api: ApiClient, wanted: PlacementArg, namespace: str | None) -> Document:
    """The placement that is meant. Raises ApiError, NotFound, BadRequest, Unavailable."""
    is_namespaced = namespace is not None or "/" in wanted.name
    if wanted.kind == CLUSTER_KIND and "/" in wanted.name:
        raise BadRequest(f"{wanted.name}: a ClusterResourcePlacement has no namespace")
    if wanted.kind is None and not is_namespaced:
        response = await api.request(f"get.{CLUSTER_KIND}._.{wanted.name}")
        if response.ok:
            return as_mapping(response.result)
        if response.error.get("code") != _NOT_FOUND:
            return await get_object(api, ResourceArgs(CLUSTER_KIND, (), is_namespaced=False), wanted.name, None)
    if wanted.kind == CLUSTER_KIND:
        return await get_object(api, ResourceArgs(CLUSTER_KIND, (), is_namespaced=False), wanted.name, None)
    try:
        return await get_object(api, ResourceArgs(NAMESPACED_KIND, (), is_namespaced=True), wanted.name, namespace)
    except NotFound as error:
        raise _nowhere(wanted) from error


def _nowhere(wanted: PlacementArg) -> GardenbusError:
    kinds = "no ClusterResourcePlacement, and no ResourcePlacement" if wanted.kind is None else "no ResourcePlacement"
    return NotFound(f"placement {wanted.name} not found: {kinds} in any namespace is called so")


async def read_placement_state(api: ApiClient, placement: Document) -> PlacementState:
    """Collect the state of a placement. Raises ApiError, Unavailable."""
    kind = str(placement.get("kind")).lower()
    metadata = as_mapping(placement.get("metadata"))
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
    parts = of(kind)
    ours = f"{PARENT_LABEL}={name}"
    latest = f"{ours},{IS_LATEST_LABEL}=true"
    snapshots = await api.items(_tail(parts.policy_snapshot, namespace), {"labelSelector": latest})
    bindings = await api.items(_tail(parts.binding, namespace), {"labelSelector": ours})
    resources = await api.items(_tail(parts.resource_snapshot, namespace), {"labelSelector": latest})
    clusters = await api.items("membercluster")
    return PlacementState(
        placement,
        snapshots[0] if len(snapshots) == 1 else None,
        sorted(bindings, key=lambda binding: str(as_mapping(binding.get("metadata")).get("name"))),
        next((each for each in map(name_of, resources) if each.endswith("-snapshot")), ""),
        [name_of(cluster) for cluster in clusters],
    )


def _tail(kind: str, namespace: str) -> str:
    return f"{kind.lower()}.{namespace}" if namespace else kind.lower()
