"""The loops of shoots on real servers: each way of writing, across a stop of the service that lasts for days."""

from datetime import UTC, datetime, timedelta
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from tests.contract.controllermanager.conftest import Landscape
from tests.support.builders import CORE, a_cloudprofile, a_shoot, merged
from tests.support.eventually import eventually

DAYS_LATER = timedelta(days=3)
FINALIZER = "gardener.cloud/reference-protection"
LONGEST_WINDOW = timedelta(hours=6)


def key(name: str, kind: str = "shoot") -> ObjectKey:
    return ObjectKey(kind, "garden-dev", name)


def named(name: str) -> Document:
    return {"name": name, "namespace": "garden-dev"}


def a_running_shoot(name: str, **changes: Any) -> Document:
    status: Document = {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}
    return merged(a_shoot(name, spec={"kubernetes": {"version": "1.34.1"}}, status=status), changes)


def a_trial() -> list[Document]:
    """A Quota of two days, and the binding that names it."""
    scope = {"apiVersion": CORE, "kind": "Project"}
    return [
        {
            "apiVersion": CORE,
            "kind": "Quota",
            "metadata": named("trial"),
            "spec": {"scope": scope, "clusterLifetimeDays": 2, "metrics": {}},
        },
        {
            "apiVersion": "security.gardener.cloud/v1alpha1",
            "kind": "CredentialsBinding",
            "metadata": named("trial"),
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **named("trial")},
            "provider": {"type": "aws"},
            "quotas": [named("trial")],
        },
    ]


async def fields(landscape: Landscape, object_key: ObjectKey, *path: str) -> Document:
    """The mapping at a path of an object that has to be there."""
    document = await landscape.get(object_key)
    assert document is not None, f"{object_key} is gone"
    return section(document, *path)


async def until_gone(landscape: Landscape, object_key: ObjectKey) -> None:
    async def gone() -> None:
        assert await landscape.get(object_key) is None

    await eventually(gone, every=0.05)


async def test_what_is_due_while_the_service_is_away_is_done_when_it_is_back(landscape: Landscape) -> None:
    later = datetime.now(UTC) + DAYS_LATER
    edge = later - timedelta(minutes=30)
    window = later + timedelta(minutes=16, seconds=40) - LONGEST_WINDOW
    rate_limited: Document = {
        "observedGeneration": 1,
        "lastOperation": {"type": "Create", "state": "Failed", "lastUpdateTime": timestamp(datetime.now(UTC))},
        "lastErrors": [{"description": "slow down", "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}],
    }
    times = {"begin": f"{window:%H%M%S}+0000", "end": f"{window + LONGEST_WINDOW:%H%M%S}+0000"}
    hours_later = later + timedelta(hours=6)
    another_time = {"begin": f"{hours_later:%H%M%S}+0000", "end": f"{hours_later + timedelta(hours=1):%H%M%S}+0000"}
    for document in (
        a_cloudprofile(spec={"kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.34.2"}]}}),
        *a_trial(),
        a_running_shoot(
            "sleeper", spec={"hibernation": {"schedules": [{"start": f"{edge.minute} {edge.hour} * * *"}]}}
        ),
        a_running_shoot("maintained", spec={"maintenance": {"timeWindow": times}}),
        a_running_shoot("limited", spec={"maintenance": {"timeWindow": another_time}}, status=rate_limited),
        a_running_shoot("guest", spec={"credentialsBindingName": "trial"}, metadata={"finalizers": ["gardener"]}),
        {
            "apiVersion": "operations.gardener.cloud/v1alpha1",
            "kind": "Bastion",
            "metadata": named("door"),
            "spec": {"shootRef": {"name": "sleeper"}},
        },
    ):
        await landscape.store.create(document)

    async def accepted() -> None:
        assert EXPIRATION_ANNOTATION in await fields(landscape, key("guest"), "metadata", "annotations")
        assert "expirationTimestamp" in await fields(landscape, key("door", "bastion"), "status")

    async with landscape.controllermanager():
        await eventually(accepted, every=0.05)

    async def done() -> None:
        assert (await fields(landscape, key("sleeper"), "spec", "hibernation")).get("enabled") is True
        assert "lastHibernationTriggerTime" in await fields(landscape, key("sleeper"), "status")
        assert (await fields(landscape, key("maintained"), "spec", "kubernetes"))["version"] == "1.34.2"
        last = await fields(landscape, key("maintained"), "status", "lastMaintenance")
        assert last.get("state") == "Succeeded"
        assert (await fields(landscape, key("limited"), "metadata"))["generation"] == 2
        assert (await fields(landscape, key("guest"), "metadata")).get("deletionTimestamp")
        assert await landscape.get(key("door", "bastion")) is None

    async with landscape.controllermanager(ahead=DAYS_LATER), landscape.controllermanager(ahead=DAYS_LATER):
        await eventually(done, every=0.1)
    generation = (await fields(landscape, key("maintained"), "metadata"))["generation"]
    assert generation <= 3, "replicas do not maintain a shoot again and again"


async def test_a_secret_outlives_the_shoots_that_use_it_and_no_longer(landscape: Landscape) -> None:
    secret = key("dns", "secret")
    using = {"dns": {"providers": [{"type": "aws-route53", "secretName": "dns"}]}}
    await landscape.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": named("dns")})
    await landscape.store.create(a_running_shoot("first", spec=using))
    await landscape.store.create(a_running_shoot("second", spec=using))

    async def protected() -> None:
        for object_key in (secret, key("first"), key("second")):
            assert (await fields(landscape, object_key, "metadata")).get("finalizers") == [FINALIZER]

    async with landscape.controllermanager():
        await eventually(protected, every=0.05)
        await landscape.delete(secret)
        await landscape.delete(key("first"))
        await until_gone(landscape, key("first"))
        assert await landscape.get(secret) is not None
    await landscape.delete(key("second"))
    async with landscape.controllermanager():
        await until_gone(landscape, key("second"))
        await until_gone(landscape, secret)
