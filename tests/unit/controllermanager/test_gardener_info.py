"""The ConfigMaps of a landscape about itself, by Gardener's cases of both."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDENER_INFO, KUBE_ROOT_CA, ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.controllermanager.controllers.gardener_info import LOOP
from gardenbus.controllermanager.domain.gardener_info import GARDENER_VERSION
from gardenbus.controllermanager.watch.loop import BuiltLoop
from tests.support.loops import Garden, request_of
from tests.support.memory.recovering import begin_recovery

BOTH = (CLUSTER_IDENTITY, GARDENER_INFO)
GARDENS = "gardener-apiserver"


def a_config_map(key: ObjectKey, data: Document, **further: Any) -> Document:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, **further}


class Landscape:
    """The loop with a setting, or without."""

    def __init__(self, identity: str = "", garden: Garden | None = None, root_ca: str = "") -> None:
        self.garden = garden or Garden()
        self.enqueued: list[ObjectKey] = []
        context = self.garden.context(LOOP.name, self.enqueued.append)
        self.loop: BuiltLoop = LOOP.build(context._replace(cluster_identity=identity, root_ca=root_ca))

    async def start(self) -> None:
        """What a start does: reads the list, checks the cache, and reconciles what is enqueued."""
        for key, stored in self.garden.store.state.rows.of_kind(*LOOP.follows).items():
            self.loop.changed(key, None, stored)
        assert self.loop.run is not None
        clock = asyncio.create_task(self.loop.run())
        await asyncio.sleep(0)
        clock.cancel()
        await self.reconcile()

    async def reconcile(self) -> None:
        for key in dict.fromkeys(self.enqueued):
            assert await self.loop.reconcile(request_of(LOOP, key)) == Done()
        self.enqueued.clear()

    async def data(self, key: ObjectKey) -> Document:
        document = await self.garden.now(key.kind, key.name, key.namespace)
        assert document is not None
        return document["data"]

    async def versions(self) -> list[int]:
        found = await self.garden.store.get_many(BOTH)
        return [each.version for each in found if each is not None]


async def test_a_landscape_gets_an_identity_and_the_version_of_gardener() -> None:
    landscape = Landscape()
    await landscape.start()
    identity = await landscape.data(CLUSTER_IDENTITY)
    assert identity["cluster-identity"].startswith("landscape-")
    assert identity["origin"] == GARDENS
    stored = await landscape.garden.now("configmap", "cluster-identity", "kube-system")
    assert stored is not None
    assert stored["immutable"] is True
    assert await landscape.data(GARDENER_INFO) == {"gardenerAPIServer": f"version: {GARDENER_VERSION}\n"}


async def test_two_landscapes_have_different_identities_unless_a_setting_says_so() -> None:
    landscapes = [Landscape(), Landscape(), Landscape("chosen"), Landscape("chosen")]
    for landscape in landscapes:
        await landscape.start()
    first, second, *chosen = [(await each.data(CLUSTER_IDENTITY))["cluster-identity"] for each in landscapes]
    assert first != second
    assert chosen == ["chosen", "chosen"]


async def test_a_restart_writes_nothing_and_keeps_the_identity() -> None:
    landscape = Landscape()
    await landscape.start()
    before = await landscape.versions()
    for identity in ("", "another"):
        again = Landscape(identity, landscape.garden)
        await again.start()
        assert await again.versions() == before


async def test_a_setting_that_has_no_effect_is_logged() -> None:
    landscape = Landscape("first")
    await landscape.start()
    with capture_logs() as logs:
        await Landscape("first", landscape.garden).start()
    assert logs == []
    with capture_logs() as logs:
        await Landscape("second", landscape.garden).start()
    (line,) = logs
    assert (line["event"], line["fields"]) == ("configuration.ignored", ["GARDENBUS_CLUSTER_IDENTITY"])
    assert "'first' by configmap kube-system/cluster-identity" in line["reason"]


async def test_of_two_replicas_that_create_it_at_once_one_decides() -> None:
    garden = Garden()
    one, other = Landscape(garden=garden), Landscape(garden=garden)
    await asyncio.gather(*(each.loop.reconcile(request_of(LOOP, CLUSTER_IDENTITY)) for each in (one, other)))
    identity = await one.data(CLUSTER_IDENTITY)
    await other.start()
    assert await other.data(CLUSTER_IDENTITY) == identity


async def test_authorities_are_published_and_followed(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    garden = Garden()
    file.write_text("one\n")
    await Landscape(garden=garden, root_ca=str(file)).start()
    file.write_text("one\ntwo\n")
    for root_ca in (str(file), "", str(tmp_path / "missing")):
        landscape = Landscape(garden=garden, root_ca=root_ca)
        await landscape.start()
        assert await landscape.data(KUBE_ROOT_CA) == {"ca.crt": "one\ntwo\n"}, "what cannot be read changes nothing"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing", "No such file"), ("empty", "it is empty"), ("both", "it has a private key: name a file of")],
)
async def test_a_file_that_is_missing_empty_or_has_a_private_key_is_not_published(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "both").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n")
    with capture_logs() as logs:
        landscape = Landscape(root_ca=str(tmp_path / name))
        await landscape.start()
    assert await landscape.garden.store.get(KUBE_ROOT_CA) is None
    assert any(reason in str(each.get("reason")) for each in logs), logs


@pytest.mark.parametrize("key", BOTH, ids=str)
async def test_what_somebody_deletes_is_made_again(key: ObjectKey) -> None:
    landscape = Landscape("chosen")
    await landscape.start()
    before = await landscape.data(key)
    stored = await landscape.garden.store.get(key)
    await landscape.garden.delete(key)
    landscape.loop.changed(key, stored, None)
    assert landscape.enqueued == [key]
    await landscape.reconcile()
    assert await landscape.data(key) == before


@pytest.mark.parametrize(
    ("data", "immutable", "expected"),
    [
        ({"cluster-identity": "chosen"}, None, {"cluster-identity": "chosen", "origin": GARDENS}),
        ({"cluster-identity": "chosen"}, True, {"cluster-identity": "chosen"}),
        ({"cluster-identity": "chosen", "origin": "theirs"}, None, {"cluster-identity": "chosen", "origin": "theirs"}),
        ({"cluster-identity": "another"}, None, {"cluster-identity": "another"}),
        ({}, None, {}),
    ],
    ids=["theirs is the same", "immutable", "of another origin", "another", "empty"],
)
async def test_an_identity_of_somebody_else_stays_and_is_completed_where_it_is_the_same(
    data: Document, *, immutable: bool | None, expected: Document
) -> None:
    landscape = Landscape("chosen")
    further = {} if immutable is None else {"immutable": immutable}
    await landscape.garden.add(a_config_map(CLUSTER_IDENTITY, data, **further))
    await landscape.start()
    stored = await landscape.garden.now("configmap", "cluster-identity", "kube-system") or {}
    assert stored.get("data", {}) == expected
    assert stored.get("immutable") is (True if expected != data else immutable)


async def test_the_version_follows_the_release_and_entries_of_others_stay() -> None:
    landscape = Landscape()
    old = {"gardenerAPIServer": "version: v1.100.0\n", "landscape": "ours"}
    await landscape.garden.add(a_config_map(GARDENER_INFO, old))
    await landscape.start()
    expected = {"gardenerAPIServer": f"version: {GARDENER_VERSION}\n", "landscape": "ours"}
    assert await landscape.data(GARDENER_INFO) == expected


async def test_no_identity_is_made_while_the_store_may_get_one_back() -> None:
    garden = Garden()
    await begin_recovery(garden.store)
    assert isinstance(await Landscape(garden=garden).loop.reconcile(request_of(LOOP, CLUSTER_IDENTITY)), RequeueAfter)
    assert await garden.store.get(CLUSTER_IDENTITY) is None


async def test_other_config_maps_and_one_that_is_being_deleted_are_left_alone() -> None:
    landscape = Landscape()
    await landscape.start()
    other = await landscape.garden.add(a_config_map(ObjectKey("configmap", "garden", "gardener-info"), {}))
    landscape.loop.changed(other.key, None, other)
    assert landscape.enqueued == []

    def hold(document: Document) -> None:
        document["metadata"]["finalizers"] = ["example.org/held"]
        document["data"] = {}

    await landscape.garden.change(GARDENER_INFO, hold)
    assert await landscape.garden.delete(GARDENER_INFO)
    before = await landscape.versions()
    assert await landscape.loop.reconcile(request_of(LOOP, GARDENER_INFO)) == Done()
    assert await landscape.versions() == before
