"""Where the shoots of a seed can move: with the scheduler's own decisions, and what migration asks for besides.

Who moves control planes (a drain, a set that shrinks, a rebalancing) plans here and carries the plan out elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gardenbus.common.errors import InvalidResource
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.migrating import migration_problems
from gardenbus.common.resources.shoot_networks import network_problems
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.scheduling.landscape import Landscape, SeedCandidate, Snapshot
from gardenbus.scheduling.outcome import Placement
from gardenbus.scheduling.placement import decide
from gardenbus.scheduling.request import SchedulingRequest, request_of
from gardenbus.scheduling.rules import capacity
from gardenbus.scheduling.shortlist import shortlist_of

Hosting = Mapping[ObjectKey, frozenset[str]]
"""Shoot → the seeds that it hosts, directly or through others: where it can never go."""

_NAMED_PROBLEMS = 3


class Move(msgspec.Struct, frozen=True):
    """One shoot, from the seed that it is on to another that takes it."""

    namespace: str
    name: str
    source: str
    target: str


class Stay(msgspec.Struct, frozen=True):
    """One shoot that is not to be moved, and why. `waits`: only for now, since something is under way with it."""

    namespace: str
    name: str
    reason: str
    waits: bool = False


def plan_moves(
    shoots: Sequence[Document], snapshot: Snapshot, *, source: str, forbidden: Hosting = {}
) -> list[Move | Stay]:
    """Find another seed for each shoot of `source`, each move counting for the next; `snapshot` stays as it is.

    A shoot goes where the scheduler would place it if the source were not there, so long as migration is possible
    between the two. Those with the fewest places come first, and a shoot that finds its seeds full gets a place that
    an earlier one can do without, so that all move if all can. `forbidden` is `hosted_seeds` of the landscape.
    """
    planner = _Planner(snapshot, source, forbidden)
    stays: list[Move | Stay] = []
    wanderers: list[_Wanderer] = []
    for document in shoots:
        found = planner.look_at(document)
        if isinstance(found, Stay):
            stays.append(found)
        else:
            wanderers.append(found)
    wanderers.sort(key=lambda each: (planner.places_of(each), each.key))
    stays += [stay for each in wanderers if (stay := planner.place(each)) is not None]
    return [*planner.moves(), *stays]


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
    shortlist = shortlist_of(request.demand, landscape)
    for group in shortlist.order.groups if shortlist.order is not None else ():
        yield [
            seed
            for seed in group.seeds
            if seed.name not in shortlist.objections and not network_problems(request.ranges, seed.seed.spec.networks)
        ]


def migration_request(shoot: Shoot, document: Document, landscape: Landscape) -> SchedulingRequest:
    """What a placed shoot asks of another seed. Networks in use count once its status names any."""
    request = request_of(shoot, document, landscape.filters)
    ranges = request.ranges
    if ranges.in_use is not None and not any(ranges.in_use):
        ranges = msgspec.structs.replace(ranges, in_use=None)
    return SchedulingRequest(request.demand, ranges)


def kept_because(shoot: Shoot, source: str) -> tuple[str, bool] | None:
    """Why a shoot is not moved away from a seed whatever the others are like, and whether that will pass."""
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
    if shoot.scheduler_name != DEFAULT_SCHEDULER:
        return f"it is placed by the scheduler {shoot.scheduler_name!r}, whose rules are not known here", False
    return None


class Alternatives(msgspec.Struct, frozen=True, eq=False):
    """What a placed shoot can choose from: the landscape without the seeds where it cannot go (`absent`).

    `problems` say why migration to seeds that fit otherwise is impossible.
    """

    request: SchedulingRequest
    landscape: Landscape
    absent: frozenset[str]
    problems: Sequence[str]

    def groups(self) -> Sequence[Sequence[SeedCandidate]]:
        """The seeds that fit but for their capacity, the nearest first."""
        return list(eligible_groups(self.request, self.landscape))


class Surroundings:
    """A landscape, looked at from the seeds in it; remembers what shoots that are alike share."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self._without: dict[frozenset[str], Landscape] = {}
        self._alternatives: dict[tuple[SchedulingRequest, str, frozenset[str]], Alternatives] = {}

    def alternatives(
        self, shoot: Shoot, document: Document, source: SeedCandidate, barred: frozenset[str]
    ) -> Alternatives:
        """Where a shoot of `source` could go, the `barred` seeds apart.

        Seeds that migration rules out are left out as if they were not there, which may bring others in.
        """
        # The request says all that either the rules or migration ask of a shoot, its domain included.
        request = migration_request(shoot, document, self._landscape)
        known = (request, source.name, barred)
        if known not in self._alternatives:
            self._alternatives[known] = self._worked_out(request, document, source, barred)
        return self._alternatives[known]

    def without(self, seeds: frozenset[str]) -> Landscape:
        """The landscape without some seeds; the same one each time."""
        if seeds not in self._without:
            self._without[seeds] = self._landscape.without(seeds)
        return self._without[seeds]

    def _worked_out(
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


class _Wanderer(msgspec.Struct, eq=False):
    """A shoot that has to go: what it can choose from, all seeds that fit, and the target planned for it."""

    key: ObjectKey
    alternatives: Alternatives
    eligible: Sequence[SeedCandidate]
    target: str = ""


class _Planner:
    """Places wanderers one by one."""

    def __init__(self, snapshot: Snapshot, source: str, forbidden: Hosting) -> None:
        self._usage = dict(snapshot.usage)
        self._landscape = snapshot.landscape
        self._source = source
        self._forbidden = dict(forbidden)
        self._surroundings = Surroundings(snapshot.landscape)
        self._placed: list[_Wanderer] = []

    def look_at(self, document: Document) -> "_Wanderer | Stay":
        """Find out what a shoot asks for, or why it stays."""
        metadata = section(document, "metadata")
        key = ObjectKey("shoot", str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        source = self._landscape.seeds_by_name.get(self._source)
        if source is None:
            return Stay(key.namespace, key.name, f"there is no seed {self._source}")
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource as error:
            return Stay(key.namespace, key.name, f"its manifest cannot be read: {error.message}")
        if kept := kept_because(shoot, self._source):
            return Stay(key.namespace, key.name, kept[0], kept[1])
        barred = self._forbidden.get(key, frozenset())
        alternatives = self._surroundings.alternatives(shoot, document, source, barred)
        return _Wanderer(key, alternatives, [seed for group in alternatives.groups() for seed in group])

    def places_of(self, wanderer: _Wanderer) -> float:
        """How many places there are for it."""
        free = (
            float("inf") if seed.capacity is None else seed.capacity - self._usage.get(seed.name, 0)
            for seed in wanderer.eligible
        )
        return sum(max(places, 0) for places in free)

    def place(self, wanderer: _Wanderer) -> Stay | None:
        """Plan its move; the reason why it stays when there is no place and none can be made."""
        barred = self._forbidden.get(wanderer.key, frozenset())
        request, landscape = wanderer.alternatives.request, wanderer.alternatives.landscape
        if not barred.isdisjoint(landscape.seeds_by_name):
            landscape = landscape.without(barred)
        outcome = decide(request, Snapshot(landscape, self._usage))
        if isinstance(outcome, Placement):
            self._send(wanderer, outcome.seed)
        elif not self._make_room(wanderer, set(barred)):
            reason = _with_problems(outcome.message, wanderer.alternatives.problems)
            return Stay(wanderer.key.namespace, wanderer.key.name, reason)
        self._placed.append(wanderer)
        self._learn(wanderer)
        return None

    def moves(self) -> list[Move]:
        """What is planned, in order."""
        return [Move(each.key.namespace, each.key.name, self._source, each.target) for each in self._placed]

    def _make_room(self, wanderer: _Wanderer, seen: set[str]) -> bool:
        """Send it to a seed that fits, one of whose newcomers then goes on to another, and so on (augmenting path)."""
        for seed in wanderer.eligible:
            if seed.name in seen:
                continue
            seen.add(seed.name)
            if not capacity.problem(self._usage.get(seed.name, 0), seed.capacity):
                self._send(wanderer, seed.name)
                return True
            for other in self._placed:
                # A shoot that hosts seeds keeps its place: others may have been kept off because of it.
                if other.target == seed.name and other.key not in self._forbidden and self._make_room(other, seen):
                    self._send(wanderer, seed.name)
                    return True
        return False

    def _send(self, wanderer: _Wanderer, target: str) -> None:
        if wanderer.target:
            self._usage[wanderer.target] -= 1
        wanderer.target = target
        self._usage[target] = self._usage.get(target, 0) + 1

    def _learn(self, wanderer: _Wanderer) -> None:
        """Whoever hosts the target now hosts, through this shoot, its seeds too."""
        hosted = self._forbidden.get(wanderer.key)
        if hosted:
            for key, seeds in self._forbidden.items():
                if wanderer.target in seeds:
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
