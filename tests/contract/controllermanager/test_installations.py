"""Installations of ControllerRegistrations on real servers, through the queue, with the service stopped in between."""

from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.controllermanager.conftest import Landscape
from tests.support.builders import a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.registrations import a_registration

FINALIZER = "core.gardener.cloud/controllerregistration"
PROVIDER = [(kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")]
SEED = ObjectKey("seed", "", "aws-eu1")


async def installed(landscape: Landscape, seed: str = "aws-eu1") -> dict[str, Document]:
    page = await landscape.store.list_page("controllerinstallation")
    documents = [each.document() for each in page.objects]
    return {
        each["spec"]["registrationRef"]["name"]: each for each in documents if each["spec"]["seedRef"]["name"] == seed
    }


async def installs(landscape: Landscape, *registrations: str) -> None:
    async def is_so() -> None:
        assert sorted(await installed(landscape)) == sorted(registrations)

    await eventually(is_so)


async def test_a_landscape_without_registrations_stays_as_it_was(landscape: Landscape) -> None:
    seed = await landscape.store.create(a_seed())
    async with landscape.controllermanager():
        await landscape.store.create(a_shoot())
        await landscape.store.create(a_registration("unrelated", ("Extension", "audit")))

        async def is_seen() -> None:
            stored = await landscape.store.get(SEED)
            assert stored is not None
            assert FINALIZER in stored.parts.finalizers

        await eventually(is_seen)
        registration = await landscape.store.get(ObjectKey("controllerregistration", "", "unrelated"))
        assert registration is not None
        await landscape.store.delete(registration)

        async def is_as_it_was() -> None:
            stored = await landscape.store.get(SEED)
            assert stored is not None
            assert getattr(seed, "parts", None) == stored.parts

        await eventually(is_as_it_was)


async def test_what_happened_while_nobody_ran_is_made_up_for(landscape: Landscape) -> None:
    await landscape.store.create(a_seed())
    await landscape.store.create(a_registration("provider-aws", *PROVIDER))
    await landscape.store.create(a_registration("networking", ("Network", "calico")))
    async with landscape.controllermanager():
        await installs(landscape, "provider-aws")
    placed: Any = {"seedName": "aws-eu1"}
    await landscape.store.create(a_shoot(spec=placed))
    async with landscape.controllermanager():
        await installs(landscape, "networking", "provider-aws")
        names = {each["metadata"]["name"] for each in (await installed(landscape)).values()}
    async with landscape.controllermanager():
        await landscape.delete(ObjectKey("controllerregistration", "", "networking"))
        await landscape.change(ObjectKey("shoot", "garden-dev", "apollo"), {"spec": {"extensions": [{"type": "no"}]}})
        await landscape.store.create(a_registration("all", ("Extension", "no"), spec={"deployment": {}}))
        await installs(landscape, "all", "networking", "provider-aws")
        assert names <= {each["metadata"]["name"] for each in (await installed(landscape)).values()}


async def test_the_namespace_of_a_seed_goes_with_it_and_so_do_the_copies(landscape: Landscape) -> None:
    metadata: Document = {"name": "alerting", "namespace": "garden", "labels": {"gardener.cloud/role": "alerting"}}
    namespace, copy = ObjectKey("namespace", "", "seed-aws-eu1"), ObjectKey("secret", "seed-aws-eu1", "alerting")
    await landscape.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    await landscape.store.create(a_seed())
    async with landscape.controllermanager():

        async def is_copied() -> None:
            assert await landscape.get(copy) is not None

        await eventually(is_copied)
        await landscape.delete(SEED)

        async def is_gone() -> None:
            assert [await landscape.get(each) for each in (namespace, copy)] == [None, None]

        await eventually(is_gone)


async def test_a_deleted_seed_goes_after_its_installations(landscape: Landscape) -> None:
    await landscape.store.create(a_seed())
    await landscape.store.create(a_registration("provider-aws", *PROVIDER))
    async with landscape.controllermanager():
        await installs(landscape, "provider-aws")
        await landscape.delete(SEED)

        async def is_gone() -> None:
            assert await landscape.get(SEED) is None
            assert await installed(landscape) == {}

        await eventually(is_gone)
        await landscape.delete(ObjectKey("controllerregistration", "", "provider-aws"))

        async def is_unregistered() -> None:
            assert await landscape.get(ObjectKey("controllerregistration", "", "provider-aws")) is None

        await eventually(is_unregistered)
