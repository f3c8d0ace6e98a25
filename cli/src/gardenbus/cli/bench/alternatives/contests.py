"""What is measured, by name: each contest on servers of its own, with the durabilities that matter to it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from gardenbus.cli.bench.alternatives.fetching import fetching
from gardenbus.cli.bench.alternatives.following import following
from gardenbus.cli.bench.alternatives.loops import loops
from gardenbus.cli.bench.alternatives.parsers import parsers
from gardenbus.cli.bench.alternatives.publishing import publishing
from gardenbus.cli.bench.alternatives.reading import reading
from gardenbus.cli.bench.alternatives.scripts import scripts
from gardenbus.cli.bench.alternatives.spending import Row, Size
from gardenbus.cli.bench.rig import Rig, a_rig
from gardenbus.cli.supervisor.durability import Durability

Measure = Callable[[Rig, Size, str], Awaitable[list[Row]]]


class Contest(NamedTuple):
    """What is measured, and under which durabilities."""

    measure: Measure
    durabilities: Sequence[Durability] = (Durability.PROCESS,)


CONTESTS: dict[str, Contest] = {
    "loops": Contest(loops),
    "parsers": Contest(parsers),
    "scripts": Contest(scripts),
    "publishing": Contest(publishing, (Durability.PROCESS, Durability.POWER)),
    "fetching": Contest(fetching),
    "following": Contest(following),
    "reading": Contest(reading),
}


async def rows_of(name: str, size: Size, said: Callable[[str], None]) -> list[Row]:
    """Measure one. Raises BenchFailed when it does not come about."""
    contest = CONTESTS[name]
    rows: list[Row] = []
    for durability in contest.durabilities:
        said(f"{name} ({durability.value})")
        async with a_rig(durability) as rig:
            rows += await contest.measure(rig, size, durability.value)
            rig.check_running()
    return rows
