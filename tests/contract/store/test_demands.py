"""Demands: what shoots want through their bindings is summed in the store, and limited in the write itself."""

import asyncio
from collections.abc import Mapping

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.quotas import MOST_DEMANDED, limits_of, metrics_of_unit
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden
from gardenbus.common.ports.store import DemandLimits, WritePrecondition
from gardenbus.relay.ports.outbox import Restored
from tests.support.builders import a_shoot, merged
from tests.support.stores import StoreUnderTest

QUOTA = ObjectKey("quota", "garden-trial", "trial")
MACHINES = "bare-machines\tcloudprofile:_:aws\tm5.large"


def a_binding(namespace: str = "garden-dev", name: str = "aws", *quotas: str) -> Document:
    """A CredentialsBinding with Quotas of garden-trial."""
    return {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "CredentialsBinding",
        "metadata": {"namespace": namespace, "name": name},
        "quotas": [{"namespace": QUOTA.namespace, "name": quota} for quota in quotas or ("trial",)],
    }


def a_cluster(name: str, machines: int = 1, namespace: str = "garden-dev") -> Document:
    """A shoot of that binding."""
    pool = {"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": machines}
    spec = {"credentialsBindingName": "aws", "provider": {"type": "aws", "workers": [pool]}}
    return merged(a_shoot(name, namespace), {"spec": {**spec, "cloudProfile": {"kind": "CloudProfile", "name": "aws"}}})


def within(
    cpu: int, *, namespace: str = "", amounts: Mapping[str, Mapping[str, int]] | None = None
) -> tuple[WritePrecondition, ...]:
    """The guard: so many CPUs at most, and four to a machine."""
    existing = {MACHINES: {"cpu": 4}, "loadbalancers": {"loadbalancer": 1}} if amounts is None else amounts
    return (
        WritePrecondition("demand", QUOTA.stored, "beyond", limits=DemandLimits({"cpu": cpu}, existing, namespace)),
    )


async def test_demands_are_summed_over_all_that_refers_to_a_quota(kit: StoreUnderTest) -> None:
    for namespace in ("garden-dev", "garden-prod"):
        await kit.created(a_binding(namespace))
        await kit.created(a_cluster("one", 2, namespace))
    shoot = await kit.created(a_cluster("two", 3))

    assert await kit.store.demand(QUOTA) == {MACHINES: 7, "loadbalancers": 3}
    assert await kit.store.demand(QUOTA, "garden-dev") == {MACHINES: 5, "loadbalancers": 2}
    assert await kit.store.demand(QUOTA, "garden-none") == {}
    assert await kit.store.demand(QUOTA._replace(name="other")) == {}

    shoot = await kit.changed(shoot, a_cluster("two", 1))
    assert await kit.store.demand(QUOTA, "garden-dev") == {MACHINES: 3, "loadbalancers": 2}
    assert await kit.store.delete(shoot) is None
    assert await kit.store.demand(QUOTA, "garden-dev") == {MACHINES: 2, "loadbalancers": 1}


async def test_a_binding_counts_by_the_quotas_that_it_names_now(kit: StoreUnderTest) -> None:
    binding = await kit.created(a_binding())
    await kit.created(a_cluster("one"))
    await kit.changed(binding, a_binding("garden-dev", "aws", "other"))

    assert await kit.store.demand(QUOTA) == {}
    assert await kit.store.demand(QUOTA._replace(name="other")) == {MACHINES: 1, "loadbalancers": 1}


async def test_a_write_beyond_a_limit_is_refused(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    shoot = await kit.created(a_cluster("one", 2), preconditions=within(8))
    with pytest.raises(Forbidden, match=r"\Abeyond cpu\Z"):
        await kit.store.create(a_cluster("two"), preconditions=within(8))
    with pytest.raises(Forbidden, match="beyond"):
        await kit.store.update(shoot, a_cluster("one", 3), preconditions=within(8))
    with pytest.raises(Forbidden, match="beyond"):
        await kit.store.dry_run(shoot.key, shoot, a_cluster("one", 3), preconditions=within(8))
    labelled = merged(shoot.document(), {"metadata": {"labels": {"a": "b"}}})
    shoot = await kit.changed(shoot, labelled, preconditions=within(8))
    await kit.changed(shoot, a_cluster("one", 1), preconditions=within(8))
    await kit.created(a_cluster("two"), preconditions=within(8))


async def test_a_limit_may_be_the_largest_of_kubernetes(kit: StoreUnderTest) -> None:
    metrics = {"cpu": "1e17", "memory": "16Ei"}
    limits = limits_of({"metadata": {"name": "trial"}, "spec": {"metrics": metrics}}).metrics
    machine = metrics_of_unit(MACHINES, {"machineTypes": [{"name": "m5.large", **metrics}]})
    amounts: Mapping[str, Mapping[str, int]] = {MACHINES: machine, "loadbalancers": {}}
    guard = WritePrecondition("demand", QUOTA.stored, "beyond", limits=DemandLimits(limits, amounts))
    await kit.created(a_binding())
    await kit.created(a_cluster("one"), preconditions=(guard,))
    with pytest.raises(Forbidden, match=r"\Abeyond cpu, memory\Z"):
        await kit.store.create(a_cluster("two"), preconditions=(guard,))


async def test_a_limit_within_a_namespace_counts_that_alone(kit: StoreUnderTest) -> None:
    for namespace in ("garden-dev", "garden-prod"):
        await kit.created(a_binding(namespace))
        await kit.created(a_cluster("one", 2, namespace), preconditions=within(8, namespace=namespace))
    with pytest.raises(Forbidden):
        await kit.store.create(a_cluster("two"), preconditions=within(8, namespace="garden-dev"))
    await kit.created(a_cluster("two"), preconditions=within(20))


async def test_a_unit_that_the_writer_does_not_know_has_it_read_again(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    with pytest.raises(Conflict, match="beyond"):
        await kit.store.create(a_cluster("one"), preconditions=within(8, amounts={"loadbalancers": {}}))


async def test_no_shoot_demands_more_than_can_be_summed(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    shoots = [await kit.created(a_cluster(name, 2**70)) for name in ("one", "two")]
    small = await kit.created(a_cluster("small", 4))

    assert await kit.store.demand(QUOTA) == {MACHINES: 2 * MOST_DEMANDED + 4, "loadbalancers": 3}
    for shoot in shoots:
        await kit.store.delete(shoot)
    assert await kit.store.demand(QUOTA) == {MACHINES: 4, "loadbalancers": 1}
    await kit.store.delete(small)
    assert await kit.store.demand(QUOTA) == {}


async def test_shoots_without_a_binding_count_nowhere(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    await kit.created(a_shoot("one"))

    assert await kit.store.demand(QUOTA) == {}


async def test_of_many_at_once_as_many_are_created_as_fit(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    results = await asyncio.gather(
        *(kit.store.create(a_cluster(f"s{number}"), preconditions=within(40)) for number in range(60)),
        return_exceptions=True,
    )

    assert sum(not isinstance(result, Forbidden) for result in results) == 10
    assert await kit.store.demand(QUOTA) == {MACHINES: 10, "loadbalancers": 10}


async def test_what_comes_back_from_the_bus_is_summed(closed: StoreUnderTest) -> None:
    await closed.outbox.lead(86_400)
    for version, document in ((3, a_binding()), (4, a_cluster("one", 2)), (5, a_cluster("one", 5))):
        uid = f"{version // 4}1111111-1111-4111-8111-111111111111"
        document["metadata"] |= {"uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
        key = ObjectKey(document["kind"].lower(), "garden-dev", document["metadata"]["name"])
        assert await closed.outbox.restore(Restored(key, uid, version, document))
    await closed.outbox.open(5, 0)
    assert await closed.store.demand(QUOTA) == {MACHINES: 5, "loadbalancers": 1}
