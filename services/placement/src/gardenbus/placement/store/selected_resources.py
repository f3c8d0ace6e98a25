"""Reads the resources that a placement selects."""

import asyncio

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.envelopes import ENVELOPE
from gardenbus.common.api.fleet.placements import Placement, ResourceSelector
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.controller.listing import list_all
from gardenbus.common.errors import FieldProblem, InvalidResource
from gardenbus.common.ports.store import Store
from gardenbus.placement.domain.resource_selectors import belongs_to_content, includes_content, is_propagated, matches
from gardenbus.placement.domain.resource_snapshots import cleaned, in_order


async def select(store: Store, placement: Placement) -> list[Document]:
    """Read all selected resources, each once, cleaned and in order. Raises InvalidResource, Unavailable."""
    found: dict[tuple[str, str, str], Document] = {}
    for selector in placement.spec.resource_selectors:
        resources = await _matching(store, placement, selector)
        if not placement.is_namespaced and includes_content(selector):
            for namespace in list(resources):
                resources += await _content(store, str(section(namespace, "metadata")["name"]))
        for resource in resources:
            if is_propagated(resource):
                metadata = section(resource, "metadata")
                name = str(resource["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])
                found[name] = cleaned(resource)
    return in_order(list(found.values()))


async def _matching(store: Store, placement: Placement, selector: ResourceSelector) -> list[Document]:
    kind, namespace = selector.kind.lower(), placement.metadata.namespace
    if selector.name:
        stored = await store.get(ObjectKey(kind, namespace, selector.name))
        resources = [] if stored is None else [stored.document()]
    else:
        resources = await _all(store, kind, namespace)
    try:
        return [each for each in resources if matches(selector, each)]
    except ValueError as error:
        field = "spec.resourceSelectors"
        raise InvalidResource(f"{field}: {error}", (FieldProblem(field, str(error)),)) from error


async def _content(store: Store, namespace: str) -> list[Document]:
    kinds = [word.removeprefix("objects.") for word in await store.census() if word.startswith("objects.")]
    likely = [kind for kind in kinds if (spec := KINDS.get(kind)) is None or spec.namespaced is not False]
    lists = await asyncio.gather(*(_all(store, kind, namespace) for kind in sorted(likely) if _may_go(kind)))
    return [resource for each in lists for resource in each if belongs_to_content(resource)]


def _may_go(kind: str) -> bool:
    spec = KINDS.get(kind)
    return spec is None or spec.kind == ENVELOPE or not spec.group.endswith(("gardener.cloud", "kubernetes-fleet.io"))


async def _all(store: Store, kind: str, namespace: str) -> list[Document]:
    """Read all objects of a kind in one namespace; with "" cluster-scoped ones."""
    found = await list_all(store, kind, namespace or None)
    return [stored.document() for stored in found if stored.key.namespace == namespace]
