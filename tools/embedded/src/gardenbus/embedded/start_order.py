"""Order in which `up -f` applies: first what agents need, and once they are ready, what is scheduled.

A Shoot that is applied before its nearest seed is ready is bound to a farther one, and stays there; so does a placement
before its clusters have joined.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from gardenbus.cli.manifests.files import as_mapping, is_scheduled
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import JOINED
from gardenbus.common.api.garden.rows import SeedRow, condition

WAITING = "Waiting"
"""First word of the line that a wait for agents begins with."""

WARNING = "Warning"
"""First word of a line that a person has to see, also after `up --detach`."""

AGENTS_READY_SECONDS = 30.0
"""Bound of the wait for the agents, after which what is scheduled is applied all the same."""

POLL_SECONDS = 0.25

_NAMED, _EXPLAINED = 3, 10


class Unready(NamedTuple):
    """An agent that is not ready: its seed or member cluster, and why."""

    name: str
    reason: str


class Phases(NamedTuple):
    """Manifests that are applied at once, and those that wait for the agents."""

    at_once: Sequence[Document]
    scheduled: Sequence[Document]


def in_phases(manifests: Iterable[Document]) -> Phases:
    """Separate what is scheduled onto seeds and member clusters from all other manifests; each keeps its order."""
    ordered = list(manifests)
    return Phases(
        [each for each in ordered if not is_scheduled(each)], [each for each in ordered if is_scheduled(each)]
    )


def unready_seeds(expected: Iterable[str], seeds: Iterable[SeedRow]) -> list[Unready]:
    """The expected seeds that no shoot can be scheduled to yet, each with its reason."""
    rows = {seed.name: seed for seed in seeds}
    found = ((name, _unready_because(rows.get(name))) for name in sorted(expected))
    return [Unready(f"seed {name}", reason) for name, reason in found if reason]


def unready_clusters(expected: Iterable[str], clusters: Iterable[Document]) -> list[Unready]:
    """The expected member clusters that have not joined yet."""
    joined = {
        as_mapping(each.get("metadata")).get("name")
        for each in clusters
        if condition(each, JOINED).get("status") == "True"
    }
    return [Unready(f"member cluster {name}", "it has not joined") for name in sorted(expected) if name not in joined]


async def until_agents_ready(
    unready: Callable[[], Awaitable[Sequence[Unready]]],
    notify: Callable[[str], None],
    *,
    rest: int,
    seconds: float = AGENTS_READY_SECONDS,
) -> None:
    """Wait until none is `unready` any more, at most so long; `notify` gets the wait, and a warning where it fails.

    `rest` is the number of manifests that wait for it.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    is_announced = False
    while missing := await unready():
        if loop.time() >= deadline:
            notify(timeout_line(missing, seconds, rest))
            return
        if not is_announced:
            notify(waiting_line(missing, seconds, rest))
            is_announced = True
        await asyncio.sleep(POLL_SECONDS)


def waiting_line(unready: Sequence[Unready], seconds: float, rest: int) -> str:
    """The line that a wait begins with."""
    names = _listed([each.name for each in unready], _NAMED)
    return f"{WAITING} at most {seconds:g} s for {names} to become ready; then {_manifests(rest)} will be applied"


def timeout_line(unready: Sequence[Unready], seconds: float, rest: int) -> str:
    """The line of a wait that ended by its bound."""
    names = _listed([f"{each.name} ({each.reason})" for each in unready], _EXPLAINED)
    return (
        f"{WARNING}: timed out after {seconds:g} s waiting for {names}; {_manifests(rest)} will be applied all the "
        "same, and may be scheduled farther away than with all of them ready: `gardenbus rebalance` lists these"
    )


def _unready_because(seed: SeedRow | None) -> str:
    if seed is None:
        return "its gardenlet has not registered it"
    if seed.ready != "True":
        return seed.message or f"its condition GardenletReady is {seed.ready or 'missing'}"
    return "its backup bucket is not ready" if seed.lacks_backups else ""


def _listed(names: Sequence[str], limit: int) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"


def _manifests(count: int) -> str:
    return f"the remaining {count} manifests" if count != 1 else "the remaining manifest"
