"""ResourceQuotas and demands in memory: what functions/quotas.lua counts."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from gardenbus.common.adapters.store_responses import exceeds_quota, is_beyond, is_outdated
from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import WritePrecondition
from tests.support.memory.state import MemoryState, ObjectRow


def _limits(row: ObjectRow) -> Iterator[tuple[str, int, str]]:
    """Kind, most and resource of each limit of a ResourceQuota."""
    for line in row.index_keys.quota[1:]:
        kind, most, resource = line.split(" ", 2)
        yield kind, int(most), msgspec.json.decode(resource, type=str)


def _used(state: MemoryState, kind: str, namespace: str) -> int:
    return sum((key.kind, key.namespace) == (kind, namespace) for key in state.rows)


def _quotas(state: MemoryState, namespace: str) -> list[ObjectRow]:
    return [state.rows[key] for key in sorted(state.quotas[namespace])]


def quota_status(state: MemoryState, row: ObjectRow) -> bytes:
    """The inside of a ResourceQuota's status."""
    if not row.index_keys.quota:
        return row.stored.parts.status
    used = {resource: str(_used(state, kind, row.stored.key.namespace)) for kind, _, resource in _limits(row)}
    return b'"hard":' + row.index_keys.quota[0].encode() + b',"used":' + encode(used)


def with_quota_status(state: MemoryState, row: ObjectRow) -> None:
    """Complete a ResourceQuota that is written."""
    if row.stored.key.kind == "resourcequota":
        parts = row.stored.parts._replace(status=quota_status(state, row))
        row.stored = msgspec.structs.replace(row.stored, parts=parts)


def recount(state: MemoryState, counted: ObjectKey, *, with_version: bool = True) -> None:
    """Write and announce the status of those ResourceQuotas that count objects of a kind, but for the one written."""
    for row in _quotas(state, counted.namespace):
        if row.stored.key == counted or all(kind != counted.kind for kind, _, _ in _limits(row)):
            continue
        status = quota_status(state, row)
        if status == row.stored.parts.status:
            continue
        row.stored = msgspec.structs.replace(row.stored, parts=row.stored.parts._replace(status=status))
        if with_version:
            row.stored = msgspec.structs.replace(row.stored, version=state.next_version())
            state.announce(row, with_binding=False)


def check_quotas(state: MemoryState, key: ObjectKey, message: str) -> None:
    """Raise Forbidden for a new object that a ResourceQuota has no room for."""
    used = _used(state, key.kind, key.namespace)
    exceeded = [
        (f"{row.stored.key.name} {encode(resource).decode()}", row.stored.key.name, resource, most)
        for row in _quotas(state, key.namespace)
        for kind, most, resource in _limits(row)
        if kind == key.kind and used >= most
    ]
    if exceeded:
        _, name, resource, most = min(exceeded)
        raise exceeds_quota(message, name, resource, used, most)


def demand_of(state: MemoryState, referred: str, namespace: str) -> tuple[Counter[str], set[str]]:
    """Sums of the demands of all that refers to a key, and the keys that were summed."""
    summed = {key.stored for key in state.references[referred] if not namespace or key.namespace == namespace}
    sums: Counter[str] = Counter()
    for key in summed:
        sums.update(state.demands[key])
    return sums, summed


def check_demands(
    state: MemoryState, guard: WritePrecondition, row: ObjectRow | None, demands: tuple[str, ...] | None
) -> None:
    """Raise Forbidden for a write with which demands exceed their limits; `demands` None: it changes none of them."""
    sums, summed = demand_of(state, guard.name, guard.limits.namespace)
    before = row.index_keys.demands if row else ()
    for lines, sign in ((before if demands is None else demands, 1), (before, -1)):
        for line in lines:
            key, count, unit = line.split(" ", 2)
            if key in summed:
                sums[unit] += sign * int(count)
    totals: Counter[str] = Counter()
    for unit, count in sums.items():
        if unit not in guard.limits.amounts and count > 0:
            raise is_outdated(guard.message, row.stored.version if row else 0)
        for metric, amount in guard.limits.amounts.get(unit, {}).items():
            totals[metric] += count * amount
    if beyond := [metric for metric, most in guard.limits.most.items() if totals[metric] > most]:
        raise is_beyond(guard.message, beyond)
