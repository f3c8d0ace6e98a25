"""Recoveries in memory: what functions/recovery.lua and recovering.lua do."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gardenbus.common.adapters.store_responses import is_gone
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.ports.recovery import QUERIED, InventoryItem, InventoryResult, Recovery
from gardenbus.common.ports.store import BindOutcome, EventRecord, RequestOrigin, UnknownObject
from tests.support.memory.state import MemoryState, ObjectRow

LATEST_SECONDS = 15
LAST_DOCUMENT = 2147483647


@dataclass
class RecoveryRow:
    """A recovery that lasts."""

    recovery_id: str
    cause: str
    began_at: str
    floor: RequestOrigin
    has_waited: bool = False
    responses: dict[str, str] = field(default_factory=dict[str, str])


def begin(state: MemoryState, recovery_id: str, cause: str, floor: RequestOrigin) -> None:
    """Begin a recovery with an opening, if there is a cause."""
    silence = state.alive_for()
    if not cause and silence > LATEST_SECONDS:
        cause = f"no relay has led it for {silence:.0f} s: it may be an older copy"
    if cause:
        state.recovery = RecoveryRow(recovery_id, cause, state.now(), floor)
        announce_seeds(state, silent_only=False)
        _record(
            state,
            "RecoveryStarted",
            f"The store went back ({cause}): until all seeds have reported what they run, shoots that were ordered"
            " before are not placed, none moves, and no seed is removed",
        )


def _record(state: MemoryState, reason: str, message: str) -> None:
    landscape = ObjectKey("namespace", "", GARDEN_NAMESPACE)
    state.record_event(EventRecord(landscape, "", "Warning", reason, message, "relay", "Restore"))


def announce_seeds(state: MemoryState, *, silent_only: bool) -> None:
    """Announce Seeds, for their gardenlets to answer."""
    wanted = silent_seeds(state) if silent_only else _seeds(state)
    for name in wanted:
        state.announce(state.rows[ObjectKey("seed", "", name)])


def silent_seeds(state: MemoryState) -> list[str]:
    """The Seeds that have not responded yet."""
    responses = state.recovery.responses if state.recovery else {}
    return [name for name in _seeds(state) if name not in responses]


def _seeds(state: MemoryState) -> list[str]:
    return sorted(key.name for key in state.rows if key.kind == "seed")


def ordered_after(state: MemoryState, origin: RequestOrigin | None) -> str:
    """The mark of a new shoot that was ordered since the recovery began; "" otherwise."""
    recovery = state.recovery
    return recovery.recovery_id if recovery and (origin is None or origin > recovery.floor) else ""


def recovery_rejection(state: MemoryState, after: str, seed: str) -> BindOutcome | None:
    """Reason for which a shoot may not be bound to a seed now."""
    recovery = state.recovery
    if recovery is None:
        return None
    if after != recovery.recovery_id:
        return "recovering"
    return None if seed in recovery.responses else "seed-silent"


def advance(state: MemoryState, waited: str, *, announces: bool) -> tuple[Recovery | None, bool]:
    """End the recovery if it is over."""
    recovery = state.recovery
    if recovery is None:
        return None, False
    recovery.has_waited |= waited == recovery.recovery_id
    shown = _shown(state)
    if not silent_seeds(state) and recovery.has_waited:
        state.recovery = None
        _note_response(state)
        _record(state, "RecoveryFinished", "All seeds have reported what they run: shoots are placed again")
        return shown, True
    if announces:
        announce_seeds(state, silent_only=True)
    return shown, False


def _shown(state: MemoryState) -> Recovery | None:
    row = state.recovery
    if row is None:
        return None
    silent = tuple(silent_seeds(state))
    return Recovery(row.recovery_id, row.cause, row.began_at, row.has_waited, dict(row.responses), silent)


def _note_response(state: MemoryState) -> None:
    state.unblock_usage += 1
    state.unblock(freed=True)


class MemoryRecoveries:
    """See `ports.recovery.Recoveries`."""

    state: MemoryState

    async def recovery(self) -> Recovery | None:
        """Read it."""
        self.state.check_open(with_outbox=False)
        return _shown(self.state)

    async def is_recovering(self, key: ObjectKey) -> bool:
        """Read the mark of a shoot."""
        self.state.check_open(with_outbox=False)
        recovery, row = self.state.recovery, self.state.rows.get(key)
        return recovery is not None and row is not None and row.after != recovery.recovery_id

    async def take_inventory(self, seed: str, recovery_id: str, items: Sequence[InventoryItem]) -> InventoryResult:
        """Keep what is unknown of it."""
        state = self.state
        state.check_open()
        recovery = state.recovery
        if recovery is None or recovery.recovery_id != recovery_id:
            return InventoryResult(is_current=False)
        lost = [item for item in items if not _is_accounted_for(state, item, seed)]
        for key, uid in lost:
            if (seed, key) not in state.unknown:
                note_unknown(state, UnknownObject(key=key, uid=uid, seed=seed))
        if recovery.responses.get(seed) is None:
            _note_response(state)
        recovery.responses[seed] = QUERIED
        return InventoryResult(is_current=True, unknown=len(lost))

    async def go_on_without(self, seeds: Sequence[str], by: str) -> Recovery | None:
        """Note who says so."""
        state = self.state
        state.check_open(with_outbox=False)
        recovery = state.recovery
        if recovery is None:
            return None
        for seed in seeds:
            if (key := ObjectKey("seed", "", seed)) not in state.rows:
                raise is_gone(key)
        for seed in seeds:
            if seed not in recovery.responses:
                recovery.responses[seed] = by
                _note_response(state)
        return _shown(state)


UNKNOWN_MAX, UNKNOWN_SHARE = 1000, 50
"""Places of what is unknown: of all seeds, and of each when these are taken."""


def note_unknown(state: MemoryState, unknown: UnknownObject) -> None:
    """Keep an unknown object, which takes its place on its seed."""
    is_new = (unknown.seed, unknown.key) not in state.unknown
    own = sum(seed == unknown.seed for seed, _ in state.unknown)
    if is_new and len(state.unknown) >= UNKNOWN_MAX and own >= UNKNOWN_SHARE:
        return
    state.unknown[unknown.seed, unknown.key] = unknown
    if is_new and unknown.key.kind == "shoot":
        state.change_usage(unknown.seed)


def drop_unknown(state: MemoryState, seed: str, key: ObjectKey) -> None:
    """Keep it no more: its place is free."""
    if state.unknown.pop((seed, key), None) is not None and key.kind == "shoot":
        state.change_usage(seed)
        _note_response(state)


def unknown_places(state: MemoryState, seed: str) -> int:
    """Number of unknown shoots that take a place of a seed, beside those that are stored on it."""
    found = [(key, each.uid) for (on, key), each in state.unknown.items() if on == seed and key.kind == "shoot"]
    return sum(key not in state.usage[seed] and not state.is_settled(key, seed, uid) for key, uid in found)


def requested_on(state: MemoryState, seed: str, *, but: ObjectKey | None = None) -> Counter[str]:
    """What the shoots of a seed request of its resources, unknown ones (but one) included."""
    sums = Counter(state.requested[seed])
    for (on, key), each in state.unknown.items():
        is_unknown = on == seed and key.kind == "shoot" and not state.is_settled(key, seed, each.uid)
        if is_unknown and key != but and key not in state.usage[seed]:
            sums.update(dict(resolved_of(each.manifest).requests))
    return sums


def unknown_rejection(state: MemoryState, shoot: ObjectKey, uid: str, seed: str) -> tuple[BindOutcome | None, bool]:
    """Reason for which a shoot that is unknown somewhere may not come to a seed; and whether it runs there."""
    is_here = False
    for (on, key), each in state.unknown.items():
        if key == shoot and not state.is_settled(key, on, each.uid):
            if (on, each.uid) != (seed, uid):
                return "runs-elsewhere", False
            is_here = True
    return None, is_here


def _is_accounted_for(state: MemoryState, item: InventoryItem, seed: str) -> bool:
    row: ObjectRow | None = state.rows.get(item.key)
    if row is not None:
        return state.is_settled(item.key, seed, item.uid)
    tombstone = state.tombstones.get(item.key)
    return tombstone is not None and item.uid in (tombstone.uid, *tombstone.prior)
