"""Complete lists out of the store's pages."""

from gardenbus.common.api.document import StoredObject
from gardenbus.common.ports.store import Objects


async def list_all(store: Objects, kind: str, namespace: str | None = None) -> list[StoredObject]:
    """All objects of a kind, in one namespace or in all. Raises Unavailable."""
    found: list[StoredObject] = []
    token: str | None = None
    while True:
        page = await store.list_page(kind, namespace, continue_token=token)
        found += page.objects
        token = page.continue_token
        if token is None:
            return found
