"""Installations of ControllerRegistrations on seeds, by Gardener's cases of its controller."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager.controllers import controller_registration
from tests.support.builders import a_seed, a_shoot
from tests.support.loops import Garden
from tests.support.registrations import (
    Installations,
    a_bucket,
    a_deployment,
    a_domain,
    a_registration,
    an_entry,
)

FINALIZER = "core.gardener.cloud/controllerregistration"
PROVIDER = tuple((kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker"))
SEED = ObjectKey("seed", "", "aws-eu1")


def a_provider(name: str = "provider-aws", *more: Any, **changes: Any) -> Document:
    return a_registration(name, *PROVIDER, *more, **changes)


def a_placed_shoot(name: str = "apollo", **changes: Any) -> Document:
    return a_shoot(name, spec={"seedName": "aws-eu1", **changes.pop("spec", {})}, **changes)


async def test_nothing_is_written_where_nothing_is_registered() -> None:
    loop = Installations()
    assert await loop.add(a_seed(), a_placed_shoot(), a_bucket("b", "aws-eu1"), an_entry("e", "b", "aws-eu1")) == []
    before = await loop.garden.store.get(SEED)
    assert await loop.reconcile("aws-eu1") == Done("nothing is registered")
    assert await loop.garden.store.get(SEED) == before


async def test_a_seed_gets_what_it_needs_for_itself_and_for_its_shoots() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider(), a_registration("networking", ("Network", "calico")))
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"]
    assert FINALIZER in (await loop.garden.now("seed", "aws-eu1") or {})["metadata"]["finalizers"]

    assert await loop.add(a_placed_shoot()) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["networking", "provider-aws"]
    assert await loop.add(a_placed_shoot("hermes")) == [], "another shoot that needs the same changes nothing"

    assert await loop.remove(ObjectKey("shoot", "garden-dev", "apollo")) == []
    assert await loop.remove(ObjectKey("shoot", "garden-dev", "hermes")) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"]


async def test_a_second_reconcile_writes_nothing_and_a_status_of_the_seed_enqueues_nothing() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider())
    await loop.reconcile_all()
    before = loop.of("aws-eu1")

    def report(seed: Document) -> None:
        seed["status"]["kubernetesVersion"] = "1.34.1"

    await loop.garden.change(SEED, report)
    assert loop.observe() == []
    assert await loop.reconcile("aws-eu1") == Done()
    assert loop.of("aws-eu1") == before


async def test_an_installation_names_what_it_was_made_of() -> None:
    loop = Installations()
    registration = a_provider(
        metadata={"annotations": {"security.gardener.cloud/pod-security-enforce": "privileged", "other": "stays"}},
        spec={"deployment": {"deploymentRefs": [{"name": "provider-aws"}]}},
    )
    policy: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca", "namespace": "garden"}}
    resource = {"name": "ca", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "ca"}}
    await loop.add(policy, a_deployment("provider-aws", resources=[resource]), a_seed(), registration)
    await loop.reconcile_all()
    made = loop.of("aws-eu1")["provider-aws"]
    spec = made["spec"]
    assert {name: value["name"] for name, value in spec.items() if name != "resourceRefs"} == {
        "registrationRef": "provider-aws",
        "seedRef": "aws-eu1",
        "deploymentRef": "provider-aws",
    }
    (referred,) = spec["resourceRefs"]
    assert (referred["kind"], referred["namespace"], referred["name"]) == ("ConfigMap", "garden", "ca")
    assert made["metadata"]["name"].startswith("provider-aws-")
    assert made["metadata"]["annotations"] == {"security.gardener.cloud/pod-security-enforce": "privileged"}
    labels = made["metadata"]["labels"]
    assert set(labels) == {"registration-spec-hash", "seed-spec-hash", "deployment-hash"}
    assert all(len(value) == 16 for value in labels.values())


async def test_what_an_installation_is_made_of_changes_its_hashes_and_versions() -> None:
    loop = Installations()
    registration = a_provider(spec={"deployment": {"deploymentRefs": [{"name": "own"}]}})
    await loop.add(a_deployment("own"), a_seed(), registration)
    await loop.reconcile_all()
    before = loop.of("aws-eu1")["provider-aws"]

    def helm(deployment: Document) -> None:
        deployment["helm"] = {"values": {"replicas": 2}}

    changed = await loop.garden.change(ObjectKey("controllerdeployment", "", "own"), helm)
    assert loop.observe() == ["aws-eu1"]
    await loop.reconcile_all()
    after = loop.of("aws-eu1")["provider-aws"]
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["spec"]["deploymentRef"]["resourceVersion"] == str(changed.version)
    differing = {
        name for name, value in after["metadata"]["labels"].items() if before["metadata"]["labels"][name] != value
    }
    assert differing == {"deployment-hash"}


async def test_what_is_needed_and_not_registered_ends_the_pass() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_registration("networking", ("Network", "calico")))
    result = await loop.reconcile("aws-eu1")
    assert isinstance(result, Terminal)
    expected = 'need to install an extension controller for "ControlPlane/aws" but no appropriate '
    assert result.message == f"{expected}ControllerRegistration found"
    assert list(loop.garden.events("ReconcileError")) == [result.message]
    assert loop.of("aws-eu1") == {}
    assert await loop.add(a_provider()) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"]


async def test_a_missing_deployment_is_named_and_its_creation_goes_on() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider(spec={"deployment": {"deploymentRefs": [{"name": "own"}]}}))
    result = await loop.reconcile("aws-eu1")
    assert isinstance(result, Terminal)
    assert 'controllerdeployments.core.gardener.cloud "own" not found' in result.message
    assert await loop.add(a_deployment("own")) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"]


@pytest.mark.parametrize(
    ("deployment", "with_shoot", "is_installed"),
    [
        ({}, True, False),
        ({"policy": "OnDemand"}, True, False),
        ({"policy": "Always"}, False, True),
        ({"policy": "AlwaysExceptNoShoots"}, False, False),
        ({"policy": "AlwaysExceptNoShoots"}, True, True),
        ({"policy": "Always", "seedSelector": {"matchLabels": {"planet": "pluto"}}}, True, False),
        ({"policy": "Always", "seedSelector": {"matchLabels": {"planet": "earth"}}}, True, True),
    ],
)
async def test_policy_and_selector_decide(deployment: Document, with_shoot: bool, is_installed: bool) -> None:
    loop = Installations()
    extra = a_registration("extra", ("Extension", "audit"), spec={"deployment": deployment})
    networking = a_registration("networking", ("Network", "calico"))
    await loop.add(a_seed(metadata={"labels": {"planet": "earth"}}), a_provider(), networking, extra)
    if with_shoot:
        await loop.add(a_placed_shoot())
    await loop.reconcile_all()
    assert ("extra" in loop.of("aws-eu1")) == is_installed


async def test_all_that_offer_a_type_are_installed_primary_or_not() -> None:
    loop = Installations()
    second = a_registration("second", {"kind": "Worker", "type": "aws", "primary": False})
    await loop.add(a_seed(), a_provider(), second)
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws", "second"]


async def test_what_is_required_stays_until_it_is_not() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider(), a_registration("networking", ("Network", "calico")), a_placed_shoot())
    await loop.reconcile_all()
    name = loop.of("aws-eu1")["networking"]["metadata"]["name"]
    key = ObjectKey("controllerinstallation", "", name)

    def require(status: str) -> Any:
        def change(installation: Document) -> None:
            installation["status"] = {"conditions": [{"type": "Required", "status": status}]}

        return change

    await loop.garden.change(key, require("True"))
    await loop.remove(ObjectKey("shoot", "garden-dev", "apollo"))
    await loop.reconcile_all()
    assert "networking" in loop.of("aws-eu1")
    await loop.garden.change(key, require("False"))
    assert loop.observe() == ["aws-eu1"]
    await loop.reconcile_all()
    assert "networking" not in loop.of("aws-eu1")


async def test_an_installation_that_is_needed_again_waits_for_the_end_of_the_old_one() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider())
    await loop.reconcile_all()
    key = ObjectKey("controllerinstallation", "", loop.of("aws-eu1")["provider-aws"]["metadata"]["name"])

    def hold(installation: Document) -> None:
        installation["metadata"]["finalizers"] = ["core.gardener.cloud/controllerinstallation"]

    await loop.garden.change(key, hold)
    await loop.garden.delete(key)
    assert loop.observe() == ["aws-eu1"]
    result = await loop.reconcile("aws-eu1")
    assert isinstance(result, RequeueAfter)
    expected = 'cannot deploy new ControllerInstallation for "provider-aws" because the deletion of the old '
    assert result.reason == f"{expected}ControllerInstallation is still pending"

    await loop.garden.change(key, lambda one: one["metadata"].pop("finalizers"))
    assert loop.observe() == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"]


async def test_a_deleted_registration_gets_no_new_installation_and_stays_while_it_has_one() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider())
    await loop.reconcile_all()
    finalizers, key = controller_registration.LOOP, ObjectKey("controllerregistration", "", "provider-aws")
    assert await loop.garden.reconcile(finalizers, key) == Done()
    assert await loop.garden.delete(key), "the finalizer keeps it"
    result = await loop.garden.reconcile(finalizers, key)
    assert isinstance(result, RequeueAfter)
    name = loop.of("aws-eu1")["provider-aws"]["metadata"]["name"]
    assert result.reason == (
        'cannot remove finalizer of ControllerRegistration "provider-aws" because still found '
        f"ControllerInstallations: [{name}]"
    )
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["provider-aws"], "what is needed stays"
    await loop.garden.delete(ObjectKey("controllerinstallation", "", name))
    await loop.reconcile_all()
    assert loop.of("aws-eu1") == {}, "and is not installed again"
    assert await loop.garden.reconcile(finalizers, key) == Done("it is released")
    assert await loop.garden.store.get(key) is None
    await loop.reconcile_all()
    assert "finalizers" not in (await loop.garden.now("seed", "aws-eu1") or {})["metadata"]


async def test_a_deleted_seed_stays_until_nothing_is_installed_on_it() -> None:
    loop = Installations()
    await loop.add(a_seed(), a_provider(), a_registration("always", spec={"deployment": {"policy": "Always"}}))
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["always", "provider-aws"]
    assert await loop.garden.delete(SEED), "the finalizer keeps it"
    await loop.reconcile_all()
    assert loop.of("aws-eu1") == {}
    assert await loop.garden.store.get(SEED) is None


async def test_backups_need_the_type_of_their_bucket() -> None:
    loop = Installations()
    buckets, entries = (a_registration(kind.lower(), (kind, "gcp")) for kind in ("BackupBucket", "BackupEntry"))
    await loop.add(a_seed(), a_provider(), buckets, entries)
    assert await loop.add(a_bucket("b", "aws-eu1", "gcp")) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["backupbucket", "provider-aws"]
    assert await loop.add(an_entry("one", "b", "aws-eu1")) == ["aws-eu1"]
    assert await loop.add(an_entry("two", "b", "aws-eu1")) == []
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["backupbucket", "backupentry", "provider-aws"]
    assert await loop.remove(ObjectKey("backupentry", "garden-dev", "one")) == []
    assert await loop.remove(ObjectKey("backupentry", "garden-dev", "two")) == ["aws-eu1"]
    await loop.reconcile_all()
    assert sorted(loop.of("aws-eu1")) == ["backupbucket", "provider-aws"]


async def test_domains_of_the_landscape_need_their_provider() -> None:
    loop = Installations()
    types = ("route53", "clouddns")
    records = [a_registration(each, ("DNSRecord", each)) for each in types]
    await loop.add(a_seed(), a_provider(), a_registration("networking", ("Network", "calico")), *records)
    await loop.add(a_placed_shoot(spec={"dns": {"domain": "apollo.dev.example.org"}}))
    await loop.reconcile_all()
    assert not {*types} & {*loop.of("aws-eu1")}
    assert await loop.add(a_domain("internal", "internal-domain", "internal.example.org", "route53")) == ["aws-eu1"]
    assert await loop.add(a_domain("default", "default-domain", "example.org", "clouddns")) == ["aws-eu1"]
    await loop.reconcile_all()
    assert {*types} <= {*loop.of("aws-eu1")}


async def test_an_extension_comes_by_itself_unless_it_is_disabled_or_for_shoots_with_workers() -> None:
    everywhere = {"kind": "Extension", "type": "audit", "globallyEnabled": True}
    cases: list[tuple[Document, bool]] = [
        ({}, True),
        ({"extensions": [{"type": "audit", "disabled": True}]}, False),
        ({"provider": {"workers": []}}, False),
    ]
    for spec, is_installed in cases:
        loop = Installations(Garden())
        await loop.add(a_seed(), a_provider(), a_registration("networking", ("Network", "calico")))
        await loop.add(a_registration("audit", everywhere), a_placed_shoot(spec=spec))
        await loop.reconcile_all()
        assert ("audit" in loop.of("aws-eu1")) == is_installed, spec
