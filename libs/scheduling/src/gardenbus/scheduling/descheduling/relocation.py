"""Relocation planning: targets for the shoots of a seed, by the scheduler's own decisions and migration's requirements.

Drains, shrinking sets and rebalancing plan here, and carry the plan out elsewhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.migration_feasibility import migration_problems
from gardenbus.common.api.garden.moves import Immovable, Move
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex

HostedSeeds = Mapping[ObjectKey, frozenset[str]]
"""Shoot → the seeds that it hosts, directly or through others: where it can never go."""

_NAMED_PROBLEMS = 3


def plan_moves(
    shoots: Sequence[Document],
    snapshot: Snapshot,
    *,
    source: str,
    forbidden: HostedSeeds = {},
    landscapes: Mapping[str, Landscape] = {},
) -> list[Move | Immovable]:
    """Find another seed for each shoot of `source`, each move counting for the next; `snapshot` stays as it is.

    A shoot goes where the scheduler would place it if the source were not there, so long as migration is possible
    between the two. Those with the least free capacity come first, and a shoot that finds its seeds full gets a place
    that an earlier one can do without, so that all move if all can. `forbidden` is `hosted_seeds` of the landscape.
    A shoot is decided on in the landscape of its scheduler, among `landscapes` by name; those of the default scheduler
    in that of the snapshot where there is no other, and those of other schedulers stay without one.
    """
    planner = _Planner(snapshot, source, forbidden, landscapes)
    immovable: list[Move | Immovable] = []
    relocations: list[_Relocation] = []
    for document in shoots:
        found = planner.relocation_of(document)
        if isinstance(found, Immovable):
            immovable.append(found)
        else:
            relocations.append(found)
    relocations.sort(key=lambda each: (planner.capacity_for(each), each.key))
    immovable += [stay for each in relocations if (stay := planner.plan(each)) is not None]
    return [*planner.moves(), *immovable]


def hosted_seeds(shoots: Iterable[Document], managed_seeds: Iterable[Document]) -> dict[ObjectKey, frozenset[str]]:
    """The seeds that each shoot behind a ManagedSeed hosts: its own, those of the shoots that are on it, and so on."""
    own: dict[str, set[str]] = {}
    for managed_seed in managed_seeds:
        metadata = section(managed_seed, "metadata")
        shoot = section(managed_seed, "spec", "shoot").get("name")
        if metadata.get("namespace") == GARDEN_NAMESPACE and isinstance(shoot, str):
            own.setdefault(shoot, set()).add(str(metadata.get("name")))
    shoots_on: dict[str, set[str]] = {}
    for shoot in shoots:
        metadata = section(shoot, "metadata")
        if metadata.get("namespace") == GARDEN_NAMESPACE and metadata.get("name") in own:
            for part in ("spec", "status"):
                if seed := section(shoot, part).get("seedName"):
                    shoots_on.setdefault(seed, set()).add(metadata["name"])
    return {
        ObjectKey("shoot", GARDEN_NAMESPACE, shoot): frozenset(_reached(shoot, own, shoots_on)) for shoot in sorted(own)
    }


def eligible_groups(request: SchedulingRequest, landscape: Landscape) -> Iterator[Sequence[SeedCandidate]]:
    """The seeds that fit but for their capacity, those that come first in a group of their own."""
    index = landscape.index
    groups = feasible_seeds_of(request.constraints, landscape).groups
    compatible = index.compatible(request.ranges) if groups else 0
    for group in groups:
        yield index.seeds_in(group.feasible & compatible)


def migration_request(shoot: Shoot, document: Document, landscape: Landscape) -> SchedulingRequest:
    """The request of a placed shoot to another seed. Networks in use count once its status names any."""
    request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
    ranges = request.ranges
    if ranges.in_use is not None and not any(ranges.in_use):
        ranges = msgspec.structs.replace(ranges, in_use=None)
    return msgspec.structs.replace(request, ranges=ranges)


def immovable_reason(
    shoot: Shoot, source: str, schedulers: Collection[str] = (DEFAULT_SCHEDULER,)
) -> tuple[str, bool] | None:
    """The reason why a shoot cannot leave a seed, whatever the others are like, and whether that is temporary.

    `schedulers` are those by whose rules moves are planned.
    """
    spec, status = shoot.spec, shoot.status
    if shoot.metadata.deletion_timestamp:
        return "it is being deleted", True
    if spec.seed_name != source:
        return (f"it is on its way to seed {spec.seed_name}" if spec.seed_name else "it has no seed"), True
    if status.seed_name and status.seed_name != source:
        return f"it is still arriving from seed {status.seed_name}", True
    operation = status.last_operation
    if operation is not None and (
        operation.type == "Migrate" or (operation.type == "Restore" and operation.state != "Succeeded")
    ):
        return f"its migration is not over yet ({operation.type} {operation.state})", True
    if shoot.scheduler_name not in schedulers:
        return f"it is placed by the scheduler {shoot.scheduler_name!r}, whose rules are not known here", False
    return None


class Alternatives(msgspec.Struct, frozen=True, eq=False):
    """The choice of a placed shoot: the landscape without the seeds where it cannot go (`absent`).

    `problems` are the reasons why migration to seeds that fit otherwise is impossible.
    """

    request: SchedulingRequest
    landscape: Landscape
    absent: frozenset[str]
    problems: Sequence[str]

    def groups(self) -> Sequence[Sequence[SeedCandidate]]:
        """The seeds that fit but for their capacity, the nearest first."""
        return list(eligible_groups(self.request, self.landscape))


class AlternativesCache:
    """Alternatives of placed shoots, worked out once for shoots that are alike."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self._without: dict[frozenset[str], Landscape] = {}
        self._alternatives: dict[tuple[SchedulingRequest, str, frozenset[str]], Alternatives] = {}

    def alternatives(
        self, shoot: Shoot, document: Document, source: SeedCandidate, barred: frozenset[str]
    ) -> Alternatives:
        """The alternatives of a shoot of `source`, without the `barred` seeds.

        Seeds that migration rules out are left out as if they were not there, which may bring others in.
        """
        # The request holds all that either filters or migration read from a shoot, its domain included.
        request = migration_request(shoot, document, self._landscape)
        key = (request, source.name, barred)
        if key not in self._alternatives:
            self._alternatives[key] = self._find(request, document, source, barred)
        return self._alternatives[key]

    def without(self, seeds: frozenset[str]) -> Landscape:
        """The landscape without some seeds; the same one each time."""
        if seeds not in self._without:
            self._without[seeds] = self._landscape.without(seeds)
        return self._without[seeds]

    def _find(
        self, request: SchedulingRequest, document: Document, source: SeedCandidate, barred: frozenset[str]
    ) -> Alternatives:
        problems: dict[str, str] = {}
        absent = barred | {source.name}
        while True:
            landscape = self.without(absent)
            found = {
                seed.name: f"{seed.name} => {'; '.join(against)}"
                for group in eligible_groups(request, landscape)
                for seed in group
                if (against := migration_problems(document, source.document, seed.document))
            }
            if not found:
                return Alternatives(request, landscape, absent, list(problems.values()))
            problems |= found
            absent |= frozenset(found)


class _Relocation(msgspec.Struct, eq=False):
    """A shoot that has to go: its alternatives, all seeds that fit, and the target planned for it."""

    key: ObjectKey
    alternatives: Alternatives
    eligible: Sequence[SeedCandidate]
    target: str = ""


class _Planner:
    """Plans relocations one by one."""

    def __init__(
        self, snapshot: Snapshot, source: str, forbidden: HostedSeeds, landscapes: Mapping[str, Landscape]
    ) -> None:
        self._usage = UsageIndex(snapshot.usage)
        self._groups = snapshot.groups.copy()
        self._landscape = snapshot.landscape
        self._source = source
        self._forbidden = dict(forbidden)
        by_scheduler = {DEFAULT_SCHEDULER: snapshot.landscape, **landscapes}
        self._alternatives = {name: AlternativesCache(landscape) for name, landscape in by_scheduler.items()}
        self._planned: list[_Relocation] = []

    def relocation_of(self, document: Document) -> "_Relocation | Immovable":
        """The relocation of a shoot, or why it stays."""
        metadata = section(document, "metadata")
        key = ObjectKey("shoot", str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        source = self._landscape.seeds_by_name.get(self._source)
        if source is None:
            return Immovable(key.namespace, key.name, f"there is no seed {self._source}")
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource as error:
            return Immovable(key.namespace, key.name, f"its manifest cannot be read: {error.message}")
        if kept := immovable_reason(shoot, self._source, self._alternatives.keys()):
            return Immovable(key.namespace, key.name, kept[0], kept[1])
        barred = self._forbidden.get(key, frozenset())
        alternatives = self._alternatives[shoot.scheduler_name].alternatives(shoot, document, source, barred)
        return _Relocation(key, alternatives, [seed for group in alternatives.groups() for seed in group])

    def capacity_for(self, relocation: _Relocation) -> float:
        """Free capacity of all seeds that fit it."""
        free = (
            float("inf") if seed.capacity is None else seed.capacity - self._usage.get(seed.name, 0)
            for seed in relocation.eligible
        )
        return sum(max(places, 0) for places in free)

    def plan(self, relocation: _Relocation) -> Immovable | None:
        """Plan its move; the reason why it stays when there is no room and none can be made."""
        barred = self._forbidden.get(relocation.key, frozenset())
        request, landscape = relocation.alternatives.request, relocation.alternatives.landscape
        if not barred.isdisjoint(landscape.seeds_by_name):
            landscape = landscape.without(barred)
        if self._is_kept(relocation):
            self._groups.take_away(relocation.key.namespace, request.rules, self._source)
        outcome = decide(request, Snapshot(landscape, self._usage, self._groups))
        if isinstance(outcome, Assignment):
            self._send(relocation, outcome.seed)
            self._groups.assume(relocation.key.namespace, request.rules, outcome.seed)
        elif self._is_kept(relocation) or not self._make_room(relocation, set(barred)):
            self._groups.assume(relocation.key.namespace, request.rules, self._source)
            reason = _with_problems(outcome.message, relocation.alternatives.problems)
            return Immovable(relocation.key.namespace, relocation.key.name, reason)
        self._planned.append(relocation)
        self._add_hosted(relocation)
        return None

    def moves(self) -> list[Move]:
        """The moves planned, in order."""
        return [Move(each.key.namespace, each.key.name, self._source, each.target) for each in self._planned]

    def _make_room(self, relocation: _Relocation, seen: set[str]) -> bool:
        """Send it to a seed that fits, one of whose newcomers then goes on to another, and so on (augmenting path)."""
        for seed in relocation.eligible:
            if seed.name in seen:
                continue
            seen.add(seed.name)
            if self._has_room(relocation, seed):
                self._send(relocation, seed.name)
                return True
            for other in self._planned:
                # A shoot that hosts seeds, or has rules, keeps its place: others may have been kept off because of it.
                if other.target != seed.name or other.key in self._forbidden or self._is_kept(other):
                    continue
                if self._make_room(other, seen):
                    if not self._has_room(relocation, seed):
                        continue  # the other requests less, and is as well where it is now
                    self._send(relocation, seed.name)
                    return True
        return False

    def _is_kept(self, relocation: _Relocation) -> bool:
        """True for a shoot that rules concern: it goes where the scheduler would place it, or nowhere."""
        return bool(relocation.alternatives.request.rules)

    def _has_room(self, relocation: _Relocation, seed: SeedCandidate) -> bool:
        return has_room(seed, self._usage, relocation.alternatives.request.requests)

    def _send(self, relocation: _Relocation, target: str) -> None:
        self._usage.move(relocation.target, target, relocation.alternatives.request.requests)
        relocation.target = target

    def _add_hosted(self, relocation: _Relocation) -> None:
        """Record that the hosts of the target now host the seeds of this shoot, too."""
        hosted = self._forbidden.get(relocation.key)
        if hosted:
            for key, seeds in self._forbidden.items():
                if relocation.target in seeds:
                    self._forbidden[key] = seeds | hosted


def _with_problems(message: str, problems: Sequence[str]) -> str:
    if not problems:
        return message
    more = f", and {len(problems) - _NAMED_PROBLEMS} more" if len(problems) > _NAMED_PROBLEMS else ""
    return f"it cannot migrate to {', '.join(problems[:_NAMED_PROBLEMS])}{more}; of the other seeds: {message}"


def _reached(shoot: str, own: Mapping[str, set[str]], shoots_on: Mapping[str, set[str]]) -> set[str]:
    seeds: set[str] = set()
    ahead = [shoot]
    while ahead:
        for seed in own.get(ahead.pop(), set()) - seeds:
            seeds.add(seed)
            ahead += shoots_on.get(seed, set())
    return seeds
