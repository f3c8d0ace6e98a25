"""ShootQuotaValidator: which writes are limited, by which Quotas, and for how long shoots may live.

The cases are those of Gardener's `plugin/pkg/shoot/quotavalidator`; the sums are the store's (tests/contract/store).
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import shoot_quota_validator
from gardenbus.apiserver.domain.related_objects import QuotasQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.quotas import demand_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.builders import a_cloudprofile, a_shoot, merged

CHAIN = Admission([shoot_quota_validator.PLUGIN])
NOW = datetime(2018, 1, 1, tzinfo=UTC)
BINDING = ObjectKey("secretbinding", "garden-dev", "test-binding")
PROJECT_QUOTA = ObjectKey("quota", "trial", "project-quota")
SECRET_QUOTA = ObjectKey("quota", "trial", "secret-quota")
EXPIRATION = "shoot.gardener.cloud/expiration-timestamp"
MACHINE = {"name": "n1-standard-2", "cpu": "2", "gpu": "0", "memory": "5Gi"}
UNIT = "machines\tcloudprofile:_:aws\tn1-standard-2"
OTHER_UNIT = "machines\tcloudprofile:_:gcp\tlarge"


def a_quota(key: ObjectKey, scope: str, days: int | None, **metrics: str) -> Document:
    """A Quota."""
    spec = {"scope": {"kind": scope}, "metrics": metrics, "clusterLifetimeDays": days}
    metadata = {"namespace": key.namespace, "name": key.name, "resourceVersion": "7"}
    return {"kind": "Quota", "metadata": metadata, "spec": spec}


def facts(*, days: tuple[int | None, int | None] = (1, 7), quotas: int = 2, **demand: int) -> RelatedObjects:
    """A binding with two Quotas, and what shoots want of the second already."""
    names = [{"namespace": key.namespace, "name": key.name} for key in (PROJECT_QUOTA, SECRET_QUOTA)]
    binding = {"kind": "SecretBinding", "metadata": {"resourceVersion": "5"}, "quotas": names[:quotas]}
    profile = a_cloudprofile(spec={"machineTypes": [MACHINE]})
    return RelatedObjects(
        objects={
            BINDING: binding,
            PROJECT_QUOTA: a_quota(PROJECT_QUOTA, "Project", days[0], cpu="2", memory="5Gi"),
            SECRET_QUOTA: a_quota(SECRET_QUOTA, "Secret", days[1], cpu="4"),
            ObjectKey("cloudprofile", "", "aws"): profile,
        },
        demands={PROJECT_QUOTA: {}, SECRET_QUOTA: {OTHER_UNIT: 3, **demand}},
    )


def a_cluster(maximum: int = 1, **changes: Any) -> Document:
    """A shoot of that binding."""
    volume = {"size": "30Gi", "type": "pd-standard"}
    pool = {"name": "test-worker-1", "machine": {"type": "n1-standard-2"}, "maximum": maximum, "volume": volume}
    spec = {"secretBindingName": BINDING.name, "provider": {"type": "aws", "workers": [pool]}}
    return merged(a_shoot(), merged({"spec": {**spec, "cloudProfile": {"name": "aws"}}}, changes))


def guards(shoot: Document, old: Document | None = None, related: RelatedObjects | None = None) -> list[Any]:
    """The guards of a write."""
    return list(CHAIN.write_guards(shoot, old, related or facts()))


def test_a_new_shoot_is_limited_by_every_quota_of_its_binding() -> None:
    *versions, of_project, of_secret = guards(a_cluster())

    assert [(guard.name, guard.version) for guard in versions] == [
        (BINDING.stored, 5),
        (PROJECT_QUOTA.stored, 7),
        (SECRET_QUOTA.stored, 7),
    ]
    assert (of_project.kind, of_project.name) == ("demand", PROJECT_QUOTA.stored)
    assert of_project.limits.most == {"cpu": 2000, "memory": 5 * 2**30}
    assert of_project.limits.amounts[UNIT] == {"cpu": 2000, "memory": 5 * 2**30}
    assert (of_project.limits.namespace, of_secret.limits.namespace) == ("garden-dev", "")
    assert of_secret.limits.amounts[OTHER_UNIT] == {}  # of a profile that is gone
    assert of_project.message == (
        "shoot garden-dev/apollo: quota limits exceeded: quota trial/project-quota allows cpu 2, memory 5Gi."
        " Unable to allocate further"
    )


NGINX = {"spec": {"addons": {"nginxIngress": {"enabled": True}}}}
POOL: Document = a_cluster()["spec"]["provider"]["workers"][0]
LARGER: Document = {"spec": {"provider": {"workers": [{**POOL, "maximum": 2}]}}}
VOLUME = {"size": "31Gi", "type": "pd-standard"}


@pytest.mark.parametrize(
    ("change", "is_limited"),
    [
        (LARGER, True),
        ({"spec": {"provider": {"workers": [{**POOL, "maximum": 0}]}}}, False),
        (
            {"spec": {"provider": {"workers": [{**POOL, "volume": VOLUME}]}}},
            True,
        ),
        ({"spec": {"provider": {"workers": [POOL, {"name": "two"}]}}}, False),
        ({"spec": {"provider": {"workers": [POOL, {**POOL, "name": "two"}]}}}, True),
        ({"spec": {"provider": {"workers": [{**POOL, "machine": {"type": "larger"}}]}}}, True),
        ({"spec": {"provider": {"workers": [{**POOL, "volume": {"size": "29Gi", "type": "pd-standard"}}]}}}, False),
        ({"spec": {"provider": {"workers": []}}}, False),
        (NGINX, True),
        ({"spec": {"kubernetes": {"version": "1.1.1"}}}, False),
        ({"spec": {"secretBindingName": None, "credentialsBindingName": "other"}}, True),
        ({"metadata": {"labels": {"a": "b"}}}, False),
    ],
)
def test_a_change_is_limited_if_it_wants_more(change: Document, is_limited: bool) -> None:
    shoot = merged(a_cluster(), change)
    binding = facts().objects[BINDING]
    other = ObjectKey("credentialsbinding", "garden-dev", "other")
    related = RelatedObjects(objects={**facts().objects, other: binding}, demands=facts().demands)

    assert bool(guards(shoot, a_cluster(), related)) == is_limited
    assert bool(CHAIN.related_queries(shoot, a_cluster())) == is_limited


def test_who_is_being_deleted_is_not_limited() -> None:
    old = merged(a_cluster(), {"metadata": {"deletionTimestamp": "2018-01-01T00:00:00Z"}})

    assert guards(merged(old, LARGER), old) == []


def test_without_quotas_or_limits_nothing_is_guarded() -> None:
    assert guards(a_cluster(), related=facts(quotas=0)) == []
    empty = {**facts().objects, PROJECT_QUOTA: a_quota(PROJECT_QUOTA, "Project", 1), SECRET_QUOTA: {"kind": "Quota"}}
    assert guards(a_cluster(), related=RelatedObjects(objects=empty)) == []
    assert CHAIN.related_queries(a_shoot(), None) == ()
    assert QuotasQuery((BINDING,)) in CHAIN.related_queries(a_cluster(), None)


def test_a_quota_that_is_missing_lets_nobody_in() -> None:
    objects = {key: each for key, each in facts().objects.items() if key != PROJECT_QUOTA}

    with pytest.raises(Forbidden, match="secretbinding garden-dev/test-binding names quota trial/project-quota"):
        CHAIN.admit(a_cluster(), None, RelatedObjects(objects=objects), now=NOW)
    CHAIN.admit(a_cluster(), a_cluster(), RelatedObjects(objects=objects), now=NOW)


@pytest.mark.parametrize(
    ("days", "until", "is_allowed"),
    [
        ((None, None), "2030-01-01T00:00:00+00:00", True),
        ((1, 7), "2018-01-02T00:00:00+00:00", True),
        ((1, 7), "2018-01-05T00:00:00+00:00", False),  # beyond the least
        ((1, 7), "2018-01-09T00:00:00Z", False),  # beyond the most
        ((None, 7), "2018-01-05T00:00:00Z", True),
        ((2**31 - 1, None), "2100-01-05T00:00:00Z", True),
    ],
)
def test_a_shoot_lives_no_longer_than_the_least_that_its_quotas_allow(
    days: tuple[int | None, int | None], until: str, is_allowed: bool
) -> None:
    extended = merged(a_cluster(), {"metadata": {"annotations": {EXPIRATION: until}}})
    for old in (a_cluster(), None):
        if is_allowed:
            CHAIN.admit(extended, old, facts(days=days), now=NOW)
            continue
        with pytest.raises(Forbidden, match=r"expiration time is too long. Can only be extended by 1 day\(s\)"):
            CHAIN.admit(extended, old, facts(days=days), now=NOW)
    CHAIN.admit(extended, extended, facts(days=days), now=NOW)


@pytest.mark.parametrize("until", ["soon", "2018-01-02", "2018-01-02T00:00:00"])
def test_what_is_no_instant_is_refused(until: str) -> None:
    with pytest.raises(InvalidResource, match="expiration-timestamp"):
        CHAIN.admit(merged(a_cluster(), {"metadata": {"annotations": {EXPIRATION: until}}}), None, facts(), now=NOW)


GIVEN = {
    "cpu": "2",
    "gpu": "0",
    "memory": "5Gi",
    "storage.standard": "30Gi",
    "storage.premium": "0",
    "loadbalancer": "2",
}
WIDE = {
    "cpu": "4",
    "gpu": "0",
    "memory": "10Gi",
    "storage.standard": "60Gi",
    "storage.premium": "0",
    "loadbalancer": "4",
}
WITH_STORAGE = {**MACHINE, "name": "n1-standard-3", "storage": {"class": "standard"}}


def beyond(shoot: Document, *others: Document, first: Document = GIVEN, second: Document = WIDE) -> set[str]:
    """The Quotas, of one scope here, that a new shoot exceeds beside others; counted anew."""
    sums = Counter[str]()
    for each in (shoot, *others):
        sums.update(demand_of(each["spec"], "garden-dev"))
    profile = a_cloudprofile(
        spec={"machineTypes": [MACHINE, WITH_STORAGE], "volumeTypes": [{"name": "pd-standard", "class": "standard"}]}
    )
    quotas = {
        key: a_quota(key, "Project", 1, **metrics) for key, metrics in ((PROJECT_QUOTA, first), (SECRET_QUOTA, second))
    }
    related = RelatedObjects(
        objects={**facts().objects, **quotas, ObjectKey("cloudprofile", "", "aws"): profile},
        demands=dict.fromkeys(quotas, sums),
    )
    return {
        ObjectKey.from_stored(guard.name).name
        for guard in guards(shoot, related=related)
        if guard.kind == "demand"
        and any(
            sum(guard.limits.amounts[unit].get(metric, 0) * count for unit, count in sums.items()) > most
            for metric, most in guard.limits.most.items()
        )
    }


def of_size(size: str, machine: str = "n1-standard-3") -> Document:
    """A cluster whose machines of that type have volumes of that size."""
    pool = {**POOL, "machine": {"type": machine}, "volume": {"size": size, "type": "pd-standard"}}
    return a_cluster(spec={"provider": {"workers": [pool]}})


@pytest.mark.parametrize(
    ("shoot", "others", "exceeded"),
    [
        (merged(a_cluster(), NGINX), [], set[str]()),
        (a_cluster(2), [], {"project-quota"}),
        (a_cluster(), [a_cluster()], {"project-quota"}),
        (a_cluster(), [a_cluster(), a_cluster()], {"project-quota", "secret-quota"}),
        (
            merged(a_cluster(), {"spec": {"provider": {"workers": [POOL, {**POOL, "name": "two"}]}}}),
            [],
            {"project-quota"},
        ),
        (of_size("30Gi"), [], set[str]()),
        (of_size("31Gi"), [], {"project-quota"}),
        (of_size("61Gi", "n1-standard-2"), [], {"project-quota", "secret-quota"}),
    ],
)
def test_several_quotas_of_one_scope_count_each_in_gardeners_cases(
    shoot: Document, others: list[Document], exceeded: set[str]
) -> None:
    assert beyond(shoot, *others) == exceeded
    assert beyond(shoot, *others, first=WIDE, second=GIVEN) == {
        {"project-quota": "secret-quota", "secret-quota": "project-quota"}[name] for name in exceeded
    }
    assert beyond(shoot, *others, first={}, second={}) == set()
