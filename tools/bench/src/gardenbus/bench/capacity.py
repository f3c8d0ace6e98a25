"""Throughput with more machines: a queueing model whose service times were measured. Pure, but for `main`.

    python -m gardenbus.bench.capacity bench-results/results.json

A shoot on its way from `garden.apply` to its binding visits five stations: apiserver, Redis, relay, NATS, scheduler.
The CPU seconds that each spends on a shoot are those of the scenario `stream`. A station is a queue with several equal
servers (M/M/c): processes where there is one event loop or one thread each, cores where a process uses many (NATS).
Partitions of the outbox have a relay each, and shards of the store a Redis each.

By the utilisation law no more can go through than servers / service time at the busiest station; waiting follows from
Erlang's C formula. Left out are disks (a batch is synced at once, so they add to latency and hardly to load), the
network, and what partitions cost in themselves.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

SCENARIO = "stream"
STATIONS = ("apiserver", "redis", "relay", "nats", "scheduler")
UTILISATION = 0.7
NATS_CORES = 4
SCHEDULERS = (1, 2, 4, 8, 16, 32, 64)


class StationServers(NamedTuple):
    """Number of servers at each station."""

    apiservers: int = 1
    schedulers: int = 1
    partitions: int = 1
    """Of the outbox: one relay each."""

    shards: int = 1
    """Of the store: one Redis each."""

    nats_cores: int = NATS_CORES

    def servers(self) -> Mapping[str, int]:
        """Servers at each station."""
        return {
            "apiserver": self.apiservers,
            "redis": self.shards,
            "relay": self.partitions,
            "nats": self.nats_cores,
            "scheduler": self.schedulers,
        }


class Ceiling(NamedTuple):
    """The most that goes through, and the station that is in the way."""

    per_s: float
    station: str


def ceiling(seconds: Mapping[str, float], deployment: StationServers) -> Ceiling:
    """The rate at which the first station is busy all the time. `seconds` is each station's work on one shoot."""
    servers = deployment.servers()
    station = min(seconds, key=lambda name: servers[name] / seconds[name])
    return Ceiling(servers[station] / seconds[station], station)


def on_one_machine(seconds: Mapping[str, float], cores: int) -> float:
    """The most that goes through when all share a machine's cores."""
    return cores / sum(seconds.values())


def response_seconds(seconds: Mapping[str, float], deployment: StationServers, per_s: float) -> float:
    """Mean time of a shoot at all stations, waiting included; infinite where a station cannot follow."""
    servers = deployment.servers()
    return sum(station_seconds(work, servers[name], per_s) for name, work in seconds.items())


def station_seconds(work: float, servers: int, per_s: float) -> float:
    """Mean time at one station of `servers` equal servers (M/M/c), `work` seconds of it being served."""
    load = per_s * work
    if load >= servers:
        return float("inf")
    return work + erlang_c(load, servers) * work / (servers - load)


def erlang_c(load: float, servers: int) -> float:
    """The probability of having to wait, for a load in servers' worth of work (Erlang's C formula)."""
    blocked = 1.0  # Erlang's B formula, server by server
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def grown(seconds: Mapping[str, float], schedulers: int) -> StationServers:
    """A deployment in which nothing but that many schedulers is in the way, as small as possible."""
    per_s = schedulers / seconds["scheduler"]
    needed = {name: max(1, -int(-per_s * work // 1)) for name, work in seconds.items()}
    return StationServers(
        apiservers=needed["apiserver"],
        schedulers=schedulers,
        partitions=needed["relay"],
        shards=needed["redis"],
        nats_cores=needed["nats"],
    )


def work_of(cpu_s: Mapping[str, float], units: int) -> dict[str, float]:
    """Seconds of work on one shoot, by station; replicas' are added up."""
    return {
        station: sum(cpu for name, cpu in cpu_s.items() if name.split("-")[0] == station) / units
        for station in STATIONS
    }


HEADS = (
    "schedulers",
    "apiservers",
    "with one relay, one Redis",
    "in the way",
    "with as many as needed",
    "relays",
    "Redis",
    "NATS cores",
    f"mean ms at {UTILISATION:.0%}",
)


def table(seconds: Mapping[str, float]) -> list[str]:
    """A Markdown table of throughput by schedulers (and apiservers that feed them), without and with all else grown."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{'---:|' * len(HEADS)}"]
    for schedulers in SCHEDULERS:
        larger = grown(seconds, schedulers)
        alone = ceiling(seconds, StationServers(apiservers=larger.apiservers, schedulers=schedulers))
        most = ceiling(seconds, larger)
        values: Sequence[object] = (
            schedulers,
            larger.apiservers,
            f"{alone.per_s:,.0f}/s",
            alone.station,
            f"{most.per_s:,.0f}/s",
            larger.partitions,
            larger.shards,
            larger.nats_cores,
            f"{1000 * response_seconds(seconds, larger, UTILISATION * most.per_s):.1f}",
        )
        lines.append(f"| {' | '.join(str(cell) for cell in values)} |")
    return lines


class _Details(msgspec.Struct):
    units: int


class _Result(msgspec.Struct):
    scenario: str
    cpu_s: dict[str, float]
    details: _Details


def main(arguments: Sequence[str]) -> int:
    """Print the tables for a file of results; 1 when the scenario is not in it."""
    results = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=list[_Result])
    found = next((result for result in results if result.scenario == SCENARIO), None)
    if found is None:
        sys.stderr.write(f"no scenario {SCENARIO} in {arguments[0]}\n")
        return 1
    seconds = work_of(found.cpu_s, found.details.units)
    summary = ", ".join(f"{name} {1e6 * work:.0f} µs" for name, work in seconds.items())
    lines = [f"Work on a shoot: {summary}.", "", *table(seconds)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
