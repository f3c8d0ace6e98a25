"""What `explain` says, as text: the funnel, the ranking, the decision then and now. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gardenbus.cli.documents import as_mapping
from gardenbus.cli.refusals import essence, whole

NAMED = 3
"""Seeds and reasons that are named before the rest is counted."""

RANKED = 10
"""Seeds of a ranking that are shown before the rest is counted."""


class FunnelRow(NamedTuple):
    """One rule, or one of several reasons of it: how many seeds it left, and which it turned away."""

    left: str
    rule: str
    removed: str
    why: str


class RankRow(NamedTuple):
    """One seed that fits."""

    rank: str
    seed: str
    distance: str
    used: str
    allocatable: str


def headline(answer: Mapping[str, Any]) -> Iterator[str]:
    """Where the shoot stands, and since when it waits with what refusal: the essence where the funnel has the rest."""
    where = f"is on {answer['seed']}" if answer.get("seed") else "waits for a seed"
    yield f"shoot {answer.get('shoot')} {where} (scheduler: {answer.get('schedulerName')})"
    if answer.get("message"):
        shown = essence if answer.get("considered") else whole
        yield f"  since {answer.get('since')}: {shown(str(answer['message']))}"


def funnel(considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[FunnelRow]:
    """From all seeds down to those that fit; a rule with several reasons takes a row for each."""
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
        if len(reasons) > len(shown):
            rest = sum(len(names) for _, names in reasons[len(shown) :])
            yield FunnelRow("", "", f"{rest} more", "for other reasons (--all names them)")


def ranking(considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[RankRow]:
    """The seeds that fit, the chosen one first."""
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


def below_ranking(answer: Mapping[str, Any], considered: Mapping[str, Any], *, show_all: bool = False) -> Iterator[str]:
    """How many seeds are not shown, and that the shoot itself is not counted."""
    hidden = len(considered.get("ranking") or ()) - RANKED
    if hidden > 0 and not show_all:
        yield f"and {hidden} more (--all shows them)"
    if answer.get("seed"):
        yield f"USED leaves this shoot itself out: on {answer['seed']} it is one more"


def decision(answer: Mapping[str, Any], considered: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What comes of it now, when it is tried again, and what would wake it."""
    skipped, chosen = considered.get("skipped"), considered.get("wouldChoose")
    if answer.get("seed"):
        yield _now_as_then(str(answer["seed"]), chosen, considered)
        return
    if skipped:
        yield f"its scheduler does not place it: {skipped}"
    if chosen:
        yield f"now it would be placed on {chosen}: {_because(considered)}"
    elif considered.get("message"):
        is_said = str(considered["message"]) in str(answer.get("message"))
        yield "no seed fits, as said above" if is_said else f"no seed fits: {essence(str(considered['message']))}"
    if not skipped:
        due = answer.get("nextAttempt")
        yield f"tried next: {due} ({_until(str(due), now)})" if due else "tried next: no timer is set, so it is at hand"
    wakes = answer.get("wakesOn") or ()
    if wakes:
        yield "it is woken before that when"
        yield from (f"  - {each}" for each in wakes)


def history(recorded: Mapping[str, Any], seed: str) -> Iterator[str]:
    """Why it was this seed then, from what was recorded with its bind."""
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
    why = "the only one as near" if alone else f"the fewest of the {recorded.get('eligible')} as near"
    yield f"{chosen}{where} had {recorded.get('used')} shoots ({limit}), {why}"
    following = as_mapping(recorded.get("runnerUp"))
    if following:
        tie = " and a name that comes later" if following.get("used") == recorded.get("used") else ""
        yield f"next would have been {following.get('seed')} with {following.get('used')} shoots{tie}"
    if chosen != seed:
        yield f"since then it was moved from {chosen} to {seed}"


def seed_headline(answer: Mapping[str, Any]) -> str:
    """Whether the seed takes shoots, and how full it is."""
    takes = "takes shoots" if answer.get("usable") else "takes no shoots"
    capacity = answer.get("allocatable")
    used = f"{answer.get('used')}/{capacity}" if capacity is not None else f"{answer.get('used')}, no limit"
    return f"seed {answer.get('seed')} ({answer.get('provider')}, {answer.get('region')}) {takes}: {used} shoots"


def waiting_lines(answer: Mapping[str, Any], *, show_all: bool = False) -> Iterator[str]:
    """Which shoots that wait the seed could take."""
    waiting = [f"{each.get('namespace')}/{each.get('name')}" for each in map(as_mapping, answer.get("waiting") or ())]
    total = int(answer.get("waitingTotal") or len(waiting))
    if not total:
        yield "of the shoots that wait it could take none, whatever its state"
        return
    condition = "" if answer.get("usable") else ", were it usable"
    yield f"of the shoots that wait it could take {total}{condition}:"
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
    refusal = essence(str(considered.get("message")))
    return f"now no seed would take it: {refusal}; a placed shoot stays where it is"


def _because(considered: Mapping[str, Any]) -> str:
    ranked = [as_mapping(each) for each in considered.get("ranking") or ()]
    if len(ranked) == 1:
        return "the only seed that fits"
    first, second = ranked[0], ranked[1]
    if first.get("distance") != second.get("distance"):
        return f"the nearest of {len(ranked)} seeds that fit"
    if first.get("usage") != second.get("usage"):
        return f"the least used of the nearest, {len(ranked)} seeds fit"
    return f"the first by name of the least used, {len(ranked)} seeds fit"


def _until(due: str, now: datetime) -> str:
    try:
        seconds = (datetime.fromisoformat(due) - now).total_seconds()
    except ValueError:
        return "at a time that cannot be read"
    return f"in {seconds:.0f}s" if seconds > 0 else "any moment"
