import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, LandscapeInUse, ServiceEntry, write_whole
from gardenbus.cli.manifests.files import SortedManifests
from gardenbus.common.api.document import Document
from gardenbus.common.api.server_versions import Versions
from gardenbus.embedded.configurations import DEFAULT_SCHEDULER_CONFIGURATION, write_configurations
from gardenbus.embedded.ports import PORTS, PortInUse, ReservedPort, choose_port, is_free
from gardenbus.embedded.process_specs import (
    Addresses,
    Configurations,
    dashboard_spec,
    in_groups,
    parse_replicas,
    service_specs,
    unknown_schedulers,
)
from gardenbus.embedded.processes import backoff_seconds
from gardenbus.embedded.servers import NATS, REDIS, ServerMissing, ServerRequirement, find_server
from tests.support.files import open_to_others


def a_gardenlet(seed: str, shoots: int = 1) -> Document:
    return {
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": shoots}},
        "seedConfig": {"metadata": {"name": seed}},
    }


MINE = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
    "schedulers": {"shoot": {"candidateDeterminationStrategy": "MinimalDistance"}},
}


def given(*gardenlets: Document, schedulers: Sequence[Document] = ()) -> SortedManifests:
    return SortedManifests(schedulers=schedulers, controller_manager=None, gardenlets=gardenlets, manifests=())


def a_program(directory: Path, name: str, version: str) -> None:
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)


def test_a_server_on_path_is_taken_if_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    a_program(tmp_path / "new", "nats-server", "nats-server: v2.12.12")
    a_program(tmp_path / "old", "nats-server", "nats-server: v2.12.11")
    a_program(tmp_path / "new", "redis-server", "Redis server v=7.0.15 sha=0 bits=64")
    monkeypatch.setenv("PATH", f"{tmp_path / 'new'}:{os.environ['PATH']}")
    assert find_server(NATS) == tmp_path / "new" / "nats-server"
    assert find_server(REDIS) == tmp_path / "new" / "redis-server"

    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:{os.environ['PATH'].partition(':')[2]}")
    assert find_server(NATS).parent != tmp_path / "old"


def test_a_missing_server_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    a_program(tmp_path, "rare-server", "v0.1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(ServerMissing, match=r"1\.0\.0 or newer is needed, found only .*rare-server \(0\.1\.0\)"):
        find_server(ServerRequirement("rare-server", Versions({(1, 0): 0})))
    with pytest.raises(ServerMissing, match="found none"):
        find_server(ServerRequirement("no-such-server", Versions({(1, 0): 0})))


def test_a_port_of_last_time_is_taken_again_when_it_is_free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not is_free(port)
        assigned: set[int] = set()
        assert choose_port(None, port, assigned) != port
        with pytest.raises(PortInUse):
            choose_port(port, None, assigned)
    assert choose_port(None, port, set()) == port
    assert choose_port(port, None, set()) == port
    assert choose_port(None, port, {port}) != port


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names beside the ports of a machine")
def test_a_well_known_port_is_one_landscapes_though_nobody_listens_there_yet():
    port = 1  # nobody's: this test needs no process that listens
    first = ReservedPort(port)
    with pytest.raises(PortInUse):
        ReservedPort(port)
    first.release()
    ReservedPort(port).release()


def test_landscape_json_says_where_everything_is(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path / "state")
    assert directory.read() is None

    landscape = LandscapeFile(
        nats_url="nats://127.0.0.1:4222",
        redis_url="redis://127.0.0.1:6379/0",
        services=(ServiceEntry(name="nats", pid=1),),
    )
    directory.write(landscape)

    assert directory.read() == landscape
    content = yaml.safe_load(directory.landscape_file.read_text())
    assert content["services"] == [{"name": "nats", "pid": 1, "health_url": None, "restarts": 0}]
    assert content["prefix"] == "garden"
    assert [path.name for path in directory.path.iterdir()] == ["landscape.json"]


def test_a_directory_has_one_supervisor(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    assert directory.supervisor() is None

    lock = directory.lock()
    with pytest.raises(LandscapeInUse, match=f"pid {os.getpid()}"):
        directory.lock()
    assert directory.supervisor() == os.getpid()

    os.close(lock)
    assert directory.supervisor() is None


def test_what_an_older_version_left_open_is_tightened_and_nothing_else(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("x")
    elsewhere.chmod(0o644)
    state = tmp_path / "state"
    deep = state / "gardenlets/a/shoots"
    deep.mkdir(parents=True)
    for file in (state / "landscape.json", state / "up.lock", deep / "s.json", state / "gardenlets/run.sh"):
        file.write_text("{}")
        file.chmod(0o755 if file.suffix == ".sh" else 0o644)
    (state / "gardenlets/link").symlink_to(elsewhere)

    LandscapeDirectory(state).prepare()

    assert open_to_others(state) == []
    assert (state / "gardenlets/run.sh").stat().st_mode & 0o777 == 0o700
    assert elsewhere.stat().st_mode & 0o777 == 0o644


def test_a_directory_with_what_is_somebody_else_s_stays_open_and_only_the_landscape_s_part_is_closed(tmp_path: Path):
    tmp_path.chmod(0o755)
    (tmp_path / "mine.txt").touch(mode=0o644)

    LandscapeDirectory(tmp_path).prepare()

    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in open_to_others(tmp_path)] == [tmp_path.name, "mine.txt"]


def test_a_file_is_made_for_its_owner_alone_whatever_the_mask_is(tmp_path: Path):
    before = os.umask(0)
    try:
        write_whole(tmp_path / "made/file", b"x")
        os.close(LandscapeDirectory(tmp_path / "state").lock())
        LandscapeDirectory(tmp_path / "state").prepare()
    finally:
        os.umask(before)

    assert open_to_others(tmp_path / "made") == open_to_others(tmp_path / "state") == []


def test_gardenlets_of_last_time_go_on_and_new_configurations_replace_them(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    write_configurations(directory, given(a_gardenlet("a"), a_gardenlet("b"), schedulers=[MINE]))

    files, seeds = write_configurations(directory, given(a_gardenlet("b", shoots=7), a_gardenlet("c")))

    assert seeds == ["a", "b", "c"]
    written = list(yaml.safe_load_all(files.gardenlets[0].read_text()))
    assert written == [a_gardenlet("a"), a_gardenlet("b", shoots=7), a_gardenlet("c")]
    assert yaml.safe_load(files.schedulers["default-scheduler"].read_text()) == MINE
    assert files.strategy == "MinimalDistance"
    assert files.controller_manager is None


def test_a_scheduler_configuration_is_written_when_nobody_gave_one(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()

    files, seeds = write_configurations(directory, given())

    assert yaml.safe_load(files.schedulers["default-scheduler"].read_text())["kind"] == "SchedulerConfiguration"
    assert (files.gardenlets, seeds) == ([], [])


def a_scheduler(name: str, strategy: str = "SameRegion") -> Document:
    shoot = {"schedulerName": name, "candidateDeterminationStrategy": strategy}
    return {**DEFAULT_SCHEDULER_CONFIGURATION, "schedulers": {"shoot": shoot}}


def test_schedulers_of_other_names_run_beside_the_default_one_and_go_on_next_time(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    write_configurations(directory, given(schedulers=[a_scheduler("mine"), a_scheduler("yours")]))

    files, _ = write_configurations(directory, given(schedulers=[a_scheduler("mine", "MinimalDistance")]))

    assert list(files.schedulers) == ["default-scheduler", "mine", "yours"]
    assert yaml.safe_load(files.schedulers["mine"].read_text()) == a_scheduler("mine", "MinimalDistance")
    assert files.strategy == "SameRegion", "that of the default scheduler"


def test_profiles_take_the_place_of_the_schedulers_whose_names_they_serve(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    write_configurations(directory, given(schedulers=[a_scheduler("mine"), a_scheduler("yours")]))
    weighted = {"candidateDeterminationStrategy": "MinimalDistance"}
    profiles = [{"schedulerName": "mine"}, {**weighted, "preset": "spread"}]
    served = {**DEFAULT_SCHEDULER_CONFIGURATION, "profiles": profiles}

    files, _ = write_configurations(directory, given(schedulers=[served]))

    assert list(files.schedulers) == ["default-scheduler", "yours"]
    assert yaml.safe_load(files.schedulers["default-scheduler"].read_text()) == served
    assert files.strategy == "MinimalDistance"
    assert sorted(each.name for each in directory.config.glob("scheduler*")) == [
        "scheduler.yaml",
        "scheduler@yours.yaml",
    ]
    files, _ = write_configurations(directory, given(schedulers=[a_scheduler("mine")]))
    assert list(files.schedulers) == ["default-scheduler", "mine", "yours"]
    assert yaml.safe_load(files.schedulers["default-scheduler"].read_text()) == DEFAULT_SCHEDULER_CONFIGURATION


def test_each_scheduler_has_replicas_of_its_own(tmp_path: Path):
    schedulers = {name: tmp_path / f"{name}.yaml" for name in ("default-scheduler", "1", "mine")}
    specs = service_specs(
        LandscapeDirectory(tmp_path),
        addresses=Addresses("nats://n", "redis://r", "guest"),
        configurations=Configurations(schedulers=schedulers, controller_manager=None, gardenlets=[]),
        replicas=parse_replicas(["scheduler=2", "scheduler/mine=2"]),
    )

    files = {spec.name: Path(spec.command[-1]).stem for spec in specs if spec.role == "scheduler"}
    assert files == {
        "scheduler-1": "default-scheduler",
        "scheduler-2": "default-scheduler",
        "scheduler@1": "1",
        "scheduler-1@mine": "mine",
        "scheduler-2@mine": "mine",
    }
    assert unknown_schedulers({"scheduler/mine": 2, "scheduler/x": 1, "relay": 1}, schedulers) == ["scheduler/x"]


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (50, [50]), (51, [25, 26]), (120, [40, 40, 40])])
def test_gardenlets_share_processes(count: int, sizes: list[int]):
    gardenlets = range(count)

    groups = [gardenlets[group] for group in in_groups(count)]

    assert [len(group) for group in groups] == sizes
    assert [each for group in groups for each in group] == list(gardenlets)


def test_replicas_are_processes_of_their_own_names(tmp_path: Path):
    specs = service_specs(
        LandscapeDirectory(tmp_path),
        addresses=Addresses("nats://n", "redis://r", "guest"),
        configurations=Configurations(
            schedulers={"default-scheduler": tmp_path / "s.yaml"},
            controller_manager=None,
            gardenlets=[tmp_path / "g.yaml"],
        ),
        replicas={"scheduler": 2, "lifecycle": 0},
    )

    names = [
        "relay",
        "apiserver",
        "scheduler-1",
        "scheduler-2",
        "controllermanager",
        "managedseedset",
        "autoscaler",
        "placement",
        "gardenlet",
    ]
    assert [spec.name for spec in specs] == names
    assert specs[5].environ["GARDENBUS_CANDIDATE_DETERMINATION_STRATEGY"] == "SameRegion"
    assert list(specs[2].command[1:]) == ["-m", "gardenbus.scheduler", "--config", str(tmp_path / "s.yaml")]
    assert specs[-1].environ["GARDENBUS_PREFIX"] == "guest"
    assert specs[3].environ["GARDENBUS_HEALTH_FILE"].endswith("health/scheduler-2.json")


@pytest.mark.parametrize("value", ["nats=2", "scheduler", "scheduler=x", "=2", "relay/mine=2", "scheduler/=2"])
def test_replicas_that_make_no_sense_are_refused(value: str):
    with pytest.raises(ValueError, match=value):
        parse_replicas([value])
    assert parse_replicas(["scheduler=3"]) == {"scheduler": 3}
    assert parse_replicas(["scheduler/default-scheduler=3", "scheduler/mine=0"]) == {
        "scheduler": 3,
        "scheduler/mine": 0,
    }


@pytest.mark.parametrize("count", ["101", "1000000000", "9" * 5000])
def test_more_replicas_than_a_machine_has_room_for_are_refused(count: str):
    with pytest.raises(ValueError, match="scheduler: at most 100 replicas of a service are started on a machine"):
        parse_replicas([f"scheduler={count}"])
    assert parse_replicas(["scheduler=100"]) == {"scheduler": 100}


def test_restarts_back_off():
    assert [backoff_seconds(failures) for failures in (1, 2, 3, 20)] == [0.2, 0.4, 0.8, 10.0]


def test_the_dashboard_listens_where_landscape_json_says_and_knows_no_store(tmp_path: Path):
    spec = dashboard_spec(
        LandscapeDirectory(tmp_path),
        addresses=Addresses("nats://n", "redis://r", "guest"),
        host="127.0.0.1",
        port=8080,
    )

    assert spec.url == "http://127.0.0.1:8080"
    assert spec.environ["GARDENBUS_DASHBOARD_PORT"] == "8080"
    assert spec.environ["GARDENBUS_PREFIX"] == "guest"
    assert "GARDENBUS_REDIS_URL" not in spec.environ


def test_a_chosen_port_is_none_that_an_outgoing_connection_could_take_meanwhile():
    assigned: set[int] = set()
    chosen = [choose_port(None, None, assigned) for _ in range(20)]
    assert assigned == set(chosen)
    assert assigned <= set(PORTS)
    assert len(assigned) == 20
