"""Tables of docs/performance.md: Gardenbus beside a peer, each landscape a row. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from gardenbus.bench.peers.readings import ApiReading, PeerTurns


class PeerTable(NamedTuple):
    """A table of the page: its place, the columns of a landscape, what is counted, and the service that decides."""

    place: str
    columns: Sequence[str]
    unit: str
    service: str


def above(machine: Mapping[str, object], measured_at: str, turns: int) -> str:
    """The sentence above a table: when and on which machine it was measured."""
    described = "{cores} cores ({cpu}), {memory_gb} GB, Linux {kernel}, Python {python}".format_map(dict(machine))
    return f"Measured {measured_at}, {turns} turns each, on {described};\nload {machine.get('load_1m')} at the end."


def table(kind: PeerTable, turns: Sequence[PeerTurns], machine: Mapping[str, object], measured_at: str) -> str:
    """The table, with the versions and the machine above it: medians, with the least and the most in brackets."""
    first = turns[0].peers[0]
    measured = (
        f"{first.peer}: {kind.unit}/s",
        "a CPU-second",
        f"Gardenbus: {kind.unit}/s",
        "a CPU-second",
        f"the {kind.service}'s process alone",
        "times a CPU-second",
    )
    lines = [
        f"{above(machine, measured_at, len(turns[0].peers))} {first.go}.",
        "",
        f"| {' | '.join([*kind.columns, *measured])} |",
        f"|{'---|' * len(kind.columns)}{'---:|' * len(measured)}",
        *(_row(each, kind.service) for each in turns),
    ]
    return "\n".join(lines) + "\n"


def api_table(readings: Sequence[ApiReading], version: str, above: str) -> str:
    """Both Kubernetes APIs beside each other, a row a load; `version` is that of the real one."""
    own, peer = readings[0].server, next(each.server for each in readings if each.server != readings[0].server)
    lines = [
        above,
        "",
        f"| load | {peer} {version}: a second | CPU each | {own}: a second | CPU each | CPU, times that of {peer} |",
        "|---|---:|---:|---:|---:|---:|",
        *(_api_row(load, readings, own, peer) for load in dict.fromkeys(each.load for each in readings)),
    ]
    return "\n".join(lines) + "\n"


def with_table(page: str, made: str, place: str) -> str:
    """The page with a table anew. Raises ValueError where the page has no place for it."""
    begin, end = f"<!-- {place}: begin (make bench-peers ARGS=--page) -->", f"<!-- {place}: end -->"
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not begins or not ends:
        raise ValueError(f"the page has no lines {begin} and {end}")
    return f"{before}{begin}\n\n{made}\n{end}{after}"


def times_per_cpu_second(turns: PeerTurns) -> float:
    """Objects that Gardenbus places in one CPU-second of all its processes, for one of the peer."""
    return median(_per_cpu(turns)) / median(each.placed / each.cpu_seconds for each in turns.peers)


def _row(turns: PeerTurns, service: str) -> str:
    cells = [
        *turns.landscape,
        _range(each.placed / each.seconds for each in turns.peers),
        _range(each.placed / each.cpu_seconds for each in turns.peers),
        _range(each["units"] / each["seconds"] for each in turns.own),
        _range(_per_cpu(turns)),
        _range(each["units"] / each[service] for each in turns.own),
        _short(times_per_cpu_second(turns)),
    ]
    return f"| {' | '.join(cells)} |"


def _api_row(load: str, readings: Sequence[ApiReading], own: str, peer: str) -> str:
    cells, costs = [load], dict[str, float]()
    for server in (peer, own):
        found = [each for each in readings if (each.load, each.server) == (load, server)]
        cost = [sum(each.cpu_us.values()) for each in found]
        costs[server] = median(cost)
        waits = [each.latency_ms["p99"] for each in found if each.latency_ms]
        late = f", p99 {median(waits):.0f} ms" if waits else ""
        cells += [f"{_range(each.rate for each in found)}{late}", f"{_range(cost)} µs"]
    return f"| {' | '.join([*cells, f'{costs[own] / costs[peer]:.2f}'])} |"


def _per_cpu(turns: PeerTurns) -> list[float]:
    """Units in one CPU-second of all processes: NATS, Redis, the relay and the service."""
    return [
        each["units"] / sum(value for name, value in each.items() if name not in ("units", "seconds"))
        for each in turns.own
    ]


def _range(values: Iterator[float] | list[float]) -> str:
    ordered = sorted(values)
    return f"{_short(median(ordered))} ({_short(ordered[0])} to {_short(ordered[-1])})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004 - digits that mean something
