"""Lists of what an index names: one seed's shoots, objects of one name. A scan would decode every object."""

import bisect
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from gardenbus.common.adapters.store_responses import ContinueToken, decode_token, encode_token
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.ports.store import Page, Store

PAGE_MAX = 200
"""Objects that are read in one round trip."""

SHOOT = "shoot"
INSTALLATION = "controllerinstallation"
ENTRY = "backupentry"


class IndexedList(NamedTuple):
    """Objects of a kind that an index lists, in the order of their namespaces and names."""

    store: Store
    kind: str
    keys: Callable[[], Awaitable[Sequence[ObjectKey]]]

    async def page(self, namespace: str | None, *, limit: int, continue_token: str | None) -> Page:
        """Read a page. Raises BadRequest for a token of another list."""
        token = decode_token(continue_token) if continue_token else await self._beginning()
        keys = [key for key in await self.keys() if namespace in (None, key.namespace or CLUSTER_SCOPE)]
        begin = bisect.bisect_right(keys, token.after, key=_member) if token.after else 0
        taken = keys[begin : begin + min(limit, PAGE_MAX)]
        found = await self.store.get_many_partial(taken)
        has_more = begin + len(taken) < len(keys)
        return Page(
            [stored for stored in found if stored is not None],
            token.version,
            token.unblock_index,
            encode_token(ContinueToken(_member(taken[-1]), token.version, token.unblock_index)) if has_more else None,
        )

    async def _beginning(self) -> ContinueToken:
        first = await self.store.list_page(self.kind, limit=1)
        return ContinueToken("", first.version, first.unblock_index)


def shoots_on_seed(store: Store, seed: str) -> IndexedList:
    """Shoots that count on a seed (a moving one counts on both)."""
    return IndexedList(store, SHOOT, lambda: store.shoots_on(seed))


def installations_on_seed(store: Store, seed: str) -> IndexedList:
    """ControllerInstallations of a seed."""

    async def keys() -> Sequence[ObjectKey]:
        return [key for key in await store.referring(ObjectKey("seed", "", seed)) if key.kind == INSTALLATION]

    return IndexedList(store, INSTALLATION, keys)


def entries_in_bucket(store: Store, bucket: str) -> IndexedList:
    """BackupEntries in a bucket."""

    async def keys() -> Sequence[ObjectKey]:
        return [key for key in await store.referring(ObjectKey("backupbucket", "", bucket)) if key.kind == ENTRY]

    return IndexedList(store, ENTRY, keys)


def objects_named(store: Store, kind: str, name: str) -> IndexedList:
    """Objects of a kind that have a name, one in a namespace."""
    return IndexedList(store, kind, lambda: store.named(kind, name))


def _member(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"
