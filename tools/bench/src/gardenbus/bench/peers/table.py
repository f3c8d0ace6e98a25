"""Table of docs/performance.md: Gardenbus beside a peer, each landscape a row. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from gardenbus.bench.peers.readings import ApiReading, PeerTurns

BEGIN, END = "<!-- peers: begin (make bench-peers ARGS=--page) -->", "<!-- peers: end -->"

API_BEGIN, API_END = "<!-- api servers: begin (make bench-peers ARGS=--page) -->", "<!-- api servers: end -->"

_HEAD = """\
| seeds | placed before | {peer}: decisions/s | a CPU-second | Gardenbus: decisions/s | a CPU-second | \
the scheduler's process alone | times a CPU-second |
|---:|---:|---:|---:|---:|---:|---:|---:|"""


def above(machine: Mapping[str, object], measured_at: str, turns: int) -> str:
    """The sentence above a table: when and on which machine it was measured."""
    described = "{cores} cores ({cpu}), {memory_gb} GB, Linux {kernel}, Python {python}".format_map(dict(machine))
    return f"Measured {measured_at}, {turns} turns each, on {described};\nload {machine.get('load_1m')} at the end."


def table(turns: Sequence[PeerTurns], machine: Mapping[str, object], measured_at: str) -> str:
    """The table, with the versions and the machine above it: medians, with the least and the most in brackets."""
    first = turns[0].peers[0]
    lines = [
        f"{above(machine, measured_at, len(turns[0].peers))} {first.go}.",
        "",
        _HEAD.format(peer=first.peer),
        *(_row(each) for each in turns),
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


def with_table(page: str, made: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with its table anew. Raises ValueError where the page has no place for it."""
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not begins or not ends:
        raise ValueError(f"the page has no lines {begin} and {end}")
    return f"{before}{begin}\n\n{made}\n{end}{after}"


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
