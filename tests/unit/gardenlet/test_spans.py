from datetime import UTC, datetime

import pytest

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Delivered
from gardenbus.common.resources.document import encode
from gardenbus.common.resources.keys import Subjects
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.decide.record import ShootRecord
from gardenbus.gardenlet.reconcilers.spans import step_of
from gardenbus.gardenlet.reconcilers.told import Gone, Told
from tests.support.builders import a_shoot
from tests.support.spans import FROM_A_CLIENT, recorded

APOLLO = ("garden-dev", "apollo")
RECORD = ShootRecord(namespace="garden-dev", name="apollo", uid="u")


def told_of(told: Told, trace: str = "", *, sequence: int = 1, is_gone: bool = False) -> None:
    headers = ({tracing.TRACEPARENT: trace} if trace else {}) | ({"Gardenbus-Verb": "deleted"} if is_gone else {})
    body = b"" if is_gone else encode(a_shoot())
    told.take(Delivered("garden.binding.aws-eu1.garden-dev.apollo", body, headers, sequence, datetime.now(UTC)))


def test_what_asked_for_work_is_known_until_it_is_done_and_others_do_not_hide_it() -> None:
    told = Told(Subjects(), "aws-eu1")
    told_of(told)
    assert told.traces == {}
    told_of(told, FROM_A_CLIENT)
    told_of(told)
    assert told.traces == {APOLLO: FROM_A_CLIENT}
    told.trace_ended(APOLLO, "that of another request")
    assert told.traces == {APOLLO: FROM_A_CLIENT}
    told.trace_ended(APOLLO, FROM_A_CLIENT)
    assert told.traces == {}


def test_nothing_stays_of_a_shoot_that_is_gone() -> None:
    told = Told(Subjects(), "aws-eu1")
    told_of(told, FROM_A_CLIENT)
    told_of(told, FROM_A_CLIENT, sequence=2, is_gone=True)
    told.forget(APOLLO, Gone(2))
    assert told.traces == {}


async def test_a_step_is_a_span_of_its_run_also_when_it_fails() -> None:
    async def performed() -> ShootRecord:
        return RECORD

    async def failed() -> ShootRecord:
        raise StepFailed("no quota", ())

    with recorded() as recorder:
        assert await step_of("Deploying etcd", performed) is RECORD
        assert recorder.spans == []
        with tracing.within(FROM_A_CLIENT):
            await step_of("Deploying etcd", performed)
            with pytest.raises(StepFailed):
                await step_of("Creating workers", failed)
    assert [(span.name, span.parent) for span in recorder.spans] == [
        ("step Deploying etcd", FROM_A_CLIENT),
        ("step Creating workers", FROM_A_CLIENT),
    ]
    assert recorder.open() == []
    assert "no quota" in recorder.spans[1].failed
