"""Invariants of a landscape that has come to rest: what must be true once all faults are over."""

from collections.abc import Iterator

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from tests.simulation.client import NAMESPACE
from tests.simulation.journal import label_of
from tests.simulation.landscape import Landscape
from tests.support.memory.state import ObjectRow


def unrest(landscape: Landscape) -> str:
    """What is still to be done; "" when nothing is."""
    state = landscape.store.state
    if not state.is_open:
        return "the store is closed"
    if outbox := state.outbox:
        return f"the outbox holds {len(outbox)} entries"
    for name in ("REQUESTS", "REPORTS", "QUEUES"):
        for message in landscape.server.stream(name).messages.values():
            if not message.subject.startswith("garden.later."):
                return f"{message.subject} waits in {name} at {message.sequence}"
    return ""


def violations(landscape: Landscape, *, is_strict: bool) -> Iterator[str]:
    """What is not as it must be, now that nothing is left to be done.

    Unless `is_strict`, what rarely fails after a restore, and is documented as not promised, is not judged there.
    """
    if is_strict or not landscape.journal.restores:
        yield from _orders(landscape)
    yield from _assignments(landscape)
    yield from _informers(landscape)
    yield from _reports(landscape)


def _shoots(landscape: Landscape) -> dict[str, ObjectRow]:
    rows = landscape.store.state.rows
    return {key.name: row for key, row in rows.items() if key.kind == "shoot"}


def _orders(landscape: Landscape) -> Iterator[str]:
    """The last order on each object counts, unless it may have been lost with what a restore took away."""
    journal, shoots = landscape.journal, _shoots(landscape)
    for name in journal.stored:
        admissible = journal.admissible(name)
        row = shoots.get(name)
        if row is None:
            key = ObjectKey("shoot", NAMESPACE, name)
            tombstone = landscape.store.state.tombstone(key)
            origin = tombstone.origin if tombstone else journal.removals.get(key)
            taken = origin.sequence if origin else 0
            is_fine = any(each.order.verb == "delete" or each.sequence == taken for each in admissible)
            is_fine = is_fine or all(each.is_optional for each in admissible)
            was_deleted = any(each.order.verb == "delete" for each in journal.stored[name])
            if not is_fine and not (journal.restores and was_deleted and tombstone and tombstone.origin is None):
                yield f"{name} is gone, and was last ordered with {admissible[0].order.number}"
            continue
        number = label_of(row.stored.document())
        if row.stored.is_deleting:
            yield f"{name} is still being deleted"
        elif not any(each.order.number == number for each in admissible) and not _has_waited_enough(landscape, name):
            last = admissible[0].order
            yield f"{name} is as order {number} has it, and the last one is {last.number} ({last.verb})"


def _has_waited_enough(landscape: Landscape, name: str) -> bool:
    """True if the last order deletes, and was decided on while earlier ones were in flight yet.

    Restarts and deaths use deliveries up; on the last one a consumer takes its messages in reverse order, so that one
    which ends the process harms no other: a deletion then finds nothing, and the creation comes after it.
    """
    journal = landscape.journal
    last = journal.stored[name][-1]
    return last.order.verb == "delete" and last.sequence in journal.impatient


def _assignments(landscape: Landscape) -> Iterator[str]:
    """Every shoot runs where it is assigned to and nowhere else, or waits: no seed has room, or one runs it unknown."""
    state = landscape.store.state
    full = all(state.usage(seed) >= room for seed, room in landscape.capacities.items())
    unknown = state.unknown_uids()
    wanted: dict[str, str] = {}
    for name, row in _shoots(landscape).items():
        if seed := row.stored.parts.seed_name:
            wanted[row.stored.uid] = seed
        elif not full and row.stored.uid not in unknown:  # what a seed runs waits for somebody to adopt it there
            yield f"{name} waits, and there is room"
        elif not row.equivalence_class:
            yield f"{name} is neither assigned nor marked unschedulable"
    for seed, disk in landscape.disks.items():
        running = {record.uid for record in disk.records.values()}
        for uid in sorted(running):
            if wanted.get(uid) != seed and uid not in unknown:
                yield f"{uid} runs on {seed}, is assigned to {wanted.get(uid, 'none')}, and nobody is told"
        for uid in sorted(uid for uid, target in wanted.items() if target == seed and uid not in running):
            yield f"{uid} is assigned to {seed} and does not run there"


def _informers(landscape: Landscape) -> Iterator[str]:
    """Every informer has what the store has."""
    state = landscape.store.state
    for name, informer in landscape.informers.items():
        for kind in ("shoot", "seed") if name == "watcher" else ("seed", "project"):
            cached = {key: each.version for key, each in informer.objects(kind).items()}
            stored = {key: each.version for key, each in state.rows.of_kind(kind).items()}
            if cached != stored:
                differing = sorted(key for key in {*cached, *stored} if cached.get(key) != stored.get(key))
                key = differing[0]
                yield f"{name} has {key} in version {cached.get(key)}, and the store has {stored.get(key)}"


def _reports(landscape: Landscape) -> Iterator[str]:
    """The last report on each control plane is merged. (A store that went back may have rejected it.)"""
    if "redis" in landscape.journal.restores:
        return
    for name, row in _shoots(landscape).items():
        reported = landscape.journal.progress.get(row.stored.uid)
        merged = section(row.stored.document(), "status", "lastOperation").get("progress")
        if reported is not None and row.stored.parts.seed_name and merged != reported:
            yield f"{name} has progress {merged}, and {reported} was reported last"
