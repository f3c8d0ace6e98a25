"""The local backend keeps what it was told, for its owner alone, and fails when asked to."""

from pathlib import Path

import aiohttp
import msgspec
import pytest

from gardenbus.common.api.configuration.failure_injection import FailureRequest
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.gardenlet.backend.holder_identity import HolderIdentity
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken, StepFailed
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.flows import SAVE_STATE
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from gardenbus.gardenlet.operation.flow_runner import FlowResult, StepPrecondition, no_precondition, run_flow
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.seed_backends import a_local_backend

SHOOT = ("garden-dev", "apollo")
RUN = Run(operation="Create", generation=1, number=1)


def a_record() -> ShootRecord:
    return ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", run=RUN)


def observed(fail: str) -> ObservedShoot:
    annotations = {"local.backend.gardenbus.io/fail": fail}
    return ObservedShoot.of(a_shoot(metadata={"annotations": annotations}), uid="u1", version=1, role="run")


async def a_backend(
    directory: Path, settings: ShootBackendSettings | None = None, fencing_token: int = 1
) -> SeedBackend:
    backend = a_local_backend(directory, settings)
    await backend.start()
    await backend.acquire(FencingToken(1, fencing_token))
    return backend


async def test_a_step_is_kept_with_what_it_made(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    after = await backend.perform(SHOOT, "namespace", None)
    again = await backend.perform(SHOOT, "namespace", None)
    await backend.stop()

    assert after.applied == again.applied == {"namespace": 1}
    assert after.resources["namespace"]["operation"] == "Create"
    reopened = await a_backend(tmp_path, fencing_token=2)
    assert reopened.load(SHOOT) == again
    assert reopened.shoots() == [SHOOT]
    await reopened.stop()


async def test_nothing_is_left_of_what_is_forgotten(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    backend.forget(SHOOT)
    backend.forget(SHOOT)
    await backend.stop()

    assert backend.shoots() == []
    assert list((tmp_path / "shoots").iterdir()) == []


async def test_a_draft_of_a_killed_process_is_no_shoot(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    (tmp_path / "shoots" / "garden-dev" / ".zeus.json.draft").write_text("{")
    await backend.stop()

    assert backend.shoots() == [SHOOT]


async def test_only_the_owner_writes(tmp_path: Path) -> None:
    first = await a_backend(tmp_path, fencing_token=5)
    first.save(a_record())
    second = await a_backend(tmp_path, fencing_token=6)
    with pytest.raises(StaleFencingToken):
        first.save(a_record())
    with pytest.raises(StaleFencingToken):
        await first.perform(SHOOT, "namespace", None)
    with pytest.raises(StaleFencingToken):
        first.forget(SHOOT)
    with pytest.raises(StaleFencingToken):
        await first.acquire(FencingToken(1, 5))
    await first.acquire(FencingToken(2, 1))
    first.save(a_record())
    await first.stop()
    await second.stop()


async def test_failures_are_requested_by_annotation_or_configuration(tmp_path: Path) -> None:
    settings = ShootBackendSettings(failures=(FailureRequest("etcd", "ERR_INFRA_DEPENDENCIES", 1),))
    backend = await a_backend(tmp_path, settings)
    backend.save(a_record())
    injected = observed("secrets=ERR_INFRA_QUOTA_EXCEEDED,times=2")
    for _ in range(2):
        with pytest.raises(StepFailed) as error:
            await backend.perform(SHOOT, "secrets", injected)
        assert error.value.codes == ("ERR_INFRA_QUOTA_EXCEEDED",)
    await backend.perform(SHOOT, "secrets", injected)
    with pytest.raises(StepFailed):
        await backend.perform(SHOOT, "etcd", injected)
    record = await backend.perform(SHOOT, "etcd", injected)
    await backend.stop()

    assert record.applied == {"secrets": 1, "etcd": 1}


async def test_an_unreadable_request_is_a_configuration_problem(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    with pytest.raises(StepFailed) as error:
        await backend.perform(SHOOT, "secrets", observed("all of it"))
    await backend.stop()

    assert error.value.codes == ("ERR_CONFIGURATION_PROBLEM",)


async def test_steps_take_their_time(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = ShootBackendSettings(step_seconds=2, step_seconds_by_name={"etcd": 30})
    backend = a_local_backend(tmp_path, settings, clock)
    await backend.start()
    await backend.acquire(FencingToken(1, 1))
    backend.save(a_record())
    await backend.perform(SHOOT, "secrets", None)
    await backend.perform(SHOOT, "etcd", None)
    await backend.stop()

    assert clock.monotonic() == 32


async def test_healthz_is_http_and_can_be_switched(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    async with aiohttp.ClientSession() as session:
        responses: list[int] = []
        for method in ("", "POST", "DELETE"):
            if method:
                async with session.request(method, backend.health_url.replace("/healthz", "/fail")) as response:
                    assert response.status == 200
            async with session.get(backend.health_url) as response:
                responses.append(response.status)
    await backend.stop()

    assert responses == [200, 500, 200]


def test_a_process_that_comes_back_has_its_name_and_two_have_two(tmp_path: Path) -> None:
    first, second = HolderIdentity(tmp_path), HolderIdentity(tmp_path)
    assert first.name != second.name
    first.release()
    again = HolderIdentity(tmp_path)

    assert again.name == first.name
    again.release()
    second.release()


async def test_what_lasts_is_kept_when_its_step_is_repeated_and_restored_from_what_was_saved(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    made = (await backend.perform(SHOOT, "secrets", None)).resources["secrets"]["ca"]
    again = msgspec.structs.replace(a_record(), run=Run(operation="Reconcile", generation=1, number=2))
    kept = backend.load(SHOOT)
    assert kept is not None
    backend.save(msgspec.structs.replace(kept, run=again.run))
    assert (await backend.perform(SHOOT, "secrets", None)).resources["secrets"]["ca"] == made
    backend.save(msgspec.structs.replace(a_record(), state={"secrets": {"ca": "brought"}}))
    assert (await backend.perform(SHOOT, "secrets", None)).resources["secrets"]["ca"] == "brought"
    await backend.stop()


async def test_a_step_that_is_held_is_neither_done_nor_failed(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    record = msgspec.structs.replace(a_record(), run=Run(operation="Migrate", generation=1, number=1))
    backend.save(record)

    async def precondition(_record: ShootRecord, step: str) -> str | None:
        return "not yet" if step == SAVE_STATE else None

    async def run(precondition: StepPrecondition) -> FlowResult:
        now = backend.load(SHOOT)
        assert now is not None
        return await run_flow(
            backend,
            now,
            None,
            is_wanted=lambda: True,
            on_progress=lambda _record, _tasks: None,
            precondition=precondition,
        )

    blocked = await run(precondition)
    assert (blocked.is_complete, blocked.failures, blocked.blocked) == (False, (), "not yet")
    assert blocked.record.applied == {"stop-control-plane": 1}
    assert (await run(no_precondition)).is_complete
    await backend.stop()
