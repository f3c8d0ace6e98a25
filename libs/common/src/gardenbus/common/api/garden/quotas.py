"""Quotas: which count for a shoot, how much of each metric shoots take, and how long a cluster may live.

A shoot states what it wants in units that need no CloudProfile (machines of a type, bytes of a volume type, load
balancers): its demand. Sums of demands become metrics with the profiles as they are now. CPUs, GPUs and load balancers
are counted in thousandths, memory and storage in bytes. Source: Gardener's `plugin/pkg/shoot/quotavalidator`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings, only_text
from gardenbus.common.api.garden.profile_parts import binding_keys, profile_key
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.quantities import LONGEST_QUANTITY, parse_quantity

KIND = "quota"
EXPIRATION_ANNOTATION = "shoot.gardener.cloud/expiration-timestamp"

CPU, GPU, MEMORY = "cpu", "gpu", "memory"
STORAGE_STANDARD, STORAGE_PREMIUM = "storage.standard", "storage.premium"
LOADBALANCER = "loadbalancer"

METRICS: Mapping[str, int] = {
    CPU: 1000,
    GPU: 1000,
    MEMORY: 1,
    STORAGE_STANDARD: 1,
    STORAGE_PREMIUM: 1,
    LOADBALANCER: 1000,
}
"""The metrics that a Quota limits, and in how many parts one of each is counted."""

LONGEST_LIFETIME_DAYS = 36_500
"""A hundred years are for ever: Gardener bounds a lifetime by its type alone, and two billion days on is no date."""

MOST_OF_METRIC = 2**63 - 1
"""The most of a metric, in its parts: quantities of Kubernetes end there, and the messages to a store soon after."""

MOST_DEMANDED = 2**53
"""The most of a unit that counts for one shoot: stores sum it in 64 bits, where a thousand of these have room."""

_MACHINES, _BARE_MACHINES, _STORAGE, _LOADBALANCERS = "machines", "bare-machines", "storage", "loadbalancers"
_SEPARATOR = "\t"


class QuotaLimits(NamedTuple):
    """Limits of a Quota. `is_of_project`: shoots of each namespace are summed on their own, else all together."""

    key: ObjectKey
    metrics: Mapping[str, int]
    is_of_project: bool
    lifetime_days: int | None


def quota_keys(binding: Document) -> Sequence[ObjectKey]:
    """The Quotas that a SecretBinding or CredentialsBinding names, each once."""
    if not binding.get("quotas"):
        return ()
    namespace = only_text(section(binding, "metadata").get("namespace"))
    return list(
        dict.fromkeys(
            ObjectKey(KIND, only_text(entry.get("namespace")) or namespace, name)
            for entry in mappings(binding.get("quotas"))
            if (name := only_text(entry.get("name"))).isprintable() and name
        )
    )


def limits_of(quota: Document) -> QuotaLimits:
    """The limits of a Quota; a metric whose value is no quantity limits nothing."""
    metadata, spec = section(quota, "metadata"), section(quota, "spec")
    given = section(spec, "metrics")
    days: Any = spec.get("clusterLifetimeDays")
    return QuotaLimits(
        key=ObjectKey(KIND, only_text(metadata.get("namespace")), only_text(metadata.get("name"))),
        metrics={
            metric: amount for metric, parts in METRICS.items() if (amount := _amount(given.get(metric), parts)) >= 0
        },
        is_of_project=section(spec, "scope").get("kind") == "Project",
        lifetime_days=min(days, LONGEST_LIFETIME_DAYS)
        if isinstance(days, int) and not isinstance(days, bool) and days > 0
        else None,
    )


def shortest_lifetime(quotas: Iterable[QuotaLimits]) -> timedelta | None:
    """The time that a cluster may live: the least that a Quota of it states, None without one."""
    days = [quota.lifetime_days for quota in quotas if quota.lifetime_days is not None]
    return timedelta(days=min(days)) if days else None


def expiration_of(created_at: datetime, lifetime: timedelta) -> datetime:
    """The instant at which a shoot expires that nobody has extended."""
    return created_at + lifetime


def demand_of(shoot_spec: Document, namespace: str) -> Mapping[str, int]:
    """The demand of a shoot: the count of each unit at the maxima of its worker pools, up to MOST_DEMANDED."""
    profile = profile_key(shoot_spec, namespace)
    demand = {_LOADBALANCERS: 2 if _has_ingress(shoot_spec) else 1}
    if profile is not None:
        for unit, count in _pools(shoot_spec, profile.stored):
            demand[unit] = demand.get(unit, 0) + count
    return {unit: min(count, MOST_DEMANDED) for unit, count in demand.items() if count > 0}


def profile_of_unit(unit: str) -> ObjectKey | None:
    """The profile that a unit is of; None for load balancers."""
    kind, *rest = unit.split(_SEPARATOR)
    return ObjectKey.from_stored(rest[0]) if kind != _LOADBALANCERS and rest else None


def metrics_of_unit(unit: str, profile_spec: Document) -> Mapping[str, int]:
    """The metrics that one unit takes, by the (merged) spec of its profile; nothing of types that it has not."""
    kind, *rest = unit.split(_SEPARATOR)
    if kind == _LOADBALANCERS:
        return {LOADBALANCER: METRICS[LOADBALANCER]}
    machine = entry_named(profile_spec.get("machineTypes"), rest[1])
    if kind == _STORAGE:
        volume = section(machine, "storage") or entry_named(profile_spec.get("volumeTypes"), rest[2])
        return {_storage_metric(volume): 1} if volume else {}
    amounts = {metric: _amount(machine.get(metric), METRICS[metric]) for metric in (CPU, GPU, MEMORY)}
    if kind == _BARE_MACHINES and (storage := section(machine, "storage")):
        amounts[_storage_metric(storage)] = _amount(storage.get("size"), 1)
    return {metric: amount for metric, amount in amounts.items() if amount > 0}


def usage_of(demand: Mapping[str, int], profiles: Mapping[ObjectKey, Document]) -> Mapping[str, int]:
    """Metrics of summed demands, by the (merged) specs of the profiles."""
    usage: Counter[str] = Counter()
    for unit, count in demand.items():
        key = profile_of_unit(unit)
        for metric, amount in metrics_of_unit(unit, profiles.get(key, {}) if key is not None else {}).items():
            usage[metric] += amount * count
    return usage


def bindings_of(shoot: Document) -> Sequence[ObjectKey]:
    """The bindings whose Quotas count for a shoot."""
    return binding_keys(section(shoot, "spec"), only_text(section(shoot, "metadata").get("namespace")))


def _pools(shoot_spec: Document, profile: str) -> Iterator[tuple[str, int]]:
    for worker in mappings(section(shoot_spec, "provider").get("workers")):
        machine, maximum = only_text(section(worker, "machine").get("type")), worker.get("maximum")
        if not machine.isprintable() or not isinstance(maximum, int):
            continue
        volume = section(worker, "volume")
        yield _unit(_MACHINES if volume else _BARE_MACHINES, profile, machine), maximum
        volume_type = only_text(volume.get("type"))
        if volume and volume_type.isprintable():
            size = max(0, _amount(volume.get("size"), 1))
            yield _unit(_STORAGE, profile, machine, volume_type), size * maximum


def _unit(kind: str, profile: str, *names: str) -> str:
    return _SEPARATOR.join((kind, profile, *names))


def _has_ingress(shoot_spec: Document) -> bool:
    return section(shoot_spec, "addons", "nginxIngress").get("enabled") is True


def _storage_metric(volume: Document) -> str:
    return STORAGE_PREMIUM if volume.get("class") == "premium" else STORAGE_STANDARD


def _amount(value: Any, parts: int) -> int:
    """A quantity in parts, rounded up, MOST_OF_METRIC at most; -1 for what is none."""
    if isinstance(value, str):
        return _amount_of_text(value, parts) if len(value) <= LONGEST_QUANTITY else -1
    return _amount_of(value, parts) if isinstance(value, int | float) else -1


def _amount_of(value: str | float, parts: int) -> int:
    try:
        return min(ceil(parse_quantity(value) * parts), MOST_OF_METRIC)
    except ValueError:
        return -1


_amount_of_text = lru_cache(maxsize=4096)(_amount_of)
"""Remembered for texts alone: a number would be found under one that equals it, as 1 and True do."""
