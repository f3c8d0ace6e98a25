"""Reads what a placement selects, from the store."""

import asyncio

from gardenbus.common.errors import FieldProblem, InvalidResource
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.kinds import KINDS
from gardenbus.common.resources.placements import Placement, ResourceSelector
from gardenbus.placement.decide.resources import cleaned, in_order
from gardenbus.placement.decide.selectors import belongs_to_content, is_handed_on, matches, with_content


async def select(store: Store, placement: Placement) -> list[Document]:
    """All that a placement selects, each once, cleaned and in order. Raises InvalidResource, Unavailable."""
    found: dict[tuple[str, str, str], Document] = {}
    for selector in placement.spec.resource_selectors:
        resources = await _matching(store, placement, selector)
        if not placement.is_namespaced and with_content(selector):
            for namespace in list(resources):
                resources += await _content(store, str(section(namespace, "metadata")["name"]))
        for resource in resources:
            if is_handed_on(resource):
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
    likely = [kind for kind in kinds if (known := KINDS.get(kind)) is None or known.namespaced is not False]
    lists = await asyncio.gather(*(_all(store, kind, namespace) for kind in sorted(likely) if _may_go(kind)))
    return [resource for each in lists for resource in each if belongs_to_content(resource)]


def _may_go(kind: str) -> bool:
    known = KINDS.get(kind)
    return known is None or not known.group.endswith(("gardener.cloud", "kubernetes-fleet.io"))


async def _all(store: Store, kind: str, namespace: str) -> list[Document]:
    """All objects of a kind in one namespace; with "" those that are in none."""
    documents: list[Document] = []
    token: str | None = None
    while True:
        page = await store.list_page(kind, namespace or None, continue_token=token)
        documents += [stored.document() for stored in page.objects if stored.key.namespace == namespace]
        token = page.continue_token
        if token is None:
            return documents
