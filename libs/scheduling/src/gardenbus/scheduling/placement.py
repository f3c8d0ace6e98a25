"""The decision: which seed a request gets, why not, and on what grounds."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gardenbus.common.resources.shoot_networks import Ranges, network_problems
from gardenbus.scheduling.choice import choice_of, grounds_of
from gardenbus.scheduling.landscape import SeedCandidate, Snapshot
from gardenbus.scheduling.outcome import (
    Explanation,
    Outcome,
    Placement,
    Ranked,
    Refusal,
    Rejection,
    RunnerUp,
    Step,
    listed,
)
from gardenbus.scheduling.ranking import least_used
from gardenbus.scheduling.request import SchedulingRequest
from gardenbus.scheduling.rules import CAPACITY, FILTERS, NETWORKS, STRATEGY, TAINTS, capacity
from gardenbus.scheduling.shortlist import Shortlist, shortlist_of
from gardenbus.scheduling.strategies import Order
from gardenbus.scheduling.tally import Tally


def decide(request: SchedulingRequest, snapshot: Snapshot) -> Outcome:
    """Choose the least used of the nearest seeds that fit, the first by name among equals; or refuse, saying why.

    Pure: the same request and snapshot always give the same outcome. It does not count the placement; the caller does,
    with `Snapshot.place`. An exception of a user's own filter is passed on.
    """
    if isinstance(snapshot.usage, Tally):
        return _quickly(request, snapshot, snapshot.usage) or _refusal(
            request, shortlist_of(request.demand, snapshot.landscape), snapshot
        )
    return decide_slowly(request, snapshot)


def decide_slowly(request: SchedulingRequest, snapshot: Snapshot) -> Outcome:
    """The same, looking at every seed that fits."""
    shortlist = shortlist_of(request.demand, snapshot.landscape)
    order = shortlist.order
    nearer = 0
    for group in order.groups if order is not None else ():
        chosen = _least_used(group.seeds, request.ranges, shortlist, snapshot.usage)
        if chosen is not None:
            others = [seed for seed in group.seeds if seed is not chosen]
            following = _least_used(others, request.ranges, shortlist, snapshot.usage)
            return Placement(
                seed=chosen.name,
                gate=chosen.gate,
                strategy=_order(shortlist).strategy,
                distance=group.distance,
                usage=snapshot.usage.get(chosen.name, 0),
                considered=len(snapshot.landscape.seeds),
                eligible=len(group.seeds),
                capacity=chosen.capacity,
                nearer=nearer,
                runner_up=_runner_up(following, snapshot.usage),
                grounds=grounds_of(shortlist, snapshot.landscape),
            )
        nearer += sum(seed.name not in shortlist.objections for seed in group.seeds)
    return _refusal(request, shortlist, snapshot)


def _quickly(request: SchedulingRequest, snapshot: Snapshot, tally: Tally) -> Placement | None:
    landscape = snapshot.landscape
    choice = choice_of(request.demand, landscape)
    nearer = 0
    for near in choice.groups:
        winner = least_used(near.bits, request.ranges, tally, landscape.index)
        if winner is not None:
            chosen = winner.seed
            return Placement(
                seed=chosen.name,
                gate=chosen.gate,
                strategy=choice.strategy,
                distance=near.distance,
                usage=tally.get(chosen.name, 0),
                considered=len(landscape.seeds),
                eligible=near.eligible,
                capacity=chosen.capacity,
                nearer=nearer,
                runner_up=_runner_up(winner.next, tally),
                grounds=choice.grounds,
            )
        nearer += near.bits.bit_count()
    return None


def _runner_up(seed: SeedCandidate | None, usage: dict[str, int]) -> RunnerUp | None:
    return RunnerUp(seed.name, usage.get(seed.name, 0)) if seed is not None else None


def explain(request: SchedulingRequest, snapshot: Snapshot) -> Explanation:
    """The same decision with every seed's part in it: its place in the order, or the first rule against it."""
    outcome = decide(request, snapshot)
    shortlist = shortlist_of(request.demand, snapshot.landscape)
    rejections = list(shortlist.rejections)
    rejected = {rejection.seed for rejection in rejections}
    order = shortlist.order
    if shortlist.refusal is not None or order is None:
        rule, detail = _blanket(outcome)
        rejections += [
            Rejection(seed.name, rule, detail) for seed in snapshot.landscape.seeds if seed.name not in rejected
        ]
        return _explanation(outcome, snapshot, snapshot.landscape.strategy, (), rejections)
    objections = dict(_objections(request.ranges, shortlist, snapshot.usage))
    rejections += objections.values()
    rejections += [
        Rejection(seed, STRATEGY, detail) for seed, detail in order.left_out.items() if seed not in objections
    ]
    ranking = tuple(_ranking(order, objections, snapshot))
    return _explanation(outcome, snapshot, order.strategy, ranking, rejections)


def free_places(request: SchedulingRequest, snapshot: Snapshot) -> int | None:
    """How many shoots with this request the seeds that fit could still take; None: no limit."""
    shortlist = shortlist_of(request.demand, snapshot.landscape)
    if shortlist.refusal is not None:
        return 0
    places = 0
    for group in _order(shortlist).groups:
        for seed in group.seeds:
            if seed.name in shortlist.objections or network_problems(request.ranges, seed.seed.spec.networks):
                continue
            if seed.capacity is None:
                return None
            places += max(seed.capacity - snapshot.usage.get(seed.name, 0), 0)
    return places


def _least_used(
    seeds: Sequence[SeedCandidate], ranges: Ranges, shortlist: Shortlist, usage: dict[str, int]
) -> SeedCandidate | None:
    # Cheapest question first; the networks, which may differ from shoot to shoot, only of a seed that would win.
    best: SeedCandidate | None = None
    least = 0
    for seed in seeds:
        used = usage.get(seed.name, 0)
        if best is not None and used >= least:
            continue
        if seed.name in shortlist.objections or capacity.problem(used, seed.capacity):
            continue
        if not network_problems(ranges, seed.seed.spec.networks):
            best, least = seed, used
    return best


def _refusal(request: SchedulingRequest, shortlist: Shortlist, snapshot: Snapshot) -> Refusal:
    if shortlist.refusal is not None:
        return shortlist.refusal
    objections = dict(_objections(request.ranges, shortlist, snapshot.usage))
    against = tuple(objections.values())
    if len(against) < len(shortlist.candidates):
        order = _order(shortlist)
        left_out = [Rejection(seed, STRATEGY, detail) for seed, detail in order.left_out.items()]
        rejections = (*against, *(rejection for rejection in left_out if rejection.seed not in objections))
        return Refusal(STRATEGY, order.sentence, (*shortlist.rejections, *rejections))
    rules = {rejection.rule for rejection in against}
    return Refusal(
        rules.pop() if len(rules) == 1 else "candidates",
        f"0/{len(against)} seeds are eligible: {listed(against)}",
        (*shortlist.rejections, *against),
    )


def _objections(ranges: Ranges, shortlist: Shortlist, usage: dict[str, int]) -> Iterator[tuple[str, Rejection]]:
    for seed in shortlist.candidates:
        if problems := network_problems(ranges, seed.seed.spec.networks):
            yield seed.name, Rejection(seed.name, NETWORKS, f"invalid networks: {'; '.join(problems)}")
        elif seed.name in shortlist.objections:
            yield seed.name, shortlist.objections[seed.name]
        elif detail := capacity.problem(usage.get(seed.name, 0), seed.capacity):
            yield seed.name, Rejection(seed.name, CAPACITY, detail)


def _ranking(order: Order, objections: dict[str, Rejection], snapshot: Snapshot) -> Iterator[Ranked]:
    place = 0
    for group in order.groups:
        fitting = [seed for seed in group.seeds if seed.name not in objections]
        for seed in sorted(fitting, key=lambda seed: (snapshot.usage.get(seed.name, 0), seed.name)):
            place += 1
            yield Ranked(seed.name, place, group.distance, snapshot.usage.get(seed.name, 0), seed.capacity)


def _explanation(
    outcome: Outcome, snapshot: Snapshot, strategy: str, ranking: tuple[Ranked, ...], rejections: Sequence[Rejection]
) -> Explanation:
    landscape = snapshot.landscape
    funnel = tuple(_funnel(rejections, len(landscape.seeds), [each.name for each in landscape.filters]))
    return Explanation(outcome, strategy, funnel, ranking, tuple(sorted(rejections, key=_by_seed)))


def _funnel(rejections: Sequence[Rejection], seeds: int, users_filters: Sequence[str]) -> Iterator[Step]:
    """Count the seeds down, rule by rule; a rule that is none of the listed ones (no profile, no Project) is first."""
    order = [*(rule.name for rule in FILTERS), NETWORKS, TAINTS, *users_filters, CAPACITY, STRATEGY]
    counts = Counter(rejection.rule for rejection in rejections)
    for rule in sorted(counts, key=lambda rule: order.index(rule) if rule in order else -1):
        seeds -= counts[rule]
        yield Step(rule, counts[rule], seeds)


def _order(shortlist: Shortlist) -> Order:
    assert shortlist.order is not None, "a shortlist without refusal has an order"
    return shortlist.order


def _blanket(outcome: Outcome) -> tuple[str, str]:
    assert isinstance(outcome, Refusal), "only a refusal ends before the order"
    return outcome.rule, outcome.message


def _by_seed(rejection: Rejection) -> str:
    return rejection.seed
