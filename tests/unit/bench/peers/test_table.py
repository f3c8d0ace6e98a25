"""The table of peers: medians of the turns, each with its range, a row a landscape."""

import pytest

from gardenbus.bench.peers.readings import ApiReading, PeerReading, PeerTurns
from gardenbus.bench.peers.table import PeerTable, api_table, table, times_per_cpu_second, with_table

KIND = PeerTable("peers", ("seeds", "placed before"), "decisions", "scheduler")

MACHINE = {"cores": 2, "cpu": "a cpu", "memory_gb": 8, "kernel": "6.1", "python": "3.12.1", "load_1m": 0.5}


def peer(seconds: float, cpu_seconds: float) -> PeerReading:
    return PeerReading("gardener v1", "go1.26", 40, seconds, cpu_seconds)


def turns() -> PeerTurns:
    own = [
        {"units": 4000, "seconds": seconds, "nats": 0.5, "redis": 0.5, "relay": 0.5, "scheduler": 0.5}
        for seconds in (1.0, 2.0, 4.0)
    ]
    return PeerTurns(("1,000", "20,000"), own, [peer(10.0, 20.0), peer(20.0, 40.0), peer(5.0, 10.0)])


def test_a_row_has_medians_with_the_least_and_the_most() -> None:
    row = table(KIND, [turns()], MACHINE, "today").splitlines()[-1]
    assert row == (
        "| 1,000 | 20,000 | 4.0 (2.0 to 8.0) | 2.0 (1.0 to 4.0) | 2,000 (1,000 to 4,000) | 2,000 (2,000 to 2,000) "
        "| 8,000 (8,000 to 8,000) | 1,000 |"
    )


def test_all_processes_count_against_the_peers_one() -> None:
    assert times_per_cpu_second(turns()) == 1000


def test_versions_and_the_machine_stand_above_the_table() -> None:
    text = table(KIND, [turns()], MACHINE, "today")
    assert "today, 3 turns each, on 2 cores (a cpu)" in text
    assert "load 0.5 at the end. go1.26." in text
    assert "| seeds | placed before | gardener v1: decisions/s | a CPU-second |" in text
    assert "|---|---|---:|---:|---:|---:|---:|---:|" in text
    assert "the scheduler's process alone" in text


def test_the_page_keeps_all_else() -> None:
    begin, end = "<!-- peers: begin (make bench-peers ARGS=--page) -->", "<!-- peers: end -->"
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    assert with_table(page, "new\n", "peers") == f"before\n{begin}\n\nnew\n\n{end}\nafter\n"
    with pytest.raises(ValueError, match="no lines"):
        with_table("nothing", "new\n", "peers")


def test_a_row_of_api_servers_sums_the_cpu_of_all_processes_and_says_who_takes_more() -> None:
    readings = [
        ApiReading("Gardenbus", "create", 500.0, {"all": 2000.0}),
        ApiReading("kube-apiserver", "create", 400.0, {"etcd": 600.0, "kube-apiserver": 1000.0}),
        ApiReading("Gardenbus", "watch event", 900.0, {"all": 90.0}, {"p99": 17.4}),
        ApiReading("kube-apiserver", "watch event", 900.0, {"etcd": 0.0, "kube-apiserver": 100.0}, {"p99": 35.0}),
    ]
    *_, create, watch = api_table(readings, "v1.34.4", "above").splitlines()
    assert create.endswith("| 1,600 (1,600 to 1,600) µs | 500 (500 to 500) | 2,000 (2,000 to 2,000) µs | 1.25 |")
    assert "p99 35 ms" in watch
    assert "p99 17 ms" in watch
    assert watch.endswith("| 0.90 |")
