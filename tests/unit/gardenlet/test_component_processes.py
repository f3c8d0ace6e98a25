"""Components are processes that outlive the gardenlet, are found again, and are started anew when they end."""

import contextlib
import os
import signal
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import StaleFencingToken
from gardenbus.gardenlet.backend.processes.binaries import PROGRAMS, find_programs, missing_programs
from gardenbus.gardenlet.backend.processes.child import running_below, spawn
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.domain.control_plane import ETCD, PORTS, ClusterParameters, Component
from tests.support.clocks import FakeClock
from tests.support.control_plane_processes import end_all_below, left_below
from tests.support.eventually import eventually
from tests.support.files import open_to_others

PARAMETERS = ClusterParameters(technical_id="shoot--dev--apollo", version="1.34.4")


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Generator[None]:
    yield
    end_all_below(tmp_path)


def a_program(directory: Path, name: str, script: str) -> Path:
    directory.mkdir(exist_ok=True)
    file, text = directory / name, f"#!/bin/sh\n{script}\n"
    if not file.exists() or file.read_text() != text:  # a shell reads its script a moment after it was started
        file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def programs(directory: Path, version: str = "1.34.4") -> Path:
    for name in PROGRAMS:
        a_program(directory, name, f'[ "$1" = --version ] && echo "Kubernetes v{version}" && exit\nexec sleep 600')
    return directory


async def until_one_runs(directory: Path) -> None:
    """A shell that is about to call something looks like two for a moment."""

    async def one() -> None:
        assert len(list(running_below(directory))) == 1

    await eventually(one)


class Ownership:
    """A fence that can be taken away."""

    is_mine = True

    @contextlib.contextmanager
    def owned(self) -> Generator[None]:
        if not self.is_mine:
            raise StaleFencingToken("it belongs to another one")
        yield


def a_cluster(directory: Path, ownership: Ownership | None = None, clock: FakeClock | None = None) -> Cluster:
    binaries = directory / "bin"
    found = find_programs(str(binaries if binaries.exists() else programs(binaries)), {})
    cluster = Cluster(
        directory / "control-planes" / "apollo",
        clock=clock or SystemClock(),
        owned=(ownership or Ownership()).owned,
        programs=found["1.34.4"],
    )
    cluster.establish("u1", PARAMETERS)
    cluster.find_survivors()
    return cluster


def long_lived(cluster: Cluster, name: str = ETCD) -> Component:
    """A component whose program is a shell that stays, with its arguments."""
    (component,) = cluster.components([name])
    shell = a_program(cluster.directory.parents[1] / "bin", name, 'trap "exit 0" TERM\nwhile :; do sleep 0.05; done')
    assert cluster.programs[name] == shell
    return component


async def test_a_process_has_a_session_of_its_own_and_is_found_by_its_arguments(tmp_path: Path) -> None:
    program = a_program(tmp_path, "etcd", "while :; do sleep 0.05; done")
    child = spawn(program, [f"--data-dir={tmp_path}/data"], environment=os.environ, log=tmp_path / "log")
    assert os.getsid(child.pid) == child.pid
    await until_one_runs(tmp_path)
    assert child in [each.child for each in running_below(tmp_path)]
    child.signal(signal.SIGKILL)

    async def ended() -> None:
        assert not child.is_alive
        assert left_below(tmp_path) == []

    await eventually(ended)
    assert not child._replace(pid=os.getpid()).is_alive, "another process of this number is another process"


async def test_a_component_is_started_once_by_however_many_gardenlets(tmp_path: Path) -> None:
    first = a_cluster(tmp_path)
    await first.start(long_lived(first))
    await first.start(long_lived(first))
    child = first.child(ETCD)
    second = a_cluster(tmp_path)
    assert second.child(ETCD) == child
    await second.start(long_lived(second))
    await until_one_runs(tmp_path)
    assert second.state == first.state
    await second.stop([ETCD])
    assert left_below(tmp_path) == [str(second.directory)]
    second.remove()
    assert left_below(tmp_path) == []


async def test_one_whose_arguments_changed_is_replaced(tmp_path: Path) -> None:
    cluster = a_cluster(tmp_path)
    component = long_lived(cluster)
    await cluster.start(component)
    before = cluster.child(ETCD)
    await cluster.start(component._replace(arguments=(*component.arguments, "--quota-backend-bytes=1")))
    assert cluster.child(ETCD) != before
    await until_one_runs(tmp_path)


async def test_one_that_ended_is_started_anew_each_time_a_little_later(tmp_path: Path) -> None:
    clock = FakeClock()
    cluster = a_cluster(tmp_path, clock=clock)
    component = long_lived(cluster)
    await cluster.start(component)

    async def kill() -> None:
        child = cluster.child(ETCD)
        assert child is not None
        child.signal(signal.SIGKILL)

        async def ended() -> None:
            assert not child.is_alive

        await eventually(ended)

    await kill()
    assert cluster.tend()
    assert cluster.child(ETCD) is not None
    await kill()
    assert not cluster.tend()
    clock.advance(1.1)
    assert cluster.tend()
    assert cluster.restarts(ETCD) == 2
    await cluster.stop(PORTS)
    clock.advance(100)
    assert not cluster.tend()


async def test_one_that_was_fenced_off_starts_and_ends_nothing(tmp_path: Path) -> None:
    ownership = Ownership()
    cluster = a_cluster(tmp_path, ownership)
    component = long_lived(cluster)
    await cluster.start(component)
    ownership.is_mine = False
    with pytest.raises(StaleFencingToken):
        await cluster.stop([ETCD])
    with pytest.raises(StaleFencingToken):
        await cluster.end_all()
    with pytest.raises(StaleFencingToken):
        cluster.remove()
    assert cluster.child(ETCD) is not None


async def test_ports_are_kept_and_others_are_chosen_for_what_does_not_run(tmp_path: Path) -> None:
    cluster = a_cluster(tmp_path)
    before = dict(cluster.where.ports)
    cluster.establish("u1", PARAMETERS)
    assert cluster.where.ports == before
    await cluster.start(long_lived(cluster))
    cluster.choose_other_ports()
    after = cluster.where.ports
    assert (after["etcd"], after["etcd-peer"]) == (before["etcd"], before["etcd-peer"])
    assert after["kube-apiserver"] != before["kube-apiserver"]
    assert open_to_others(cluster.directory) == []


def test_programs_are_those_of_the_settings_or_of_the_assets_or_on_the_path(tmp_path: Path) -> None:
    old, new = programs(tmp_path / "v1.33.9", "1.33.9"), programs(tmp_path / "v1.34.10", "1.34.10")
    assert list(find_programs(str(tmp_path), {})) == ["1.34.10", "1.33.9"]
    assert list(find_programs("", {"KUBEBUILDER_ASSETS": str(old)})) == ["1.33.9"]
    assert list(find_programs("", {"PATH": f"/nowhere:{new}"})) == ["1.34.10"]
    assert find_programs("", {"PATH": "/nowhere"}) == {}
    scheduler = new / "kube-scheduler"
    scheduler.write_text(scheduler.read_text().replace("1.34.10", "1.33.9"))
    assert list(find_programs(str(tmp_path), {})) == ["1.33.9"]
    programs(new, "1.34.10")
    (new / "etcdutl").unlink()
    assert find_programs("", {"PATH": str(new)}) == {}
    assert "etcdutl" in missing_programs("", {"PATH": "/nowhere"})
