"""The queueing model keeps the laws that it rests on."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.bench.capacity import (
    STATIONS,
    StationServers,
    ceiling,
    erlang_c,
    grown,
    main,
    on_one_machine,
    response_seconds,
    station_seconds,
    work_of,
)

WORK = {"apiserver": 700e-6, "redis": 200e-6, "relay": 250e-6, "nats": 600e-6, "scheduler": 250e-6}
SECONDS = st.fixed_dictionaries({name: st.floats(min_value=1e-6, max_value=1e-2) for name in STATIONS})


def test_one_server_waits_as_the_text_books_say() -> None:
    assert erlang_c(0.5, 1) == pytest.approx(0.5)
    assert erlang_c(1.0, 2) == pytest.approx(1 / 3)
    assert station_seconds(0.001, 1, 500) == pytest.approx(0.002), "1 / (mu - lambda)"
    assert station_seconds(0.001, 1, 1000) == math.inf


def test_the_busiest_station_is_in_the_way() -> None:
    assert ceiling(WORK, StationServers()) == (pytest.approx(1 / 700e-6), "apiserver")
    assert ceiling(WORK, StationServers(apiservers=64, schedulers=64)).station == "relay"
    assert ceiling(WORK, StationServers(apiservers=64, schedulers=64, partitions=8)).station == "redis"
    assert on_one_machine(WORK, 2) == pytest.approx(1000)


@given(SECONDS, st.integers(min_value=1, max_value=64))
def test_a_grown_deployment_is_held_up_by_its_schedulers_alone(seconds: dict[str, float], schedulers: int) -> None:
    most = ceiling(seconds, grown(seconds, schedulers))
    assert most.per_s == pytest.approx(schedulers / seconds["scheduler"])
    assert ceiling(seconds, StationServers(schedulers=schedulers)).per_s <= most.per_s * 1.000001


@given(SECONDS, st.floats(min_value=0.05, max_value=0.9))
def test_more_load_means_longer_waits_and_never_less_than_the_work_itself(
    seconds: dict[str, float], share: float
) -> None:
    deployment = StationServers()
    most = ceiling(seconds, deployment).per_s
    calm = response_seconds(seconds, deployment, most * share / 2)
    busy = response_seconds(seconds, deployment, most * share)
    assert sum(seconds.values()) <= calm <= busy < math.inf


def test_replicas_work_is_added_up() -> None:
    cpu = {
        "scheduler-1": 1.0,
        "scheduler-2": 1.0,
        "apiserver": 3.0,
        "redis": 1.0,
        "relay": 1.0,
        "nats": 2.0,
        "bench": 9.0,
    }
    assert work_of(cpu, 1000)["scheduler"] == pytest.approx(0.002)
    assert set(work_of(cpu, 1000)) == set(STATIONS)


def test_the_tables_come_from_a_file_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    file.write_text(
        '[{"scenario":"stream","cpu_s":{"apiserver":0.7,"redis":0.2,"relay":0.25,"nats":0.6,"scheduler":0.25},'
        '"details":{"units":1000}}]'
    )
    assert main([str(file)]) == 0
    reported = capsys.readouterr().out
    assert "apiserver 700 µs" in reported
    assert "| 64 | 180 | 4,000/s | relay | 256,000/s |" in reported
    file.write_text("[]")
    assert main([str(file)]) == 1
