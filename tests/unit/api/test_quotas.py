"""Quotas: what shoots take of each metric. The cases are those of Gardener's `plugin/pkg/shoot/quotavalidator`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.quotas import (
    QuotaLimits,
    bindings_of,
    demand_of,
    expiration_of,
    limits_of,
    metrics_of_unit,
    profile_of_unit,
    quota_keys,
    shortest_lifetime,
    usage_of,
)
from gardenbus.common.api.keys import ObjectKey

PROFILE = ObjectKey("cloudprofile", "", "profile")
GI = 2**30
_MACHINE: Document = {"cpu": "2", "gpu": "0", "memory": "5Gi"}
PROFILE_SPEC: Document = {
    "machineTypes": [
        {"name": "n1-standard-2", **_MACHINE},
        {"name": "with-storage", **_MACHINE, "storage": {"class": "standard", "type": "disk", "size": "20Gi"}},
        {"name": "premium-storage", **_MACHINE, "storage": {"class": "premium", "type": "disk", "size": "1Gi"}},
        {"name": "gpu", "cpu": "500m", "gpu": "4", "memory": "1Gi"},
    ],
    "volumeTypes": [{"name": "pd-standard", "class": "standard"}, {"name": "pd-ssd", "class": "premium"}],
}


def a_pool(machine: str = "n1-standard-2", *, maximum: int = 1, **volume: Any) -> Document:
    """A worker pool."""
    return {"machine": {"type": machine}, "maximum": maximum, **({"volume": volume} if volume else {})}


def a_spec(*pools: Document, ingress: bool = False) -> Document:
    """The spec of a shoot."""
    return {
        "cloudProfileName": "profile",
        "provider": {"workers": list(pools)},
        "addons": {"nginxIngress": {"enabled": ingress}},
    }


STANDARD: Document = {"size": "30Gi", "type": "pd-standard"}


@pytest.mark.parametrize(
    ("spec", "usage"),
    [
        (
            a_spec(a_pool(**STANDARD), ingress=True),
            {"cpu": 2000, "memory": 5 * GI, "storage.standard": 30 * GI, "loadbalancer": 2000},
        ),
        (
            a_spec(a_pool(**STANDARD), a_pool(**STANDARD)),
            {"cpu": 4000, "memory": 10 * GI, "storage.standard": 60 * GI, "loadbalancer": 1000},
        ),
        (
            a_spec(a_pool(maximum=3, size="10Gi", type="pd-ssd")),
            {"cpu": 6000, "memory": 15 * GI, "storage.premium": 30 * GI, "loadbalancer": 1000},
        ),
        (
            a_spec(a_pool("with-storage", size="19Gi", type="pd-ssd")),  # the machine's class counts
            {"cpu": 2000, "memory": 5 * GI, "storage.standard": 19 * GI, "loadbalancer": 1000},
        ),
        (
            a_spec(a_pool("with-storage", maximum=2)),  # without a volume: the machine's own
            {"cpu": 4000, "memory": 10 * GI, "storage.standard": 40 * GI, "loadbalancer": 1000},
        ),
        (
            a_spec(a_pool("premium-storage")),
            {"cpu": 2000, "memory": 5 * GI, "storage.premium": 1 * GI, "loadbalancer": 1000},
        ),
        (a_spec(a_pool("gpu", maximum=2)), {"cpu": 1000, "gpu": 8000, "memory": 2 * GI, "loadbalancer": 1000}),
        (a_spec(a_pool("unheard-of", **STANDARD)), {"storage.standard": 30 * GI, "loadbalancer": 1000}),
        (a_spec(a_pool(maximum=0, **STANDARD)), {"loadbalancer": 1000}),
        (a_spec(), {"loadbalancer": 1000}),
        ({}, {"loadbalancer": 1000}),
    ],
)
def test_a_shoot_takes_the_maxima_of_its_pools(spec: Document, usage: dict[str, int]) -> None:
    assert usage_of(demand_of(spec, "garden-dev"), {PROFILE: PROFILE_SPEC}) == usage


def test_demands_add_up_before_the_profile_is_known() -> None:
    one = demand_of(a_spec(a_pool(**STANDARD)), "garden-dev")
    doubled = {unit: 2 * count for unit, count in one.items()}

    assert usage_of(doubled, {PROFILE: PROFILE_SPEC})["cpu"] == 4000
    assert {profile_of_unit(unit) for unit in one} == {PROFILE, None}


@pytest.mark.parametrize("pool", [{"maximum": 3}, {"machine": {"type": "a\tb"}, "maximum": 1}, {"machine": 1}, "pool"])
def test_a_pool_that_is_none_has_no_effect(pool: object) -> None:
    spec = {"cloudProfileName": "profile", "provider": {"workers": [pool]}}

    assert set(usage_of(demand_of(spec, "garden-dev"), {PROFILE: PROFILE_SPEC})) == {"loadbalancer"}


@pytest.mark.parametrize("size", ["50Gi", "900000000000Gi", "9e999"])
def test_the_demand_of_a_shoot_is_a_count_that_a_store_can_sum(size: str) -> None:
    pool = a_pool(maximum=2**31 - 1, size=size, type="pd-ssd")

    demand = demand_of(a_spec(*[pool] * 3, a_pool(maximum=2**62)), "garden-dev")
    assert 3 * (2**31 - 1) in demand.values()
    assert max(demand.values()) == 2**53


def a_quota(name: str = "trial", kind: str = "Project", **spec: Any) -> Document:
    """A Quota."""
    return {
        "kind": "Quota",
        "metadata": {"namespace": "garden-trial", "name": name},
        "spec": {"scope": {"apiVersion": "v1", "kind": kind}, **spec},
    }


def test_a_quota_limits_what_it_names() -> None:
    quota = a_quota(metrics={"cpu": "200", "memory": "4Ti", "loadbalancer": "1k", "pods": 3}, clusterLifetimeDays=14)

    assert limits_of(quota) == QuotaLimits(
        ObjectKey("quota", "garden-trial", "trial"),
        {"cpu": 200_000, "memory": 4 * 2**40, "loadbalancer": 1_000_000},
        is_of_project=True,
        lifetime_days=14,
    )


@pytest.mark.parametrize("amount", ["16Ei", "1e17", "9e999", 10**30, 1e30])
def test_amounts_end_where_those_of_kubernetes_do(amount: object) -> None:
    quota = a_quota(metrics={"cpu": amount, "memory": "16Ei"})
    machine = {"name": "n1-standard-2", "cpu": amount, "memory": "16Ei"}

    assert limits_of(quota).metrics == {"cpu": 2**63 - 1, "memory": 2**63 - 1}
    for unit in demand_of(a_spec(a_pool()), "garden-dev"):
        assert max(metrics_of_unit(unit, {"machineTypes": [machine]}).values()) in (1000, 2**63 - 1)


@pytest.mark.parametrize("days", [36_500, 2_900_000, 2**31 - 1, 10**30])
def test_a_lifetime_of_a_hundred_years_is_the_longest(days: int) -> None:
    lifetime = shortest_lifetime([limits_of(a_quota(clusterLifetimeDays=days))])

    assert lifetime == timedelta(days=36_500)
    assert lifetime is not None
    assert expiration_of(datetime(2026, 1, 1, tzinfo=UTC), lifetime).year == 2125


@pytest.mark.parametrize("spec", [{"metrics": {"cpu": "lots"}}, {"clusterLifetimeDays": 0}, {"metrics": {"cpu": []}}])
def test_what_is_no_number_limits_nothing(spec: dict[str, Any]) -> None:
    limits = limits_of(a_quota(kind="Secret", **spec))

    assert (limits.metrics, limits.lifetime_days, limits.is_of_project) == ({}, None, False)


def test_a_binding_names_quotas_of_its_own_namespace_and_of_others() -> None:
    binding = {
        "metadata": {"namespace": "garden-dev", "name": "aws"},
        "quotas": [{"name": "own"}, {"name": "trial", "namespace": "garden-trial"}, {"name": "own"}, {}],
    }

    assert quota_keys(binding) == [ObjectKey("quota", "garden-dev", "own"), ObjectKey("quota", "garden-trial", "trial")]


def test_the_least_lifetime_counts() -> None:
    quotas = [limits_of(a_quota(clusterLifetimeDays=days)) for days in (7, 1, 30)]
    created_at = datetime(2026, 1, 1, tzinfo=UTC)

    assert shortest_lifetime(quotas) == timedelta(days=1)
    assert shortest_lifetime([limits_of(a_quota())]) is None
    assert expiration_of(created_at, timedelta(days=1)) == datetime(2026, 1, 2, tzinfo=UTC)


def test_the_bindings_of_a_shoot_are_in_its_namespace() -> None:
    shoot = {"metadata": {"namespace": "garden-dev"}, "spec": {"credentialsBindingName": "aws"}}

    assert bindings_of(shoot) == [ObjectKey("credentialsbinding", "garden-dev", "aws")]
