"""Census of shoots: how many are in which state, and those that have been busy the longest, a part of all at a time."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.apiserver.handlers.query_bodies import read_query
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.busy_shoots import BusyShoot, busy_shoot, is_busy, slowest, state_of
from gardenbus.common.api.garden.rows import ShootState
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import Store, StoredShootState

DEFAULT_LIMIT = 5_000
"""Shoots that one request counts, at the most: about 50 ms of the apiserver, with a pause each 500."""


class _Status(msgspec.Struct):
    last_operation: Any = msgspec.field(default=None, name="lastOperation")


_decode_status = json_decoder(_Status)
_decode = json_decoder(dict[str, Any])


class ShootCensusQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The body of `census.shoot`; both fields may be left out."""

    limit: int = DEFAULT_LIMIT
    continue_token: str = msgspec.field(default="", name="continue")


async def shoot_census(store: Store, body: bytes) -> Any:
    """Count shoots: `{"states", "busy", "slowest", "continue"?}`; the rest is counted with `continue`.

    Raises BadRequest.
    """
    query = read_query(body, ShootCensusQuery, "the body of census.shoot is {limit, continue}")
    after, left = query.continue_token, min(query.limit, DEFAULT_LIMIT)
    if after and "/" not in after:
        raise BadRequest("continue: not a token of a census' answer")
    states, busy, first, has_more = Counter[ShootState](), 0, list[BusyShoot](), True
    while left > 0 and has_more:
        page = await store.shoot_states(after, limit=left)
        found = _count(page, states)
        busy, first = busy + len(found), slowest([*first, *found])
        has_more = bool(page)
        left -= len(page)
        after = f"{page[-1].key.namespace}/{page[-1].key.name}" if page else ""
        await asyncio.sleep(0)
    result: dict[str, Any] = {"states": states, "busy": busy, "slowest": first}
    return result | ({"continue": after} if has_more else {})


def _count(page: Sequence[StoredShootState], states: Counter[ShootState]) -> list[BusyShoot]:
    """Add shoots to the numbers by state; answers the busy ones."""
    found: list[BusyShoot] = []
    for shoot in page:
        operation = _operation(shoot)
        state = state_of(operation, is_deleting=bool(shoot.deleting_at))
        states[state] += 1
        if is_busy(state, shoot.seed):
            found.append(
                busy_shoot(
                    shoot.key.namespace,
                    shoot.key.name,
                    seed=shoot.seed,
                    operation=operation,
                    created_at=shoot.created_at,
                    deleting_at=shoot.deleting_at,
                )
            )
    return found


def _operation(shoot: StoredShootState) -> Document:
    if shoot.pending:
        return _decode(b"{%b}" % shoot.pending)
    operation = _decode_status(b"{%b}" % shoot.status).last_operation
    return section({"lastOperation": operation}, "lastOperation")
