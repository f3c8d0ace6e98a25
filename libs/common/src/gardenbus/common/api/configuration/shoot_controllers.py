"""Sections of `ControllerManagerConfiguration` for Shoots and Bastions, with Gardener's defaults.

Source: `pkg/apis/config/controllermanager/v1alpha1/defaults.go` of Gardener.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Field, Table, ignored


class ShootHibernationConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.shootHibernation`."""

    concurrent_syncs: int = 5
    """Shoots that are reconciled at once."""

    trigger_deadline: timedelta = timedelta(hours=2)
    """Time after which a start or end that was missed is left out."""


class ShootMaintenanceConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.shootMaintenance`."""

    concurrent_syncs: int = 5
    """Shoots that are reconciled at once."""


class ShootQuotaConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.shootQuota`."""

    concurrent_syncs: int = 5
    """Shoots that are reconciled at once."""

    sync_period: timedelta = timedelta(minutes=60)
    """Time between two checks whether a shoot has expired."""


class ShootReferenceConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.shootReference`."""

    concurrent_syncs: int = 5
    """Shoots, and objects of each kind that they use, that are reconciled at once."""


class ShootRetryConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.shootRetry`."""

    concurrent_syncs: int = 5
    """Shoots that are reconciled at once."""

    retry_period: timedelta = timedelta(minutes=10)
    """Time from a failure for exceeded rate limits until it is tried again."""

    retry_jitter_period: timedelta = timedelta(minutes=5)
    """The most that is added to it."""


class BastionConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.bastion`."""

    concurrent_syncs: int = 5
    """Bastions that are reconciled at once."""

    max_lifetime: timedelta = timedelta(hours=24)
    """The longest life of a Bastion, whatever its heartbeats."""


class PlantConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.plant`, as Gardener had it until v1.53."""

    concurrent_syncs: int = 25
    """Plants that are checked at once: one whose API server does not respond takes ten seconds."""

    sync_period: timedelta = timedelta(seconds=30)
    """Time between two checks of a Plant."""


SECTION_TYPES: Mapping[str, Callable[..., Any]] = {
    "shoot_hibernation": ShootHibernationConfiguration,
    "shoot_maintenance": ShootMaintenanceConfiguration,
    "shoot_quota": ShootQuotaConfiguration,
    "shoot_reference": ShootReferenceConfiguration,
    "shoot_retry": ShootRetryConfiguration,
    "bastion": BastionConfiguration,
    "plant": PlantConfiguration,
}
"""The sections, by attribute."""


def _syncs(section: str) -> dict[str, Field]:
    return {"concurrentSyncs": Field(f"{section}.concurrent_syncs", reader.count)}


TABLE: Table = {
    "shootHibernation": {
        **_syncs("shoot_hibernation"),
        "triggerDeadlineDuration": Field("shoot_hibernation.trigger_deadline", reader.positive_duration),
    },
    "shootMaintenance": {
        **_syncs("shoot_maintenance"),
        **ignored("enableShootControlPlaneRestarter", "enableShootCoreAddonRestarter", parse=reader.flag),
    },
    "shootQuota": {
        **_syncs("shoot_quota"),
        "syncPeriod": Field("shoot_quota.sync_period", reader.positive_duration),
    },
    "shootReference": {
        **_syncs("shoot_reference"),
        **ignored("protectAuditPolicyConfigMaps", parse=reader.flag),
    },
    "shootRetry": {
        **_syncs("shoot_retry"),
        "retryPeriod": Field("shoot_retry.retry_period", reader.positive_duration),
        "retryJitterPeriod": Field("shoot_retry.retry_jitter_period", reader.duration),
    },
    "bastion": {
        **_syncs("bastion"),
        "maxLifetime": Field("bastion.max_lifetime", reader.positive_duration),
    },
    "plant": {
        **_syncs("plant"),
        "syncPeriod": Field("plant.sync_period", reader.positive_duration),
    },
}
"""The sections' fields."""
