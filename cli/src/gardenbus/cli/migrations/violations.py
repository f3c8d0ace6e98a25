"""Plans moves of shoots that break a rule that they state about groups: they were placed before it, or others moved."""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.cli.migrations.improvements import landscapes_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.shoot_groups import GroupProblem
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.descheduling.relocation import HostedSeeds, immovable_reason
from gardenbus.scheduling.equivalence_classes import request_of
from gardenbus.scheduling.group_checks import group_checks_of
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex


class BrokenRule(msgspec.Struct, frozen=True):
    """A placed shoot that breaks a rule on its seed, and the seed that it moves to; None where it stays."""

    namespace: str
    name: str
    seed: str
    rule: str
    detail: str
    target: str | None
    stays_because: str = ""

    @property
    def move(self) -> Move | None:
        """Its move."""
        return Move(self.namespace, self.name, self.seed, self.target) if self.target is not None else None


def plan_violations(
    shoots: Sequence[Document],
    snapshot: Snapshot,
    forbidden: HostedSeeds = {},
    *,
    max_moves: int | None = None,
    profiles: Sequence[SchedulingProfile] = (),
) -> Sequence[BrokenRule]:
    """The placed shoots that break a rule, by namespace and name, each where the moves of those before it have led.

    A shoot does not count against itself, and moves where its scheduler would place it now: by its profile among
    `profiles`, by the landscape's rules where it is the default one; those of others stay. With `max_moves` the others
    stay.
    """
    landscapes = landscapes_of(snapshot.landscape, profiles)
    working = Snapshot(snapshot.landscape, UsageIndex(snapshot.usage), snapshot.groups.copy())
    found: list[BrokenRule] = []
    for document in sorted(shoots, key=_name_of):
        if not resolved_of(document).group_rules:
            continue
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource:
            continue
        if not shoot.spec.seed_name or shoot.status.seed_name not in ("", shoot.spec.seed_name):
            continue
        moves_left = max_moves is None or sum(each.target is not None for each in found) < max_moves
        broken = _broken_rule(document, shoot, working, landscapes, forbidden, may_move=moves_left)
        if broken is not None:
            found.append(broken)
    return found


def _broken_rule(
    document: Document,
    shoot: Shoot,
    working: Snapshot,
    landscapes: Mapping[str, Landscape],
    forbidden: HostedSeeds,
    *,
    may_move: bool,
) -> BrokenRule | None:
    """Find the rule that a shoot breaks where it is; its counts are then where it stays, or moves to."""
    namespace, name, home = shoot.metadata.namespace, shoot.metadata.name, shoot.spec.seed_name
    landscape = landscapes.get(shoot.scheduler_name, working.landscape)
    request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
    working.groups.take_away(namespace, request.rules, home)
    checks = group_checks_of(request, Snapshot(landscape, working.usage, working.groups))
    problem = next(checks.problems(home), None) if checks is not None else None
    if problem is None:
        working.groups.assume(namespace, request.rules, home)
        return None
    target, reason = None, "no more moves are planned"
    if immovable := immovable_reason(shoot, home, landscapes.keys()):
        reason = immovable[0]
    elif may_move:
        barred = forbidden.get(ObjectKey("shoot", namespace, name), frozenset())
        # Its own seed stays in the landscape: a spread compares with it, and the broken rule keeps the shoot off it.
        rest = landscape.without(barred) if barred else landscape
        outcome = decide(request, Snapshot(rest, working.usage, working.groups))
        target, reason = (outcome.seed, "") if isinstance(outcome, Assignment) else (None, outcome.message)
    if target is not None:
        working.usage.move(home, target, request.requests)
    working.groups.assume(namespace, request.rules, target or home)
    return _of(shoot, problem, target, reason)


def _of(shoot: Shoot, problem: GroupProblem, target: str | None, reason: str) -> BrokenRule:
    metadata = shoot.metadata
    seed = shoot.spec.seed_name
    return BrokenRule(metadata.namespace, metadata.name, seed, problem.rule, problem.detail, target, reason)


def _name_of(document: Document) -> tuple[str, str]:
    metadata = section(document, "metadata")
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def broken_rule_document(broken: BrokenRule) -> Document:
    """One of them for programs."""
    return {
        "shoot": f"{broken.namespace}/{broken.name}",
        "seed": broken.seed,
        "rule": broken.rule,
        "detail": broken.detail,
        "to": broken.target,
        "staysBecause": broken.stays_because or None,
    }
