"""The kinds that objects are stored of, also unregistered ones."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.metadata import reference_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import KINDS, KindSpec, unregistered_kind
from gardenbus.common.errors import Unsupported
from gardenbus.common.ports.store import Store


async def stored_kinds(store: Store) -> tuple[str, ...]:
    """Their singulars. Raises Unavailable."""
    return tuple(await _counts(store))


async def stored_reference(store: Store, document: Document) -> ObjectKey:
    """The key of a manifest or a reference. Raises BadRequest, Unsupported, InvalidResource, Unavailable."""
    try:
        return reference_of(document)
    except Unsupported:
        return reference_of(document, await stored_kinds(store))


async def unregistered_kinds(store: Store) -> Sequence[KindSpec]:
    """Those that are unregistered, as the first object of each names it. Raises Unavailable."""
    found: list[KindSpec] = []
    for singular, count in (await _counts(store)).items():
        if count and singular not in KINDS:
            page = await store.list_page(singular, None, limit=1)
            found += [
                unregistered_kind(document["kind"], document["apiVersion"], is_namespaced=bool(stored.key.namespace))
                for stored in page.objects
                for document in (stored.document(),)
            ]
    return found


async def _counts(store: Store) -> dict[str, int]:
    counts = await store.census()
    prefix = "objects."
    return {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
