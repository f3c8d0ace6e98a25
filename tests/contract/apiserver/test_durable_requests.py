"""Durable requests: taken in the order of the bus by any number of replicas, and never lost."""

import asyncio
import json

from gardenbus.common.api.keys import ObjectKey
from gardenbus.relay.ports.outbox import Restored
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
CONFIRM = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}
NAME = {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo"}


async def test_what_was_sent_before_an_apiserver_ran_is_taken(idle_apiserver: Apiserver) -> None:
    for document in (a_project(), a_cloudprofile(), a_seed(ready=False), a_shoot(spec={"seedName": "aws-eu1"})):
        await idle_apiserver.publish("apply", document)
    await idle_apiserver.start()
    await idle_apiserver.until_handled()

    assert (await idle_apiserver.now(APOLLO)).parts.seed_name == "aws-eu1"
    assert await idle_apiserver.rejected() == []


async def test_the_speaker_is_recorded(apiserver: Apiserver) -> None:
    await apiserver.publish("as.ann.apply", a_shoot())
    await apiserver.until_handled()

    annotations = (await apiserver.now(APOLLO)).document()["metadata"]["annotations"]
    assert annotations["gardener.cloud/created-by"] == "ann"


async def test_the_last_one_wins_with_three_replicas(idle_apiserver: Apiserver) -> None:
    for number in range(60):
        await idle_apiserver.publish("apply", a_shoot(f"s{number % 5}", metadata={"labels": {"n": str(number)}}))
    await asyncio.gather(*(idle_apiserver.start(request_batch=3) for _ in range(3)))
    await idle_apiserver.until_handled()

    for number in range(5):
        stored = await idle_apiserver.now(ObjectKey("shoot", "garden-dev", f"s{number}"))
        assert stored.document()["metadata"]["labels"]["n"] == str(55 + number)


async def test_what_was_sent_ahead_is_there_whichever_replica_takes_it(idle_apiserver: Apiserver) -> None:
    for document in (a_cloudprofile(), a_project()):
        await idle_apiserver.publish("apply", document)
    for number in range(12):
        await idle_apiserver.publish("apply", a_seed(f"seed{number}", ready=False))
        await idle_apiserver.publish("apply", a_shoot(f"s{number}", spec={"seedName": f"seed{number}"}))
    await asyncio.gather(*(idle_apiserver.start(request_batch=1) for _ in range(3)))
    await idle_apiserver.until_handled()

    assert await idle_apiserver.rejected() == []
    assert len(await idle_apiserver.kit.store.shoots_on("seed11")) == 1


async def test_a_deletion_after_an_apply_deletes(idle_apiserver: Apiserver) -> None:
    await idle_apiserver.publish("apply", a_shoot(metadata=CONFIRM))
    await idle_apiserver.publish("delete", NAME)
    await asyncio.gather(*(idle_apiserver.start(request_batch=1) for _ in range(2)))
    await idle_apiserver.until_handled()

    assert await idle_apiserver.kit.store.get(APOLLO) is None
    assert await idle_apiserver.rejected() == []


async def test_an_apply_that_is_delivered_again_does_not_raise_what_was_deleted(idle_apiserver: Apiserver) -> None:
    stream = idle_apiserver.subjects.stream("REQUESTS")
    await idle_apiserver.publish("apply", a_shoot(metadata=CONFIRM))
    bus = await idle_apiserver.start()
    await idle_apiserver.until_handled()
    queue = await bus.work_queue(stream, "apiserver", ">")
    await idle_apiserver.contexts.pop().close()
    await idle_apiserver.publish("apply", a_shoot(metadata={**CONFIRM, "labels": {"late": "1"}}))
    (held,) = await queue.fetch(1, HANG_SECONDS)
    await idle_apiserver.start()
    await idle_apiserver.request("delete.shoot.garden-dev.apollo")
    await held.release()
    await idle_apiserver.until_handled()

    assert await idle_apiserver.kit.store.get(APOLLO) is None


async def test_deleting_what_is_not_there_is_done(apiserver: Apiserver) -> None:
    await apiserver.publish("delete", NAME)
    await apiserver.until_handled()

    assert await apiserver.rejected() == []


async def test_a_deletion_without_confirmation_is_kept_with_its_reason(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    await apiserver.publish("delete", NAME)

    assert "confirmation.gardener.cloud/deletion" in await apiserver.reason()
    (warning,) = await apiserver.warnings()
    assert (warning.event.about, warning.event.action) == (APOLLO, "Delete")


async def test_nothing_is_lost_while_the_store_is_closed(idle_apiserver: Apiserver) -> None:
    await idle_apiserver.start()
    await idle_apiserver.kit.close_for_writes()
    for number in range(20):
        await idle_apiserver.publish("apply", a_shoot(f"s{number}"))
    assert (await idle_apiserver.rejection("apply", a_shoot()))["code"] == 503
    await idle_apiserver.kit.open()
    await idle_apiserver.until_handled()

    assert (await idle_apiserver.request("census"))["objects.shoot"] == 20
    assert await idle_apiserver.rejected() == []


READS = ("list.shoot", "get.shoot.garden-dev.apollo", "census", "usage", "waiting", "explain.garden-dev.apollo")


async def test_an_emptied_store_answers_no_reads_until_it_is_rebuilt(idle_apiserver: Apiserver) -> None:
    await idle_apiserver.start()
    shoot = await idle_apiserver.request("apply", a_shoot(metadata={"labels": {"mine": "yes"}}))
    health, connection = idle_apiserver.contexts[0].health, idle_apiserver.kit.connection
    assert (await health.readyz()).ok
    assert connection is not None
    await connection.command("FLUSHDB")
    for read in READS:
        denied = await idle_apiserver.rejection(read)
        assert (denied["code"], "fenced" in denied["message"]) == (503, True), read
    assert "fenced" in str((await health.readyz()).checks)

    await idle_apiserver.kit.outbox.lead(86_400)
    await idle_apiserver.kit.outbox.restore(Restored(APOLLO, shoot["metadata"]["uid"], 10**7, shoot))
    await idle_apiserver.kit.open()
    assert (await health.readyz()).ok
    assert (await idle_apiserver.request("list.shoot"))["items"]
    for is_warned in (True, False):
        response = await idle_apiserver.response("apply", a_shoot(spec={"purpose": "testing"}))
        warning = "configuration of shoot garden-dev/apollo is unknown since the store was rebuilt"
        assert (warning in str(response.get("warnings"))) is is_warned, response
        assert response["result"]["metadata"]["labels"]["mine"] == "yes"


async def test_dependents_of_what_is_gone_go_or_forget_it(apiserver: Apiserver) -> None:
    owners = [await apiserver.request("apply", a_cloudprofile(name)) for name in ("one", "two")]
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        for owner in owners
    ]
    for name, owned_by in (("both", references), ("first", references[:1])):
        metadata = {"name": name, "namespace": "garden", "ownerReferences": owned_by}
        await apiserver.request("apply", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await apiserver.request("delete.cloudprofile._.one")
    await apiserver.publish(f"queue.garbage._.{references[0]['uid']}", b"")

    async def collected() -> None:
        assert await apiserver.kit.store.get(ObjectKey("configmap", "garden", "first")) is None
        both = (await apiserver.now(ObjectKey("configmap", "garden", "both"))).document()
        assert both["metadata"]["ownerReferences"] == references[1:]

    await eventually(collected)


async def test_a_durable_request_before_an_answered_one_is_superseded(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    await idle_apiserver.until_handled()
    queue = await bus.work_queue(idle_apiserver.subjects.stream("REQUESTS"), "apiserver", ">")
    await idle_apiserver.contexts.pop().close()
    await idle_apiserver.publish("apply", a_shoot(metadata={"labels": {"from": "durable"}}))
    (held,) = await queue.fetch(1, HANG_SECONDS)
    await idle_apiserver.start()
    await idle_apiserver.request("apply", json.dumps(a_shoot(metadata={"labels": {"from": "answered"}})).encode())
    await held.release()
    await idle_apiserver.until_handled()

    assert (await idle_apiserver.now(APOLLO)).document()["metadata"]["labels"]["from"] == "answered"


async def test_an_invalid_request_right_before_a_valid_one_for_the_same_object_is_in_rejected(
    idle_apiserver: Apiserver,
) -> None:
    invalid = a_shoot(spec={"cloudProfile": {"kind": "CloudProfile", "name": "there-is-none"}})
    await idle_apiserver.publish("apply", invalid)
    await idle_apiserver.publish("apply", a_shoot(metadata={"labels": {"from": "valid"}}))
    await idle_apiserver.start()
    assert "there-is-none" in await idle_apiserver.reason()
    assert (await idle_apiserver.now(APOLLO)).document()["metadata"]["labels"]["from"] == "valid"
