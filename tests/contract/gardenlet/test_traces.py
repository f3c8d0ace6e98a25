"""A trace goes from the bind through the claim to the gardenlet's last step, and ends there."""

from structlog.testing import capture_logs

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import SeedBinding
from tests.support.builders import a_shoot
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.spans import FROM_A_CLIENT, TRACE_ID, recorded

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


async def placed(garden: Garden, trace: str) -> None:
    await garden.until_ready("aws-eu1")
    created = await garden.store.create(a_shoot())
    assert isinstance(created, StoredObject)
    scheduling_generation = await garden.scheduling_generation("aws-eu1")
    binding = SeedBinding(
        "garden-dev",
        "apollo",
        created.uid,
        created.generation,
        "aws-eu1",
        scheduling_generation=scheduling_generation,
        trace=trace,
    )
    assert list((await garden.store.bind([binding])).outcomes) == ["bound"]


async def built(garden: Garden) -> None:
    async def succeeded() -> None:
        operation = (await garden.shoot())["status"]["lastOperation"]
        assert operation["state"] == "Succeeded"

    await eventually(succeeded)


async def test_claim_and_steps_are_spans_below_the_bind(garden: Garden) -> None:
    with recorded() as recorder:
        host = await garden.start(a_configuration())
        await placed(garden, FROM_A_CLIENT)
        await built(garden)

        async def all_ended() -> None:
            assert recorder.open() == []

        await eventually(all_ended)
        await garden.change(APOLLO, bump_generation=True)  # nobody's request that is traced

        async def again() -> None:
            assert (await garden.shoot())["status"]["lastOperation"]["type"] == "Reconcile"

        await eventually(again)
        await garden.stop(host)

    of_it = [span for span in recorder.spans if span.traceparent[3:35] == TRACE_ID]
    above = {span.name: recorder.parent_of(span) for span in of_it}
    assert above["gardenlet.claim"] == "relay.announce"
    assert above["gardenlet.create"] == "relay.announce"
    steps = [span for span in of_it if span.name.startswith("step ")]
    assert len(steps) > 10
    (create,) = [span for span in of_it if span.name == "gardenlet.create"]
    assert {span.parent for span in steps} == {create.traceparent}
    assert create.attributes["outcome"] == "reconciled"
    first = next(span for span in of_it if span.name == "apiserver.report")
    assert recorder.parent_of(first) == "gardenlet.claim"
    assert any(recorder.parent_of(span) == "gardenlet.create" for span in of_it if span.name == "apiserver.report")
    assert "gardenlet.reconcile" not in recorder.names()
    assert recorder.open() == []


async def test_where_nothing_is_recorded_the_lines_of_all_show_the_trace(garden: Garden) -> None:
    with capture_logs() as logs:
        host = await garden.start(a_configuration())
        await placed(garden, FROM_A_CLIENT)
        await built(garden)
        await garden.stop(host)
    followed = [line["event"] for line in logs if line.get("trace_id") == TRACE_ID]
    assert {"reconcile.finished", "status.merged"} <= set(followed)
    outcomes = [line["outcome"] for line in logs if line["event"] == "reconcile.finished" and "trace_id" in line]
    assert outcomes == ["claimed", "reconciled"]
