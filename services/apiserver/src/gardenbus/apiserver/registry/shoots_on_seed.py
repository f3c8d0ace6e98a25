"""Lists of one seed's shoots by the index of its usage: a scan of all shoots would decode each of them."""

import bisect
from typing import NamedTuple

from gardenbus.common.adapters.store_responses import ContinueToken, decode_token, encode_token
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Page, Store

PAGE_MAX = 200
"""Objects that are read in one round trip."""

SHOOT = "shoot"


class ShootsOnSeed(NamedTuple):
    """Shoots that count on a seed (a moving one counts on both), in the order of their namespaces and names."""

    store: Store
    seed: str

    async def page(self, namespace: str | None, *, limit: int, continue_token: str | None) -> Page:
        """Read a page. Raises BadRequest for a token of another list."""
        token = decode_token(continue_token) if continue_token else await self._beginning()
        keys = [key for key in await self.store.shoots_on(self.seed) if namespace is None or key.namespace == namespace]
        begin = bisect.bisect_right(keys, token.after, key=_member) if token.after else 0
        taken = keys[begin : begin + min(limit, PAGE_MAX)]
        found = await self.store.get_many(taken)
        has_more = begin + len(taken) < len(keys)
        return Page(
            [stored for stored in found if stored is not None],
            token.version,
            token.unblock_index,
            encode_token(ContinueToken(_member(taken[-1]), token.version, token.unblock_index)) if has_more else None,
        )

    async def _beginning(self) -> ContinueToken:
        first = await self.store.list_page(SHOOT, limit=1)
        return ContinueToken("", first.version, first.unblock_index)


def _member(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"
