"""A run that is cut at any instant, any number of times, makes each step take effect exactly once."""

import asyncio
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.domain.flows import OperationType, shoot_flow
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from gardenbus.gardenlet.operation.flow_runner import run_flow
from tests.support.crashing_files import CrashingFiles, Killed
from tests.support.seed_backends import a_local_backend

SHOOT = ("garden-dev", "apollo")


async def live(directory: Path, number: int, run: Run, *, has_workers: bool, death: tuple[int, bool] | None) -> bool:
    """One life of a gardenlet; answers whether the run was complete before its death."""
    dies_at, after_the_write = death if death is not None else (None, False)
    files = CrashingFiles(directory, dies_at, after_the_write=after_the_write)
    files.open()
    try:
        backend = a_local_backend(directory, ShootBackendSettings(step_seconds=0.01), files=files)
        await backend.acquire(FencingToken(1, number + 1))
        record = backend.load(SHOOT)
        if record is None or record.run is None or record.run.number != run.number:
            earlier = record or ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=has_workers)
            record = msgspec.structs.replace(earlier, run=run)
            backend.save(record)
        result = await run_flow(backend, record, None, is_wanted=lambda: True, on_progress=lambda _record, _tasks: None)
    except Killed:
        return False
    else:
        assert result.is_complete
        return True
    finally:
        files.close()


deaths = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=8)


@settings(max_examples=60, deadline=None)
@given(deaths=st.lists(deaths, min_size=3, max_size=3), has_workers=st.booleans())
def test_each_step_takes_effect_once_a_run_however_often_the_process_dies(
    deaths: list[list[tuple[int, bool]]], has_workers: bool
) -> None:
    operations: list[OperationType] = ["Create", "Reconcile", "Delete"]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        fencing_token = 0
        for number, (operation, own_deaths) in enumerate(zip(operations, deaths, strict=True), start=1):
            run = Run(operation=operation, generation=number, number=number)
            for death in [*own_deaths, None]:
                fencing_token += 1
                asyncio.run(live(directory, fencing_token, run, has_workers=has_workers, death=death))
        files = LocalFiles(directory)
        files.open()
        record = files.load(SHOOT)
        files.close()
    built = dict.fromkeys(shoot_flow("Create", has_workers=has_workers).steps, 2)
    destroyed = dict.fromkeys(shoot_flow("Delete", has_workers=has_workers).steps, 1)
    assert record is not None
    assert record.applied == built | destroyed
    assert record.resources == {}
