from datetime import UTC, datetime

import pytest

from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.domain.shoot_record import ShootRecord
from gardenbus.gardenlet.tracing import traced_step
from gardenbus.gardenlet.watch.binding_cache import BindingCache, Tombstone
from tests.support.builders import a_shoot
from tests.support.spans import FROM_A_CLIENT, recorded

APOLLO = ("garden-dev", "apollo")
RECORD = ShootRecord(namespace="garden-dev", name="apollo", uid="u")


def observe(cache: BindingCache, trace: str = "", *, sequence: int = 1, is_gone: bool = False) -> None:
    headers = ({tracing.TRACEPARENT: trace} if trace else {}) | ({"Gardenbus-Verb": "deleted"} if is_gone else {})
    body = b"" if is_gone else encode(a_shoot())
    cache.update(StreamMessage("garden.binding.aws-eu1.garden-dev.apollo", body, headers, sequence, datetime.now(UTC)))


def test_what_requested_work_is_kept_until_it_is_done_and_others_do_not_hide_it() -> None:
    cache = BindingCache(Subjects(), "aws-eu1")
    observe(cache)
    assert cache.traces == {}
    observe(cache, FROM_A_CLIENT)
    observe(cache)
    assert cache.traces == {APOLLO: FROM_A_CLIENT}
    cache.trace_ended(APOLLO, "that of another request")
    assert cache.traces == {APOLLO: FROM_A_CLIENT}
    cache.trace_ended(APOLLO, FROM_A_CLIENT)
    assert cache.traces == {}


def test_nothing_stays_of_a_shoot_that_is_gone() -> None:
    cache = BindingCache(Subjects(), "aws-eu1")
    observe(cache, FROM_A_CLIENT)
    observe(cache, FROM_A_CLIENT, sequence=2, is_gone=True)
    cache.forget(APOLLO, Tombstone(2))
    assert cache.traces == {}


async def test_a_step_is_a_span_of_its_run_also_when_it_fails() -> None:
    async def performed() -> ShootRecord:
        return RECORD

    async def failed() -> ShootRecord:
        raise StepFailed("no quota", ())

    with recorded() as recorder:
        assert await traced_step("Deploying etcd", performed) is RECORD
        assert recorder.spans == []
        with tracing.within(FROM_A_CLIENT):
            await traced_step("Deploying etcd", performed)
            with pytest.raises(StepFailed):
                await traced_step("Creating workers", failed)
    assert [(span.name, span.parent) for span in recorder.spans] == [
        ("step Deploying etcd", FROM_A_CLIENT),
        ("step Creating workers", FROM_A_CLIENT),
    ]
    assert recorder.open() == []
    assert "no quota" in recorder.spans[1].failed
