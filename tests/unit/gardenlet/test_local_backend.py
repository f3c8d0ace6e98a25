"""The local backend keeps what it was told, for its owner alone, and fails when asked to."""

from pathlib import Path

import aiohttp
import msgspec
import pytest

from gardenbus.gardenlet.backend.local import LocalBackend
from gardenbus.gardenlet.backend.port import Fence, FencedOff, StepFailed
from gardenbus.gardenlet.decide.configuration import BackendSettings
from gardenbus.gardenlet.decide.failures import FailureRequest
from gardenbus.gardenlet.decide.flows import SAVE_STATE
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import Run, ShootRecord
from gardenbus.gardenlet.host import Identity
from gardenbus.gardenlet.reconcilers.flow import FlowResult, Hold, hold_nothing, run_flow
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock

SHOOT = ("garden-dev", "apollo")
RUN = Run(operation="Create", generation=1, number=1)


def a_record() -> ShootRecord:
    return ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", run=RUN)


def told(fail: str) -> ShootTold:
    annotations = {"local.backend.gardenbus.io/fail": fail}
    return ShootTold.of(a_shoot(metadata={"annotations": annotations}), uid="u1", version=1, role="run")


async def a_backend(directory: Path, settings: BackendSettings | None = None, fence: int = 1) -> LocalBackend:
    backend = LocalBackend(directory, settings or BackendSettings(), FakeClock())
    await backend.start()
    await backend.take_over(Fence(1, fence))
    return backend


async def test_a_step_is_kept_with_what_it_made(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    after = await backend.perform(SHOOT, "namespace", None)
    again = await backend.perform(SHOOT, "namespace", None)
    await backend.stop()

    assert after.applied == again.applied == {"namespace": 1}
    assert after.resources["namespace"]["operation"] == "Create"
    reopened = await a_backend(tmp_path, fence=2)
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
    first = await a_backend(tmp_path, fence=5)
    first.save(a_record())
    second = await a_backend(tmp_path, fence=6)
    with pytest.raises(FencedOff):
        first.save(a_record())
    with pytest.raises(FencedOff):
        await first.perform(SHOOT, "namespace", None)
    with pytest.raises(FencedOff):
        first.forget(SHOOT)
    with pytest.raises(FencedOff):
        await first.take_over(Fence(1, 5))
    await first.take_over(Fence(2, 1))
    first.save(a_record())
    await first.stop()
    await second.stop()


async def test_failures_are_asked_for_by_annotation_or_configuration(tmp_path: Path) -> None:
    settings = BackendSettings(failures=(FailureRequest("etcd", "ERR_INFRA_DEPENDENCIES", 1),))
    backend = await a_backend(tmp_path, settings)
    backend.save(a_record())
    asked = told("secrets=ERR_INFRA_QUOTA_EXCEEDED,times=2")
    for _ in range(2):
        with pytest.raises(StepFailed) as error:
            await backend.perform(SHOOT, "secrets", asked)
        assert error.value.codes == ("ERR_INFRA_QUOTA_EXCEEDED",)
    await backend.perform(SHOOT, "secrets", asked)
    with pytest.raises(StepFailed):
        await backend.perform(SHOOT, "etcd", asked)
    record = await backend.perform(SHOOT, "etcd", asked)
    await backend.stop()

    assert record.applied == {"secrets": 1, "etcd": 1}


async def test_an_unreadable_wish_is_a_configuration_problem(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    backend.save(a_record())
    with pytest.raises(StepFailed) as error:
        await backend.perform(SHOOT, "secrets", told("all of it"))
    await backend.stop()

    assert error.value.codes == ("ERR_CONFIGURATION_PROBLEM",)


async def test_steps_take_their_time(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = BackendSettings(step_seconds=2, step_seconds_by_name={"etcd": 30})
    backend = LocalBackend(tmp_path, settings, clock)
    await backend.start()
    await backend.take_over(Fence(1, 1))
    backend.save(a_record())
    await backend.perform(SHOOT, "secrets", None)
    await backend.perform(SHOOT, "etcd", None)
    await backend.stop()

    assert clock.monotonic() == 32


async def test_healthz_is_http_and_can_be_switched(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    async with aiohttp.ClientSession() as session:
        answers: list[int] = []
        for method in ("", "POST", "DELETE"):
            if method:
                async with session.request(method, backend.health_url.replace("/healthz", "/fail")) as response:
                    assert response.status == 200
            async with session.get(backend.health_url) as response:
                answers.append(response.status)
    await backend.stop()

    assert answers == [200, 500, 200]


def test_a_process_that_comes_back_has_its_name_and_two_have_two(tmp_path: Path) -> None:
    first, second = Identity(tmp_path), Identity(tmp_path)
    assert first.name != second.name
    first.release()
    again = Identity(tmp_path)

    assert again.name == first.name
    again.release()
    second.release()


async def test_what_lasts_is_kept_when_its_step_is_repeated_and_taken_from_what_was_saved(tmp_path: Path) -> None:
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

    async def hold(_record: ShootRecord, step: str) -> str | None:
        return "not yet" if step == SAVE_STATE else None

    async def run(hold: Hold) -> FlowResult:
        now = backend.load(SHOOT)
        assert now is not None
        return await run_flow(
            backend, now, None, is_wanted=lambda: True, on_progress=lambda _record, _tasks: None, hold=hold
        )

    held = await run(hold)
    assert (held.is_complete, held.failures, held.held) == (False, (), "not yet")
    assert held.record.applied == {"stop-control-plane": 1}
    assert (await run(hold_nothing)).is_complete
    await backend.stop()
