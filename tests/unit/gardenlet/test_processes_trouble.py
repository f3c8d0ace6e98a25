"""What goes wrong on the machine of a backend of processes is said with its reason, and taken up again."""

import stat
from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path

import pytest

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.garden.error_codes import NON_RETRYABLE
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import MakerContext, StepFailed, StepRequest
from gardenbus.gardenlet.backend.processes.binaries import PROGRAMS
from gardenbus.gardenlet.backend.processes.child import running_below
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.domain.operations import ObservedShoot
from tests.support.builders import a_shoot
from tests.support.control_plane_processes import end_all_below
from tests.support.disks import small_disk

SHOOT = ("garden-dev", "apollo")
A_VERSION = '[ "$1" = --version ] && echo "Kubernetes v1.34.4" && exit'


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Generator[None]:
    yield
    end_all_below(tmp_path)


def programs(directory: Path, script: str = "exit 1") -> str:
    """Programs that do as a script says."""
    directory.mkdir(exist_ok=True)
    for name in PROGRAMS:
        file = directory / name
        file.write_text(f"#!/bin/sh\n{A_VERSION}\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(directory)


def a_maker(directory: Path, binaries: str, backups: str = "") -> ProcessesMaker:
    settings = ShootBackendSettings(type="processes", binaries=binaries, backups=backups)
    directory.mkdir(parents=True, exist_ok=True)
    return ProcessesMaker(MakerContext("aws-eu1", directory, settings, SystemClock(), nullcontext))


def a_request(step: str, version: str = "1.34.4") -> StepRequest:
    shoot = a_shoot(spec={"kubernetes": {"version": version}, "provider": {"workers": []}})
    observed = ObservedShoot.of(shoot, uid="u1", version=1, role="run")
    return StepRequest(SHOOT, "u1", step, "Create", observed, kept={})


async def failure_of(maker: ProcessesMaker, step: str, version: str = "1.34.4") -> StepFailed:
    with pytest.raises(StepFailed) as error:
        await maker.make(a_request(step, version))
    return error.value


async def test_a_version_without_programs_is_named_with_those_that_have_some_and_nothing_is_made(
    tmp_path: Path,
) -> None:
    maker = a_maker(tmp_path / "seed", programs(tmp_path / "bin"))
    failure = await failure_of(maker, "namespace", "1.33.0")
    assert failure.message == "Kubernetes 1.33.0 cannot run on this seed; it has 1.34.4."
    assert failure.codes == ("ERR_CONFIGURATION_PROBLEM",)
    assert list((tmp_path / "seed").iterdir()) == []


async def test_a_shoot_whose_version_has_gone_from_the_seed_says_so_and_can_be_put_right(tmp_path: Path) -> None:
    before = a_maker(tmp_path / "seed", programs(tmp_path / "bin"))
    for step in ("namespace", "secrets"):
        await before.make(a_request(step))
    other = programs(tmp_path / "other")
    for file in Path(other).iterdir():
        file.write_text(file.read_text().replace("v1.34.4", "v1.33.9"))
    maker = a_maker(tmp_path / "seed", other)
    await maker.start()
    try:
        observed = a_request("etcd").observed
        assert observed is not None
        reported = (await maker.problems(observed, {}))["ControlPlaneHealthy"]
        assert reported.startswith("Kubernetes 1.34.4 cannot run on this seed; it has 1.33.9. etcd has ended")
        assert (await failure_of(maker, "etcd")).message == "etcd: there are no programs of Kubernetes 1.34.4 here"
        (cluster,) = maker.clusters
        with pytest.raises(OSError, match="no programs of Kubernetes"):  # which backups log, and go on with others
            cluster.program("etcdctl")
        await maker.make(a_request("delete-namespace"))
        assert not list((tmp_path / "seed" / "control-planes").iterdir())
    finally:
        await maker.stop()


async def test_programs_that_have_gone_are_a_problem_of_the_seed(tmp_path: Path) -> None:
    maker = a_maker(tmp_path / "seed", programs(tmp_path / "bin"))
    (tmp_path / "bin" / "etcd").rename(tmp_path / "bin" / "etcd.old")
    problem = await maker.seed_problem()
    assert problem == f"Programs are gone: {tmp_path}/bin/etcd."


@pytest.mark.parametrize("step", ["etcd", "control-plane"])
async def test_a_control_plane_that_does_not_fit_the_machine_is_not_started_until_it_does(
    tmp_path: Path, step: str
) -> None:
    maker = a_maker(tmp_path / "seed", programs(tmp_path / "bin"))
    maker.memory_file = tmp_path / "meminfo"
    for before in ("namespace", "secrets"):
        await maker.make(a_request(before))
    maker.memory_file.write_text("MemTotal:  8000000 kB\nMemAvailable:  409600 kB\n")
    failure = await failure_of(maker, step)
    assert failure.message.startswith("The machine has 400 MiB of memory left")
    assert failure.codes == ("ERR_INFRA_RESOURCES_DEPLETED",)
    assert not set(failure.codes) & NON_RETRYABLE
    assert not list(running_below(tmp_path))
    maker.memory_file.write_text("MemTotal:  8000000 kB\nMemAvailable:  4096000 kB\n")
    await maker.start()
    assert "the end of its log" in (await failure_of(maker, step)).message  # it was started
    await maker.stop()


async def test_a_full_disk_is_a_problem_of_the_seed_and_steps_go_on_where_they_were(tmp_path: Path) -> None:
    binaries = programs(tmp_path / "bin")
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        maker = a_maker(tmp_path / "disk" / "seed", binaries)
        assert (await maker.seed_problem() or "").startswith("The disk is full: ")
        await maker.make(a_request("namespace"))
        disk.fill()
        assert "No space left on device" in (await failure_of(maker, "secrets")).message
        again = a_maker(tmp_path / "disk" / "seed", binaries)
        assert "No space left on device" in (await failure_of(again, "secrets")).message
        disk.free()
        made = await again.make(a_request("secrets"))
        assert {"ca", "ca-etcd"} <= set(made)
        (keys,) = (tmp_path / "disk" / "seed").glob("control-planes/*/pki")
        assert all(file.stat().st_size for file in keys.iterdir())


@pytest.mark.parametrize("trace", ["", '","stacktrace":"' + 300 * "go.etcd.io"], ids=["alone", "before a stack trace"])
async def test_a_component_whose_port_is_taken_gets_others_with_the_next_attempt(tmp_path: Path, trace: str) -> None:
    script = f"echo 'listen tcp 127.0.0.1: bind: address already in use{trace}'\nexit 1"
    maker = a_maker(tmp_path / "seed", programs(tmp_path / "bin", script))
    await maker.start()
    try:
        await maker.make(a_request("namespace"))
        await maker.make(a_request("secrets"))
        (cluster,) = maker.clusters
        assert cluster.state is not None
        before = cluster.state.ports
        failure = await failure_of(maker, "etcd")
        assert "the end of its log: listen tcp" in failure.message
        assert not set(before.values()) & set(cluster.state.ports.values())
    finally:
        await maker.stop()


async def test_a_program_that_only_fails_is_quoted(tmp_path: Path) -> None:
    maker = a_maker(
        tmp_path / "seed", programs(tmp_path / "bin", "echo 'panic: another etcd has written this'\nexit 2")
    )
    await maker.start()
    try:
        for step in ("namespace", "secrets"):
            await maker.make(a_request(step))
        assert "panic: another etcd has written this" in (await failure_of(maker, "etcd")).message
    finally:
        await maker.stop()


async def test_a_bucket_that_cannot_be_made_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    maker = a_maker(tmp_path / "seed", programs(tmp_path / "bin"), str(tmp_path / "file"))
    with pytest.raises(StepFailed, match=r"The bucket: the backups in .*Not a directory") as error:
        await maker.ensure_bucket("b1")
    assert error.value.codes == ("ERR_INFRA_DEPENDENCIES",)
    assert maker.backups.bucket == ""


@pytest.mark.parametrize("place", ["nats://host:4222/backups", "s3://Bucket/x", "http://host/x"])
def test_a_place_of_backups_that_is_none_is_refused_at_the_start(tmp_path: Path, place: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"seed aws-eu1: backend\.backups: .*write"):
        a_maker(tmp_path / "seed", programs(tmp_path / "bin"), place)
