"""Text of `explain`: the funnel, the ranking, the decision then and now. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.garden.unschedulable import brief_reason, full_reason, reason_in_brief

NAMED = 3
"""Seeds and reasons that are named before the rest is counted."""

RANKED = 10
"""Seeds of a ranking that are shown before the rest is counted."""


_SHORT = {
    "SeedResourcesFit": "fit",
    "SeedResourcesBalancedAllocation": "balanced",
    "MinimalDistance": "distance",
    "SeedAffinity": "affinity",
    "SeedZoneFit": "zones",
    "SeedAnnotation": "annotation",
    "ShootTopologySpread": "spread",
    "InterShootAffinity": "shoots",
}
"""Titles of columns by plug-in."""


class FunnelRow(NamedTuple):
    """One rule, or one of several reasons of it: how many seeds it left, and which it turned away."""

    left: str
    rule: str
    removed: str
    why: str


class RankRow(NamedTuple):
    """One feasible seed."""

    rank: str
    seed: str
    distance: str
    used: str
    allocatable: str


def headline(response: Mapping[str, Any]) -> Iterator[str]:
    """State of the shoot; since when it is unschedulable, and why: in short where the funnel has the rest."""
    where = f"is on {response['seed']}" if response.get("seed") else "waits for a seed"
    yield f"shoot {response.get('shoot')} {where} (scheduler: {response.get('schedulerName')})"
    if response.get("message"):
        shown = brief_reason if response.get("considered") else full_reason
        since, stated = response.get("since"), response.get("messageTime")
        found = f", found at {stated}" if stated and stated != since else ""
        yield f"  since {since}{found}: {shown(str(response['message']))}"


def funnel(considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[FunnelRow]:
    """From all seeds down to the feasible ones; a filter with several reasons has a row for each."""
    rejections = [as_mapping(each) for each in considered.get("rejections") or ()]
    seeds = len(considered.get("ranking") or ()) + len(rejections)
    yield FunnelRow(str(considered.get("seeds", seeds)), "(all seeds)", "", "")
    for step in map(as_mapping, considered.get("funnel") or ()):
        rule = str(step.get("rule"))
        by_reason: dict[str, list[str]] = {}
        for rejection in rejections:
            if rejection.get("rule") == rule:
                by_reason.setdefault(str(rejection.get("detail")), []).append(str(rejection.get("seed")))
        reasons = sorted(by_reason.items(), key=lambda reason: (-len(reason[1]), reason[0]))
        shown = reasons if show_all else reasons[:NAMED]
        for number, (reason, names) in enumerate(shown):
            first = number == 0
            left = str(step.get("left")) if first else ""
            yield FunnelRow(left, rule if first else "", abbreviated(names, show_all=show_all), reason)
        rest: Counter[str] = Counter()
        for reason, names in reasons[len(shown) :]:
            rest[reason_in_brief(reason)] += len(names)
        for brief, count in rest.most_common():
            yield FunnelRow("", "", f"{count} more", f"{brief} (--all names them)")


def ranking(considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[RankRow]:
    """The feasible seeds, the chosen one first."""
    ranked = [as_mapping(each) for each in considered.get("ranking") or ()]
    for each in ranked if show_all else ranked[:RANKED]:
        distance, capacity = each.get("distance"), each.get("capacity")
        yield RankRow(
            str(each.get("place")),
            str(each.get("seed")),
            "" if distance is None else str(distance),
            str(each.get("usage")),
            "no limit" if capacity is None else str(capacity),
        )


def ranking_columns(considered: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of the ranking: with a column for each score of the profile, in its order, where scores choose."""
    scores = _scores_of(considered)
    if not scores:
        return ("RANK", "SEED", "DISTANCE", "USED", "ALLOCATABLE")
    return ("RANK", "SEED", "SUM", *(f"{short_name(each)}*{each['weight']}" for each in scores), "USED", "ALLOCATABLE")


def scored_ranking(considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[tuple[str, ...]]:
    """The feasible seeds with their sums and scores, the chosen one first."""
    ranked = [as_mapping(each) for each in considered.get("ranking") or ()]
    for each, row in zip(ranked, ranking(considered, show_all=show_all), strict=False):
        points = (str(score) for score in each.get("scores") or ())
        yield row.rank, row.seed, str(each.get("sum")), *points, row.used, row.allocatable


def below_scores(considered: Mapping[str, Any]) -> Iterator[str]:
    """The scores that this shoot has no requests for, and what put the first seed before the second."""
    scores = _scores_of(considered)
    if not scores:
        return
    unrequested = [str(each["name"]) for each in scores if not each.get("requested")]
    if unrequested:
        yield f"not requested by this shoot, the same everywhere: {', '.join(unrequested)}"
    ranked = [as_mapping(each) for each in considered.get("ranking") or ()]
    if len(ranked) > 1:
        yield compared(ranked[0], ranked[1], considered)
    yield from _plugins(considered)


def _plugins(considered: Mapping[str, Any]) -> Iterator[str]:
    """The age of what plug-ins over NATS have replied, and why they have not."""
    for each in _mappings(considered.get("plugins")):
        age, problem = each.get("ageSeconds"), each.get("problem")
        replied = f"its reply is {age} s old" if age is not None else "it has not replied about this shoot"
        yield f"{each.get('name')}: {replied}{f'; {problem}' if problem else ''}"


def compared(one: Mapping[str, Any], other: Mapping[str, Any], considered: Mapping[str, Any]) -> str:
    """The reason why one seed is ranked before another: score by score, the greatest difference first."""
    before = f"{one.get('seed')} before {other.get('seed')}"
    if one.get("distance") != other.get("distance"):
        return f"{before}: nearer, and scores choose among seeds that are equally near"
    pairs = zip(_scores_of(considered), one.get("scores") or (), other.get("scores") or (), strict=True)
    found = [(str(each["name"]), int(each["weight"]) * (int(first) - int(second))) for each, first, second in pairs]
    differences = sorted((each for each in found if each[1]), key=_by_size)
    if not differences:
        return f"{before}: all scores are equal, so the first by name"
    sums = f", the same sum of {one.get('sum')}: the first by name" if one.get("sum") == other.get("sum") else ""
    return f"{before}: {', '.join(f'{name} {points:+}' for name, points in differences)}{sums}"


def _by_size(difference: tuple[str, int]) -> int:
    return -abs(difference[1])


def about_seed(considered: Mapping[str, Any], seed: str) -> Iterator[str]:
    """The reason why one seed is not chosen, or that it is."""
    rejection = next((each for each in _mappings(considered.get("rejections")) if each.get("seed") == seed), None)
    if rejection is not None:
        yield f"{seed} is not possible: {rejection.get('rule')}: {rejection.get('detail')}"
        return
    ranked = _mappings(considered.get("ranking"))
    found = next((each for each in ranked if each.get("seed") == seed), None)
    if found is None:
        yield f"there is no seed {seed}"
    elif found is ranked[0]:
        yield f"{seed} is the first of {len(ranked)} seeds that fit: {_because(considered)}"
    else:
        yield f"{seed} fits, at place {found.get('place')} of {len(ranked)}"
        yield _before(ranked[0], found, considered)


def _before(one: Mapping[str, Any], other: Mapping[str, Any], considered: Mapping[str, Any]) -> str:
    if _scores_of(considered):
        return compared(one, other, considered)
    before = f"{one.get('seed')} before {other.get('seed')}"
    if one.get("distance") != other.get("distance"):
        return f"{before}: distance {one.get('distance')}, not {other.get('distance')}"
    if one.get("usage") != other.get("usage"):
        return f"{before}: {one.get('usage')} shoots, not {other.get('usage')}"
    return f"{before}: as many shoots, so the first by name"


def short_name(score: Mapping[str, Any]) -> str:
    """Title of a score's column."""
    plugin, _, instance = str(score.get("name")).partition("/")
    return f"{_SHORT.get(plugin, plugin)}{f'/{instance}' if instance else ''}".upper()


def _scores_of(considered: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return _mappings(considered.get("scores"))


def _mappings(values: object) -> Sequence[Mapping[str, Any]]:
    return [as_mapping(each) for each in cast("Sequence[object]", values or ())]


def below_ranking(
    response: Mapping[str, Any], considered: Mapping[str, Any], *, show_all: bool = False
) -> Iterator[str]:
    """The number of seeds that are not shown, and the note that the shoot itself is not counted."""
    hidden = len(considered.get("ranking") or ()) - RANKED
    if hidden > 0 and not show_all:
        yield f"and {hidden} more (--all shows them)"
    if response.get("seed"):
        yield f"USED leaves this shoot itself out: on {response['seed']} it is one more"


def decision(response: Mapping[str, Any], considered: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """The decision at present, the time of the next try, and the changes that would unblock the shoot."""
    skipped, chosen = considered.get("skipped"), considered.get("wouldChoose")
    if response.get("seed"):
        yield _now_as_then(str(response["seed"]), chosen, considered)
        yield from _nearer(response, as_mapping(considered.get("nearer")))
        return
    if skipped:
        yield f"its scheduler does not place it: {skipped}"
    if chosen:
        yield f"now it would be placed on {chosen}: {_because(considered)}"
    elif considered.get("message"):
        is_repeated = str(considered["message"]) in str(response.get("message"))
        yield (
            "no seed fits, see above" if is_repeated else f"no seed fits: {brief_reason(str(considered['message']))}"
        )
    if not skipped:
        due = response.get("nextAttempt")
        yield f"tried next: {due} ({_until(str(due), now)})" if due else "tried next: no timer is set, so it is at hand"
    unblocking = response.get("wakesOn") or ()
    if unblocking:
        yield "retried earlier if"
        yield from (f"  - {each}" for each in unblocking)


def history(recorded: Mapping[str, Any], seed: str) -> Iterator[str]:
    """Reason for the seed at the time of the bind, from its decision record."""
    steps = [f"{step.get('left')} after {step.get('rule')}" for step in map(as_mapping, recorded.get("funnel") or ())]
    left = f": {', '.join(steps)}" if steps else ""
    yield f"{recorded.get('at')}: {recorded.get('considered')} seeds{left}, strategy {recorded.get('strategy')}"
    chosen, distance = str(recorded.get("seed")), recorded.get("distance")
    nearer = recorded.get("nearerWithoutRoom")
    if nearer:
        yield f"{nearer} nearer {'ones' if nearer != 1 else 'one'} had no room, or networks that overlap the shoot's"
    where = f" at distance {distance}" if distance is not None else ""
    limit = "no limit" if recorded.get("allocatable") is None else f"of {recorded['allocatable']}"
    alone = recorded.get("eligible") == 1
    by_scores = recorded.get("sum") is not None
    best = "the fewest" if not by_scores else "the greatest sum of scores"
    why = "the only one as near" if alone else f"{best} of the {recorded.get('eligible')} as near"
    yield f"{chosen}{where} had {recorded.get('used')} shoots ({limit}), {why}"
    following = as_mapping(recorded.get("runnerUp"))
    if by_scores:
        yield from _scores_then(recorded, following)
    elif following:
        tie = " and a name that comes later" if following.get("used") == recorded.get("used") else ""
        yield f"next would have been {following.get('seed')} with {following.get('used')} shoots{tie}"
    if chosen != seed:
        yield f"since then it was moved from {chosen} to {seed}"


def _scores_then(recorded: Mapping[str, Any], following: Mapping[str, Any]) -> Iterator[str]:
    """Scores of the seed with the weights of then."""
    terms = " + ".join(
        f"{each.get('weight')}·{each.get('score')} {each.get('name')}" for each in _mappings(recorded.get("scores"))
    )
    yield f"sum {recorded.get('sum')} = {terms} (profile {recorded.get('profile')})"
    if following:
        tie = " and a name that comes later" if following.get("sum") == recorded.get("sum") else ""
        yield f"next would have been {following.get('seed')} with {following.get('sum')}{tie}"


def seed_headline(response: Mapping[str, Any]) -> str:
    """State of a seed for scheduling, and its usage."""
    usability = "schedulable" if response.get("usable") else "unschedulable"
    capacity = response.get("allocatable")
    used = (
        f"{response.get('used')}/{capacity} shoots"
        if capacity is not None
        else f"{response.get('used')} shoots, no limit"
    )
    return f"seed {response.get('seed')} ({response.get('provider')}, {response.get('region')}) {usability}; {used}"


def schedulable_lines(response: Mapping[str, Any], *, show_all: bool = False) -> Iterator[str]:
    """Unschedulable shoots that would fit the seed."""
    waiting = [f"{each.get('namespace')}/{each.get('name')}" for each in map(as_mapping, response.get("waiting") or ())]
    total = int(response.get("waitingTotal") or len(waiting))
    if not total:
        yield "no pending shoot would fit it, whatever its state"
        return
    condition = "" if response.get("usable") else " if it were schedulable"
    yield f"{total} pending shoots would fit it{condition}:"
    shown = waiting if show_all else waiting[:RANKED]
    yield from (f"  {name}" for name in shown)
    if total > len(shown):
        yield f"  and {total - len(shown)} more"


def abbreviated(names: Iterable[str], *, show_all: bool = False) -> str:
    """`a, b, c and 4 more`."""
    ordered = sorted(names)
    if show_all or len(ordered) <= NAMED + 1:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:NAMED])} and {len(ordered) - NAMED} more"


def _now_as_then(seed: str, chosen: object, considered: Mapping[str, Any]) -> str:
    if chosen == seed:
        return f"now it would be placed on {seed} again: {_because(considered)}"
    if chosen:
        return f"now it would be placed on {chosen} ({_because(considered)}); a placed shoot is never moved by itself"
    reason = brief_reason(str(considered.get("message")))
    return f"now no seed would take it: {reason}; a placed shoot stays where it is"


def _nearer(response: Mapping[str, Any], nearer: Mapping[str, Any]) -> Iterator[str]:
    """The ready seed with room that is nearer than the shoot's own, and what moves it there."""
    if not nearer:
        return
    seed, there = response["seed"], nearer.get("seed")
    yield (
        f"farther away than it could be: {seed} is at distance {nearer.get('ownDistance')}, {there} at "
        f"{nearer.get('distance')} is ready and has room"
    )
    if nearer.get("keptByDomain"):
        yield f"its domain is made of {seed}'s default domain, and keeps it there: only ordered anew it goes to {there}"
    else:
        yield f"`gardenbus bind {response.get('shoot')} {there}` moves it there"


def _because(considered: Mapping[str, Any]) -> str:
    ranked = [as_mapping(each) for each in considered.get("ranking") or ()]
    if len(ranked) == 1:
        return "the only seed that fits"
    first, second = ranked[0], ranked[1]
    if first.get("distance") != second.get("distance"):
        return f"the nearest of {len(ranked)} seeds that fit"
    if _scores_of(considered):
        if first.get("sum") == second.get("sum"):
            return f"the first by name of the greatest sum {first.get('sum')}, {len(ranked)} seeds fit"
        return f"the greatest sum {first.get('sum')} of the nearest, {len(ranked)} seeds fit"
    if first.get("usage") != second.get("usage"):
        return f"the least used of the nearest, {len(ranked)} seeds fit"
    return f"the first by name of the least used, {len(ranked)} seeds fit"


def _until(due: str, now: datetime) -> str:
    try:
        seconds = (datetime.fromisoformat(due) - now).total_seconds()
    except ValueError:
        return "at a time that cannot be read"
    return f"in {seconds:.0f}s" if seconds > 0 else "any moment"
