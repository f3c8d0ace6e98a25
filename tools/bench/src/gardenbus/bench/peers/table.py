"""Table of docs/performance.md: Gardenbus beside a peer, each landscape a row. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from gardenbus.bench.peers.readings import PeerTurns

BEGIN, END = "<!-- peers: begin (make bench-peers ARGS=--page) -->", "<!-- peers: end -->"

_HEAD = """\
| seeds | placed before | {peer}: decisions/s | a CPU-second | Gardenbus: decisions/s | a CPU-second | \
the scheduler's process alone | times a CPU-second |
|---:|---:|---:|---:|---:|---:|---:|---:|"""


def table(turns: Sequence[PeerTurns], machine: Mapping[str, object], measured_at: str) -> str:
    """The table, with the versions and the machine above it: medians, with the least and the most in brackets."""
    first = turns[0].peers[0]
    machine_line = "{cores} cores ({cpu}), {memory_gb} GB, Linux {kernel}, Python {python}".format_map(dict(machine))
    lines = [
        f"Measured {measured_at}, {len(turns[0].peers)} turns each, on {machine_line},",
        f"{first.go}; load {machine.get('load_1m')} at the end.",
        "",
        _HEAD.format(peer=first.peer),
        *(_row(each) for each in turns),
    ]
    return "\n".join(lines) + "\n"


def with_table(page: str, made: str) -> str:
    """The page with its table anew. Raises ValueError where the page has no place for it."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{made}\n{END}{after}"


def times_per_cpu_second(turns: PeerTurns) -> float:
    """Decisions that Gardenbus makes in one CPU-second of all its processes, for one of the peer."""
    return median(_per_cpu(turns)) / median(each.decisions / each.cpu_seconds for each in turns.peers)


def _row(turns: PeerTurns) -> str:
    cells = [
        f"{turns.landscape.seeds:,}",
        f"{turns.landscape.placed:,}",
        _range(each.decisions / each.seconds for each in turns.peers),
        _range(each.decisions / each.cpu_seconds for each in turns.peers),
        _range(each["units"] / each["seconds"] for each in turns.own),
        _range(_per_cpu(turns)),
        _range(each["units"] / each["scheduler"] for each in turns.own),
        f"{times_per_cpu_second(turns):,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _per_cpu(turns: PeerTurns) -> list[float]:
    """Decisions in one CPU-second of all processes: NATS, Redis, relay and scheduler."""
    return [
        each["units"] / sum(value for name, value in each.items() if name not in ("units", "seconds"))
        for each in turns.own
    ]


def _range(values: Iterator[float] | list[float]) -> str:
    ordered = sorted(values)
    return f"{_short(median(ordered))} ({_short(ordered[0])} to {_short(ordered[-1])})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004 - digits that mean something
