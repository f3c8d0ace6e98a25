"""Invariants of a landscape under faults, on what was observed of it. Pure.

Some must hold at any moment (`breaches`), the others once everything has been repaired and carried out (`unsettled`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.chaos.ledger import Ledger

VALUE_ANNOTATION = "chaos.gardenbus.io/value"
REQUIREMENTS = "scheduling.gardenbus.io/requirements"
MEMORY_LIMIT_MB = 384.0
"""Limit of a service in the compose file."""

Document = dict[str, Any]


class Violation(NamedTuple):
    """What does not hold. `kind`: lost, doubled, overfilled, torn down, waiting, queued, died, memory, doctor …"""

    kind: str
    text: str


class ControlPlane(NamedTuple):
    """A control plane on a seed. `identity` is made once, and survives repetitions and migrations; "" before."""

    seed: str
    shoot: str
    uid: str
    identity: str
    is_running: bool


@dataclass
class Observation:
    """What was seen of a landscape at one moment; `shoots` and `control_planes` by namespace and name."""

    shoots: Mapping[str, Document] = field(default_factory=dict[str, Document])
    allocatable: Mapping[str, int] = field(default_factory=dict[str, int])
    regions: Mapping[str, str] = field(default_factory=dict[str, str])
    control_planes: Sequence[ControlPlane] = ()
    bindings: Sequence[tuple[str, str]] = ()
    """Seed and shoot of each binding that is announced."""

    queued: Mapping[str, int] = field(default_factory=dict[str, int])
    left_behind: int = 0
    """Messages that were taken and acknowledged, and that NATS has kept nevertheless."""

    unready: Mapping[str, str] = field(default_factory=dict[str, str])
    died: Mapping[str, int] = field(default_factory=dict[str, int])
    memory_mb: Mapping[str, float] = field(default_factory=dict[str, float])
    delivered: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """By member cluster: the value of the placed object there."""


def seeds_of(shoot: Document) -> set[str]:
    """Seeds on which a shoot counts: both while it moves."""
    return {name for name in (shoot["spec"].get("seedName"), shoot.get("status", {}).get("seedName")) if name}


def groups_of(shoot: Document) -> Sequence[str]:
    """The groups of a shoot, whose members are on different seeds."""
    annotations: dict[str, str] = shoot["metadata"].get("annotations") or {}
    stated = annotations.get(REQUIREMENTS)
    return json.loads(stated)["groups"] if stated else ()


def breaches(seen: Observation) -> list[Violation]:
    """What may never be, whatever is going on."""
    return [*_overfilled(seen), *_doubled(seen), *_together(seen)]


def unsettled(seen: Observation, ledger: Ledger, delivered: int) -> list[Violation]:
    """What must hold once everything is repaired. `delivered` is the value that every member cluster shall have."""
    return [
        *(Violation("unready", f"{name}: {why}") for name, why in seen.unready.items()),
        *_lost(seen, ledger),
        *_misplaced(seen),
        *_unbuilt(seen),
        *_announced(seen),
        *(Violation("queued", f"{subject}: {count}") for subject, count in seen.queued.items() if count),
        *(Violation("died", f"{name} ended {count} times by itself") for name, count in seen.died.items() if count > 0),
        *(
            Violation("undelivered", f"{cluster} has {value}, not {delivered}")
            for cluster, value in seen.delivered.items()
            if value != delivered
        ),
        *(
            Violation("memory", f"{name} takes {size:.0f} MB")
            for name, size in seen.memory_mb.items()
            if size > MEMORY_LIMIT_MB
        ),
    ]


def _overfilled(seen: Observation) -> list[Violation]:
    used = Counter(seed for shoot in seen.shoots.values() for seed in seeds_of(shoot))
    return [
        Violation("overfilled", f"{seed} has {count} shoots, and room for {seen.allocatable[seed]}")
        for seed, count in used.items()
        if seed in seen.allocatable and count > seen.allocatable[seed]
    ]


def _doubled(seen: Observation) -> list[Violation]:
    running: defaultdict[str, set[str]] = defaultdict(set)
    for each in seen.control_planes:
        if each.is_running:
            running[each.uid].add(each.seed)
    return [
        Violation("doubled", f"{uid} runs on {', '.join(sorted(seeds))}")
        for uid, seeds in running.items()
        if len(seeds) > 1
    ]


def _together(seen: Observation) -> list[Violation]:
    """No two members of a group that is kept apart are on one seed, whichever scheduler placed or moved them."""
    members = Counter(
        (group, seed) for each in seen.shoots.values() for group in groups_of(each) for seed in seeds_of(each)
    )
    return [
        Violation("together", f"{count} members of {group} are on {seed}")
        for (group, seed), count in members.items()
        if count > 1
    ]


def _lost(seen: Observation, ledger: Ledger) -> list[Violation]:
    found: list[Violation] = []
    for name, entry in ledger.wanted().items():
        shoot = seen.shoots.get(name)
        if entry.may_go:
            continue
        if shoot is None:
            found.append(Violation("lost", f"{name} is not stored"))
        elif shoot["metadata"].get("deletionTimestamp"):
            found.append(Violation("lost", f"{name} is being deleted, which nobody asked for"))
        elif value_of(shoot) not in {entry.value, entry.tried}:
            found.append(Violation("lost", f"{name} has {value_of(shoot)}, acknowledged was {entry.value}"))
    deleted = [name for name, entry in ledger.entries.items() if entry.state == "deleted" and name in seen.shoots]
    return found + [Violation("lost", f"the deletion of {name} has no effect") for name in deleted]


def _misplaced(seen: Observation) -> list[Violation]:
    """A region's shoots are placed as far as its seeds have room, and their groups let them onto these."""
    used = Counter(seed for shoot in seen.shoots.values() for seed in seeds_of(shoot))
    is_open = {seed for seed, room in seen.allocatable.items() if used[seed] < room}
    taken = {(group, seed) for each in seen.shoots.values() for group in groups_of(each) for seed in seeds_of(each)}
    found: list[Violation] = []
    for name, shoot in seen.shoots.items():
        if "seedName" in shoot["spec"]:
            continue
        near = {seed for seed in is_open if seen.regions.get(seed) == shoot["spec"]["region"]}
        possible = sorted(seed for seed in near if not any((group, seed) in taken for group in groups_of(shoot)))
        found += [Violation("waiting", f"{name} is not placed, and {seed} has room") for seed in possible[:1]]
    return found


def _unbuilt(seen: Observation) -> list[Violation]:
    """Each placed shoot has its control plane where it belongs, and each control plane its shoot."""
    found: list[Violation] = []
    running = {(each.shoot, each.seed, each.uid) for each in seen.control_planes if each.is_running}
    wanted = {
        (name, str(shoot["spec"]["seedName"]), str(shoot["metadata"]["uid"]))
        for name, shoot in seen.shoots.items()
        if shoot["spec"].get("seedName")
    }
    found += [Violation("unbuilt", f"{name} has no control plane on {seed}") for name, seed, _ in wanted - running]
    found += [Violation("orphaned", f"{name} runs on {seed} without need") for name, seed, _ in running - wanted]
    for name, _, _ in wanted:
        status, metadata = seen.shoots[name].get("status", {}), seen.shoots[name]["metadata"]
        last = status.get("lastOperation", {})
        if last.get("state") != "Succeeded" or status.get("observedGeneration") != metadata["generation"]:
            found.append(Violation("unbuilt", f"{name}: {last.get('type')} {last.get('state')}"))
    return found


def _announced(seen: Observation) -> list[Violation]:
    wanted = {(seed, name) for name, shoot in seen.shoots.items() for seed in seeds_of(shoot)}
    announced = set(seen.bindings)
    return [
        *(Violation("unannounced", f"binding of {name} to {seed}") for seed, name in wanted - announced),
        *(
            Violation(
                "doubled" if name in seen.shoots else "stale", f"binding of {name} to {seed}, which does not exist"
            )
            for seed, name in announced - wanted
        ),
    ]


def value_of(document: Document) -> int | None:
    """The value that a client gave an object last."""
    annotations: Document = document["metadata"].get("annotations") or {}
    return int(annotations[VALUE_ANNOTATION]) if VALUE_ANNOTATION in annotations else None


class ControlPlaneHistory:
    """Control planes that have been seen, to notice those that are torn down, or built anew, and should not be."""

    def __init__(self) -> None:
        self._identities: dict[str, str] = {}
        self._shoots: dict[str, str] = {}

    def breaches(self, seen: Observation, ledger: Ledger, *, is_settled: bool) -> list[Violation]:
        """What was torn down without an order. A shoot that moves has none for a moment, and is judged when settled."""
        found: list[Violation] = []
        here = {each.uid: each for each in seen.control_planes if each.identity}
        present = {each.uid for each in seen.control_planes}
        for uid, identity in [*self._identities.items()]:
            name = self._shoots[uid]
            entry = ledger.entries.get(name)
            if entry is None or entry.may_go:
                del self._identities[uid], self._shoots[uid]
            elif uid not in present and (is_settled or not entry.is_moving):
                found.append(Violation("torn down", f"{name} ({uid}) has no control plane any more"))
            elif is_settled and uid in here and here[uid].identity != identity:
                found.append(Violation("torn down", f"{name} ({uid}) was built anew"))
        for uid, each in here.items():
            if each.is_running:
                self._identities.setdefault(uid, each.identity)
                self._shoots[uid] = each.shoot
        return found
