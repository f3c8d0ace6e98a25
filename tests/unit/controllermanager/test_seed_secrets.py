"""Namespaces of Seeds in the garden, by Gardener's cases of its controller of their Secrets."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.errors import Conflict, InvalidResource
from gardenbus.controllermanager.controllers.seed_secrets import LOOP
from tests.support.builders import a_seed
from tests.support.loops import Garden, request_of

SEED = ObjectKey("seed", "", "aws-eu1")


def a_secret(name: str, role: str = "alerting", namespace: str = "garden", **metadata: Any) -> Document:
    labels = {"gardener.cloud/role": role} if role else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "type": "Opaque",
        "data": {"key": "dmFsdWU="},
    }


class Copies:
    """The loop, which has seen all of a garden's objects."""

    def __init__(self, garden: Garden) -> None:
        self.garden = garden
        self.enqueued: list[str] = []

    async def reconcile(self) -> ReconcileResult:
        """Reconcile the Seed on all that is there now."""
        built = LOOP.build(self.garden.context(LOOP.name, lambda key: self.enqueued.append(key.name)))
        for key, stored in self.garden.store.state.rows.of_kind(*LOOP.follows).items():
            built.changed(key, None, stored)
        for _ in range(5):
            try:
                return await built.reconcile(request_of(LOOP, SEED))
            except Conflict:
                continue
        raise AssertionError("it keeps changing")

    async def names(self) -> list[str]:
        page = await self.garden.store.list_page("secret", "seed-aws-eu1")
        return [each.key.name for each in page.objects]


async def test_without_anything_to_copy_nothing_is_written() -> None:
    garden = Garden()
    await garden.add(a_seed(), a_secret("plain", ""), a_secret("elsewhere", namespace="garden-dev"))
    assert await Copies(garden).reconcile() == Done("there is nothing to copy")
    assert await garden.store.get(ObjectKey("namespace", "", "seed-aws-eu1")) is None


async def test_secrets_with_a_role_are_copied_into_the_namespace_of_the_seed() -> None:
    garden = Garden()
    loop = Copies(garden)
    left_out = ("kubeconfig", "ssh-keypair", "monitoring", "helm-pull-secret", "oci-ca-bundle", "resource-reference")
    await garden.add(a_seed(), a_secret("alerting", annotations={"a": "b"}))
    await garden.add(*(a_secret(f"of-{role}", role) for role in left_out))
    await garden.add(a_secret("of-others", annotations={"gardenbus.io/seeds": "another, third"}))
    await garden.add(a_secret("lets-in", labels={"gardener.cloud/role": "alerting", "gardenbus.io/purpose": "login"}))
    assert await loop.reconcile() == Done()
    assert await loop.names() == ["alerting"]
    namespace = await garden.now("namespace", "seed-aws-eu1") or {}
    assert namespace["metadata"]["labels"] == {"gardener.cloud/role": "seed"}
    (owner,) = namespace["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Seed", "aws-eu1", True)
    copy = await garden.now("secret", "alerting", "seed-aws-eu1") or {}
    assert (copy["type"], copy["data"]) == ("Opaque", {"key": "dmFsdWU="})
    assert copy["metadata"]["annotations"] == {"a": "b"}
    assert copy["metadata"]["labels"] == {"gardener.cloud/role": "alerting"}

    before = await garden.store.get(ObjectKey("secret", "seed-aws-eu1", "alerting"))
    assert await loop.reconcile() == Done()
    assert await garden.store.get(ObjectKey("secret", "seed-aws-eu1", "alerting")) == before


async def test_a_change_of_the_original_is_followed_and_its_end_too() -> None:
    garden = Garden()
    loop = Copies(garden)
    original = ObjectKey("secret", "garden", "alerting")
    await garden.add(a_seed(), a_secret("alerting"))
    await loop.reconcile()

    def change(secret: Document) -> None:
        secret["data"] = {"other": "dmFsdWU="}

    await garden.change(original, change)
    await garden.add(a_secret("of-its-own", "", "seed-aws-eu1"))
    await loop.reconcile()
    assert (await garden.now("secret", "alerting", "seed-aws-eu1") or {})["data"] == {"other": "dmFsdWU="}
    await garden.delete(original)
    await loop.reconcile()
    assert await loop.names() == ["of-its-own"], "nothing that is no copy is deleted"


async def test_a_namespace_of_somebody_else_is_left_alone() -> None:
    garden = Garden()
    namespace: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seed-aws-eu1"}}
    await garden.add(a_seed(), a_secret("alerting"), namespace)
    with pytest.raises(InvalidResource, match='namespace "seed-aws-eu1" is not controlled by seed "aws-eu1"'):
        await Copies(garden).reconcile()
    assert await Copies(garden).names() == []


async def test_seeds_are_enqueued_by_what_they_get_copies_of() -> None:
    garden = Garden()
    seed = await garden.add(a_seed())
    built = LOOP.build(garden.context(LOOP.name))
    built.changed(seed.key, None, seed)
    assert garden.enqueued == []
    for document, expected in ((a_secret("plain", ""), []), (a_secret("alerting"), [(LOOP.name, seed.key)])):
        garden.enqueued.clear()
        secret = await garden.add(document)
        built.changed(secret.key, None, secret)
        assert garden.enqueued == expected
