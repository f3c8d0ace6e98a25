"""The table of peers: medians of the turns, each with its range, a row a landscape."""

import pytest

from gardenbus.bench.peers.readings import PeerLandscape, PeerReading, PeerTurns
from gardenbus.bench.peers.table import BEGIN, END, table, times_per_cpu_second, with_table

MACHINE = {"cores": 2, "cpu": "a cpu", "memory_gb": 8, "kernel": "6.1", "python": "3.12.1", "load_1m": 0.5}


def peer(seconds: float, cpu_seconds: float) -> PeerReading:
    return PeerReading("gardener v1", "go1.26", 40, 40, seconds, cpu_seconds)


def turns() -> PeerTurns:
    own = [
        {"units": 4000, "seconds": seconds, "nats": 0.5, "redis": 0.5, "relay": 0.5, "scheduler": 0.5}
        for seconds in (1.0, 2.0, 4.0)
    ]
    landscape = PeerLandscape(seeds=1000, placed=20_000, own=4000, peers=40)
    return PeerTurns(landscape, own, [peer(10.0, 20.0), peer(20.0, 40.0), peer(5.0, 10.0)])


def test_a_row_has_medians_with_the_least_and_the_most() -> None:
    row = table([turns()], MACHINE, "today").splitlines()[-1]
    assert row == (
        "| 1,000 | 20,000 | 4.0 (2.0 to 8.0) | 2.0 (1.0 to 4.0) | 2,000 (1,000 to 4,000) | 2,000 (2,000 to 2,000) "
        "| 8,000 (8,000 to 8,000) | 1,000 |"
    )


def test_all_processes_count_against_the_peers_one() -> None:
    assert times_per_cpu_second(turns()) == 1000


def test_versions_and_the_machine_stand_above_the_table() -> None:
    text = table([turns()], MACHINE, "today")
    for part in ("today, 3 turns each, on 2 cores (a cpu)", "go1.26; load 0.5", "| gardener v1: decisions/s |"):
        assert part in text


def test_the_page_keeps_all_else() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_table(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(ValueError, match="no lines"):
        with_table("nothing", "new\n")
