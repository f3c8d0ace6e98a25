"""What is left behind by an owner is deleted as whoever set the reference, and not by going round what guards it."""

from typing import Any

import pytest

from gardenbus.apiserver.controllers.garbage_collector import GarbageCollector
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.controller.controller import ReconcileRequest, RequeueAfter
from tests.support.authorized_apiserver import AuthorizedApiserver, two_projects
from tests.support.builders import a_shoot
from tests.support.memory.recovering import begin_recovery

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
OWNER = ObjectKey("configmap", "garden-dev", "owner")
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
TWO: Document = {"dualApprovalForDeletion": [{"resource": "shoots", "selector": {}}]}
SETTERS = "gardenbus.io/owner-setters"


class Garden:
    """Two projects, and the garbage collector of their apiserver."""

    def __init__(self, apiserver: AuthorizedApiserver) -> None:
        self.apiserver = apiserver
        store = apiserver.store
        self.collector = GarbageCollector(
            store,
            Admission(),
            apiserver.handler.authorizer,
            ManifestCache(store),
            AgentCredentials(store, apiserver.handler.clock),
        )

    async def request(self, user: str, tail: str, body: object = b"", *, is_insider: bool = False) -> Any:
        response = await self.apiserver.response(user, tail, body, is_insider=is_insider)
        assert response["ok"], response
        return response.get("result")

    async def owner(self, user: str = "adam", **metadata: Any) -> Document:
        metadata = {"name": OWNER.name, "namespace": OWNER.namespace, **metadata}
        return await self.request(user, "apply", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async def set_owner(self, user: str, key: ObjectKey, owner: Document, **annotations: str) -> None:
        patch = {"ownerReferences": [controller_reference(owner)], "annotations": annotations}
        await self.request(user, f"patch.{key.tail}", {"metadata": patch})

    async def owner_goes(self, owner: Document, user: str = "adam") -> int:
        """The owner is deleted; the number of dependents that stay."""
        await self.request(user, f"delete.{OWNER.tail}")
        return await self.collector.collect(owner["metadata"]["uid"])

    async def now(self, key: ObjectKey = APOLLO) -> StoredObject | None:
        return await self.apiserver.store.get(key)

    async def is_going(self, key: ObjectKey = APOLLO) -> bool:
        stored = await self.now(key)
        return stored is None or stored.is_deleting


@pytest.fixture
async def garden() -> Garden:
    return Garden(await two_projects())


async def test_one_person_does_not_delete_by_an_owner_what_takes_two(garden: Garden) -> None:
    await garden.request("", "patch.project._.dev", {"spec": TWO}, is_insider=True)
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner, **CONFIRMED)
    assert await garden.owner_goes(owner) == 1
    assert not await garden.is_going()


async def test_two_do(garden: Garden) -> None:
    await garden.request("", "patch.project._.dev", {"spec": TWO}, is_insider=True)
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner)
    await garden.request("otto", f"patch.{APOLLO.tail}", {"metadata": {"annotations": CONFIRMED}})
    assert await garden.owner_goes(owner) == 0
    assert await garden.is_going()


async def test_what_nobody_confirmed_stays(garden: Garden) -> None:
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner)
    assert await garden.owner_goes(owner) == 1
    await garden.request("adam", f"patch.{APOLLO.tail}", {"metadata": {"annotations": CONFIRMED}})
    assert await garden.collector.collect(owner["metadata"]["uid"]) == 0
    assert await garden.is_going()


async def test_the_role_counts_that_the_setter_has_when_the_owner_goes(garden: Garden) -> None:
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner, **CONFIRMED)
    await garden.request("otto", "patch.project._.dev", {"spec": {"members": []}}, is_insider=False)
    assert await garden.owner_goes(owner, "root") == 1
    assert not await garden.is_going()


async def test_a_reference_that_was_there_before_setters_were_known_is_nobodys(garden: Garden) -> None:
    owner = await garden.owner()
    shoot = await garden.now()
    assert shoot is not None
    document = shoot.document()
    document["metadata"] |= {"ownerReferences": [controller_reference(owner)], "annotations": CONFIRMED}
    await garden.apiserver.store.update(shoot, document)
    await garden.request("root", f"patch.{APOLLO.tail}", {"metadata": {"labels": {"by": "an-operator"}}})
    await garden.request(
        "root", f"patch.{APOLLO.tail}", {"metadata": {"ownerReferences": [controller_reference(owner)]}}
    )
    assert await garden.owner_goes(owner) == 1
    assert not await garden.is_going()


async def test_nobody_says_by_a_manifest_who_set_a_reference(garden: Garden) -> None:
    owner = await garden.owner()
    manifest = a_shoot("other", metadata={
        "ownerReferences": [controller_reference(owner)],
        "ownerSetters": f"{owner['metadata']['uid']} operator",
        "annotations": {**CONFIRMED, SETTERS: f"{owner['metadata']['uid']} operator"},
    })  # fmt: skip
    await garden.apiserver.response("adam", "apply", manifest)
    await garden.set_owner("adam", APOLLO, owner, **{SETTERS: f"{owner['metadata']['uid']} operator"})
    stored = await garden.now()
    assert stored is not None
    assert stored.owner_setters == f"{owner['metadata']['uid']} adam".encode()


async def test_whoever_writes_a_manifest_with_anothers_reference_has_not_set_it(garden: Garden) -> None:
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner)
    shoot = await garden.now()
    assert shoot is not None
    await garden.request("root", "apply", shoot.document())
    again = await garden.now()
    assert again is not None
    assert again.owner_setters == shoot.owner_setters


async def test_a_reference_that_was_taken_off_and_is_set_again_is_the_seconds(garden: Garden) -> None:
    owner = await garden.owner()
    uid = owner["metadata"]["uid"]
    await garden.set_owner("root", APOLLO, owner)
    await garden.request("adam", f"patch.{APOLLO.tail}", {"metadata": {"ownerReferences": None}})
    stored = await garden.now()
    assert stored is not None
    assert stored.owner_setters == b""
    await garden.set_owner("adam", APOLLO, owner)
    stored = await garden.now()
    assert stored is not None
    assert stored.owner_setters == f"{uid} adam".encode()


async def test_a_setter_of_a_reference_that_a_service_took_off_is_forgotten(garden: Garden) -> None:
    owner = await garden.owner()
    await garden.set_owner("root", APOLLO, owner)
    shoot = await garden.now()
    assert shoot is not None
    document = shoot.document()
    del document["metadata"]["ownerReferences"]
    await garden.apiserver.store.update(shoot, document)
    await garden.set_owner("adam", APOLLO, owner)
    stored = await garden.now()
    assert stored is not None
    assert stored.owner_setters.endswith(b" adam")


async def test_what_a_service_owns_goes_with_its_set(garden: Garden) -> None:
    owner = await garden.owner()
    replica = ObjectKey("shoot", "garden-dev", "replica")
    metadata = {"ownerReferences": [controller_reference(owner)], "annotations": CONFIRMED}
    await garden.request("managedseedset", "apply", a_shoot("replica", metadata=metadata), is_insider=True)
    assert await garden.owner_goes(owner) == 0
    assert await garden.now(replica) is None


async def test_what_only_services_write_goes_with_its_owner(garden: Garden) -> None:
    owner = await garden.owner()
    work: Document = {
        "apiVersion": "placement.kubernetes-fleet.io/v1",
        "kind": "Work",
        "metadata": {
            "name": "work",
            "namespace": "fleet-member-paris",
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": {"workload": {"manifests": []}},
    }
    await garden.apiserver.store.create(work)
    assert await garden.owner_goes(owner) == 0
    assert await garden.now(ObjectKey("work", "fleet-member-paris", "work")) is None


async def test_a_gardenlet_deletes_nothing_by_references_in_its_reports(garden: Garden) -> None:
    owner = await garden.owner()
    seed = await garden.now(ObjectKey("seed", "", "aws"))
    assert seed is not None
    document = seed.document()
    document["metadata"]["ownerReferences"] = [controller_reference(owner)]
    setters = f"{owner['metadata']['uid']} gardener.cloud:system:seed:aws".encode()
    await garden.apiserver.store.update(seed, document, owner_setters=setters)
    assert await garden.owner_goes(owner) == 1
    assert not await garden.is_going(seed.key)


async def test_nothing_is_collected_while_a_store_recovers_that_may_have_lost_the_owner(garden: Garden) -> None:
    owner = await garden.owner()
    await garden.set_owner("adam", APOLLO, owner, **CONFIRMED)
    await garden.request("adam", f"delete.{OWNER.tail}")
    uid = owner["metadata"]["uid"]
    await begin_recovery(garden.apiserver.store)

    result = await garden.collector.reconcile(_request(uid))

    assert isinstance(result, RequeueAfter)
    assert not await garden.is_going()
    assert await garden.collector.collect(uid) == 0
    assert await garden.is_going()


def _request(uid: str) -> ReconcileRequest:
    return ReconcileRequest(
        subject="garden.queue.garbage", tail=f"_.{uid}", attempt=0, deliveries=1, reconcile_id="id", queued_ms=0.0
    )
