"""`GardenletConfiguration`: one gardenlet with its Seed. Fields without effect here are accepted; `backend` is ours.

Source: Gardener's `pkg/apis/config/gardenlet/v1alpha1` and its validation.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.failure_injection import SHOOT_STEPS, FailureRequest, parse_step_failures
from gardenbus.common.api.configuration.reader import ACCEPTED, OTHERS, Field, Table
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.signing_requests import SHORTEST_SECONDS
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.errors import SettingsInvalid

KIND = "GardenletConfiguration"
API_GROUP = "gardenlet.config.gardener.cloud"
Quantity = str | int | float
BACKUP_BUCKET, BACKUP_ENTRY, BASTION, DNS_RECORD = "BackupBucket", "BackupEntry", "Bastion", "DNSRecord"
EXTENSION_KINDS = frozenset({
    BACKUP_BUCKET, BACKUP_ENTRY, BASTION, "ContainerRuntime", "ControlPlane", DNS_RECORD, "Extension",
    "Infrastructure", "Network", "OperatingSystemConfig", "Worker",
})  # fmt: skip
"""Kinds of extension objects that a gardenlet writes."""


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The gardenlet's heartbeat."""

    resync_seconds: int = 2
    """Time between two renewals, as in Gardener."""

    miss_threshold: int = 10
    """Renewals that may be missed before the gardenlet is unhealthy and a standby takes over."""

    @property
    def grace_period(self) -> timedelta:
        """Time that a Lease is respected after its last renewal."""
        return timedelta(seconds=self.resync_seconds * self.miss_threshold)


class ConditionThreshold(NamedTuple):
    """Time for which a condition that was True is Progressing, when its check fails, before it is False."""

    type: str = ""
    duration: timedelta = timedelta()


class ShootSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Reconciliation of shoots."""

    concurrent_syncs: int = 20
    """Shoots that are reconciled at once."""

    sync_period: timedelta = timedelta(hours=1)
    """Time after which a shoot without changes is reconciled again."""

    retry_duration: timedelta = timedelta(hours=12)
    """Time that a failing operation is retried."""

    progress_report_period: timedelta = timedelta(0)
    """Least time between two reports of progress; zero reports each step at once."""

    condition_thresholds: Sequence[ConditionThreshold] = ()
    """By condition: how long it is Progressing before it is False."""

    respect_ignore: bool = False
    """`shoot.gardener.cloud/ignore` counts outside the garden namespace, too (respectSyncPeriodOverwrite)."""


class ManagedSeedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Deployment of gardenlets into shoots that become seeds; the defaults are Gardener's."""

    concurrent_syncs: int = 20
    """ManagedSeeds that are reconciled at once."""

    sync_period: timedelta = timedelta(hours=1)
    """Time after which a ManagedSeed without changes is reconciled again."""

    wait_sync_period: timedelta = timedelta(seconds=15)
    """Longest time after which one with an unmet dependency is reconciled again."""

    sync_jitter_period: timedelta = timedelta(minutes=5)
    """Time within which changes reach the gardenlets, with `jitter_updates`."""

    jitter_updates: bool = False
    """Changes are spread over that time, so that not all gardenlets restart at once."""


class BackupEntrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Backups of shoots that were deleted."""

    deletion_grace_period_hours: int = 0
    """Time that a BackupEntry lives on after its shoot was deleted."""

    deletion_grace_period_shoot_purposes: Sequence[str] = ()
    """Purposes of the shoots for which it does; empty: all. The other ones' are deleted at once."""


class CertificateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's client certificate, and when it is renewed (`kubeconfigValidity`); the defaults are Gardener's."""

    validity: timedelta | None = None
    """Lifetime that is requested; without it, or beyond what the signer gives at most, it is the signer's."""

    renewed_from_percent: int = 70
    """Share of its life after which a certificate may be renewed (autoRotationJitterPercentageMin)."""

    renewed_until_percent: int = 90
    """Share of its life after which it is renewed at the latest (autoRotationJitterPercentageMax)."""


DEFAULT_CERTIFICATE = CertificateSettings()


class ShootBackendSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The backend that shoots are built on."""

    type: str = "local"
    """`local` (a simulation), `processes`, `exec`, `nats`, or one that is installed (an entry point)."""

    step_seconds: float = 0.2
    """Duration of a step of the simulation."""

    step_seconds_by_name: Mapping[str, float] = {}
    """Durations of single steps."""

    failures: tuple[FailureRequest, ...] = ()
    """Failures that are injected into every shoot on this seed, by the simulation."""

    binaries: str = ""
    """Directory of the programs of `processes`, or of one directory a version; else $KUBEBUILDER_ASSETS, or PATH."""

    backups: str = ""
    """Place of the backup buckets of `processes`, one for all seeds: a directory, or s3://BUCKET/folder."""

    keep_running: bool = True
    """Control planes of `processes` go on running when the gardenlet stops."""

    options: Document = {}
    """Settings of `exec`, or of a backend that is not the gardenlet's own, as it reads them."""


class ExtensionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The seed's Kubernetes API, which ManagedResources and extensions live on (`backend.extensions`)."""

    kubeconfig: str = ""
    """Kubeconfig of the seed's Kubernetes API, relative to the seed's directory; without it the seed has none."""

    resource_manager: str = "own"
    """`own`: the gardenlet acts on ManagedResources; `external`: a gardener-resource-manager that runs elsewhere."""

    kinds: Sequence[str] = ()
    """Kinds of extension objects that are written for shoots, since extensions act on them there."""

    address: str = ""
    """IP address or host name of the API servers of shoots, which their DNSRecords lead to."""

    @property
    def runs_resource_manager(self) -> bool:
        """True if the gardenlet acts on ManagedResources."""
        return bool(self.kubeconfig) and self.resource_manager == "own"


class GardenletConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The fields with an effect."""

    seed_name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Document = {}
    capacity: Mapping[str, Quantity] = {}
    reserved: Mapping[str, Quantity] = {}
    lease: LeaseSettings = LeaseSettings()
    seed_sync_period: timedelta = timedelta(minutes=1)
    seed_care_period: timedelta = timedelta(seconds=30)
    seed_condition_thresholds: Sequence[ConditionThreshold] = ()
    shoot: ShootSettings = ShootSettings()
    shoot_care_period: timedelta = timedelta(minutes=1)
    managed_seed: ManagedSeedSettings = ManagedSeedSettings()
    backup_entry: BackupEntrySettings = BackupEntrySettings()
    certificate: CertificateSettings = DEFAULT_CERTIFICATE
    backend: ShootBackendSettings = ShootBackendSettings()
    extensions: ExtensionSettings = ExtensionSettings()
    document: Document = {}
    """The whole configuration as written, for gardenlets that inherit from it."""


def parse_configurations(
    text: str | bytes, *, source: str = "configuration", backends: Collection[str] = (), is_lenient: bool = False
) -> tuple[GardenletConfiguration, ...]:
    """Read a file of one or several GardenletConfigurations (YAML or JSON).

    `backends`: those that are installed where the gardenlet runs; empty where that is not known. `is_lenient`: fields
    that do not exist are passed over, as in what was stored before they were rejected. Raises SettingsInvalid with
    `source`, path and reason of everything that is wrong, and when there is none in it.
    """
    documents = reader.load_all(text, source=source)
    readings = [reader.read(document, _TABLE) for document in documents]
    problems = [
        problem
        for each in readings
        for problem in (
            *_faults(each, is_lenient=is_lenient),
            *_reservation_problems(each.values),
            *_backend_problems(each.values, backends),
            *_extension_problems(each.values),
            *_backup_problems(each.values),
            *_rotation_problems(each.values),
        )
    ]
    if not documents:
        problems.append(f"there is no {KIND} in it")
    if problems:
        raise SettingsInvalid(tuple(f"{source}: {problem}" for problem in problems))
    return tuple(
        _configuration(each.values, cast("Document", document))
        for document, each in zip(documents, readings, strict=True)
    )


def _faults(reading: reader.Reading, *, is_lenient: bool) -> list[str]:
    return [each for each in reading.problems if not (is_lenient and reader.is_unknown_field(each))]


_GROUPS: Mapping[str, type[msgspec.Struct]] = {
    "lease": LeaseSettings,
    "shoot": ShootSettings,
    "managed_seed": ManagedSeedSettings,
    "backup_entry": BackupEntrySettings,
    "certificate": CertificateSettings,
    "backend": ShootBackendSettings,
    "extensions": ExtensionSettings,
}


def _configuration(values: dict[str, Any], document: Document) -> GardenletConfiguration:
    groups: dict[str, Any] = {name: make(**values.get(name, {})) for name, make in _GROUPS.items()}
    return GardenletConfiguration(**{**values, **groups}, document=document)


def _reservation_problems(values: Mapping[str, Any]) -> list[str]:
    """Reserved resources must be part of the capacity."""
    capacity: Mapping[str, Quantity] = values.get("capacity", {})
    reserved: Mapping[str, Quantity] = values.get("reserved", {})
    problems: list[str] = []
    for name, quantity in reserved.items():
        if name not in capacity:
            problems.append(f"resources.reserved.{name}: reserved without capacity")
        elif parse_quantity(quantity) > parse_quantity(capacity[name]):
            problems.append(f"resources.reserved.{name}: reserved must be lower or equal to capacity")
    return problems


def _backend_problems(values: Mapping[str, Any], backends: Collection[str]) -> list[str]:
    """The backend must be installed."""
    name = values.get("backend", {}).get("type", ShootBackendSettings().type)
    if not backends or name in backends:
        return []
    return [f"backend.type: must be one of {', '.join(sorted(backends))}, is {name!r}"]


def _extension_problems(values: Mapping[str, Any]) -> list[str]:
    """Settings of extensions need the seed's Kubernetes API."""
    settings = ExtensionSettings(**values.get("extensions", {}))
    problems: list[str] = []
    if "extensions" in values and not settings.kubeconfig:
        problems.append("backend.extensions.kubeconfig: must name the kubeconfig of the seed's Kubernetes API")
    if BACKUP_ENTRY in settings.kinds and BACKUP_BUCKET not in settings.kinds:
        problems.append(f"backend.extensions.kinds: {BACKUP_ENTRY} needs {BACKUP_BUCKET}, which an entry is in")
    if DNS_RECORD in settings.kinds and not settings.address:
        problems.append(
            f"backend.extensions.address: must be the address of the API servers of shoots, as {DNS_RECORD} is in kinds"
        )
    return problems


def _backup_problems(values: Mapping[str, Any]) -> list[str]:
    """Purposes choose who has a grace period, so there must be one."""
    settings = BackupEntrySettings(**values.get("backup_entry", {}))
    if settings.deletion_grace_period_hours or not settings.deletion_grace_period_shoot_purposes:
        return []
    field = "controllers.backupEntry.deletionGracePeriodShootPurposes"
    return [f"{field}: deletionGracePeriodHours must be above 0 where purposes are stated"]


def _rotation_problems(values: Mapping[str, Any]) -> list[str]:
    """A certificate must have time to be renewed."""
    settings = CertificateSettings(**values.get("certificate", {}))
    if settings.renewed_from_percent < settings.renewed_until_percent:
        return []
    field, until = "gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin", "…PercentageMax"
    return [f"{field}: {settings.renewed_from_percent} must be less than {until}, {settings.renewed_until_percent}"]


def _percentage(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100:  # noqa: PLR2004 - percent
        raise ValueError(f"must be a whole number from 1 to 100, is {value!r}")
    return value


def _api_version(value: Any) -> None:
    if not str(value).startswith(f"{API_GROUP}/"):
        raise ValueError(f"must be {API_GROUP}/v1alpha1, is {value!r}")


def _seed_spec(value: Any) -> Document:
    if not isinstance(value, dict) or not value:
        raise ValueError(f"must be a mapping, is {value!r}" if value else "must be given")
    return cast("Document", value)


def _quantity(value: Any) -> Quantity:
    if not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004  one error for whatever is no quantity
    if parse_quantity(value) < 0:
        raise ValueError("must not be negative")
    return value


def _failures(value: Any) -> tuple[FailureRequest, ...]:
    """Read a text or a list of texts such as `infrastructure=ERR_INFRA_QUOTA_EXCEEDED,times=2`."""
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"must be texts <step>=<error code>[,times=<number>], is {value!r}")
    requests = tuple(request for text in texts for request in parse_step_failures(text))
    unknown = sorted({request.step for request in requests} - SHOOT_STEPS)
    if unknown:
        raise ValueError(f"no such steps: {', '.join(unknown)}; known are {', '.join(sorted(SHOOT_STEPS))}")
    return requests


def _extension_kinds(value: Any) -> tuple[str, ...]:
    """Read a list of kinds of extension objects."""
    kinds = cast("list[Any]", value) if isinstance(value, list) else [value]
    if unknown := sorted({str(kind) for kind in kinds} - EXTENSION_KINDS):
        raise ValueError(f"no such kinds: {', '.join(unknown)}; there are {', '.join(sorted(EXTENSION_KINDS))}")
    return tuple(dict.fromkeys(kinds))


def _purposes(value: Any) -> tuple[str, ...]:
    """Read a list of purposes of shoots."""
    purposes = cast("list[Any]", value) if isinstance(value, list) else [value]
    if unknown := sorted({str(each) for each in purposes} - set(_PURPOSES)):
        raise ValueError(f"no such purposes: {', '.join(unknown)}; there are {', '.join(_PURPOSES)}")
    return tuple(dict.fromkeys(purposes))


def _options(value: Any) -> Document:
    if not isinstance(value, dict):
        raise ValueError(f"must be a mapping, is {value!r}")  # noqa: TRY004  one error for whatever is no mapping
    return cast("Document", value)


_PURPOSES = ("development", "evaluation", "infrastructure", "production", "testing")
_OPEN: Table = {OTHERS: ACCEPTED}


def _without_effect(*names: str) -> Table:
    """Fields that Gardener's gardenlet has and that nothing here reads, with whatever is below them."""
    return dict.fromkeys(names, ACCEPTED)


def _thresholds(attribute: str) -> reader.Entries:
    table: Table = {
        "type": Field("type", reader.text, is_required=True),
        "duration": Field("duration", reader.duration, is_required=True),
    }
    return reader.Entries(attribute, table, ConditionThreshold, "thresholds of conditions", may_be_empty=True)


_OTHER_CONTROLLERS = _without_effect(
    "backupBucket",
    "bastion",
    "controllerInstallation",
    "controllerInstallationCare",
    "controllerInstallationRequired",
    "gardenlet",
    "networkPolicy",
    "seedAPIServerNetworkPolicy",
    "selfHostedShootExposure",
    "shootState",
    "shootStateSync",
    "shootStatus",
    "tokenRequestor",
    "tokenRequestorServiceAccount",
    "tokenRequestorWorkloadIdentity",
    "vpaEvictionRequirements",
)
_CLIENT_CONNECTION = _without_effect("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")

_TABLE: Table = {
    **_without_effect(
        "seedClientConnection",
        "shootClientConnection",
        "leaderElection",
        "logLevel",
        "logFormat",
        "kubernetesLogLevel",
        "server",
        "debugging",
        "featureGates",
        "logging",
        "sni",
        "etcdConfig",
        "exposureClassHandlers",
        "monitoring",
        "nodeToleration",
    ),
    "kind": Field(parse=reader.exactly(KIND), is_required=True),
    "apiVersion": Field(parse=_api_version, is_required=True),
    "seedConfig": {
        **_without_effect("apiVersion", "kind", "status"),
        "metadata": {
            **_OPEN,
            "name": Field("seed_name", reader.label, is_required=True),
            "labels": Field("labels", reader.texts),
            "annotations": Field("annotations", reader.texts),
        },
        "spec": Field("spec", _seed_spec, is_required=True),
    },
    "resources": {
        "capacity": {OTHERS: Field("capacity.", _quantity)},
        "reserved": {OTHERS: Field("reserved.", _quantity)},
    },
    "controllers": {
        **_OTHER_CONTROLLERS,
        "seed": {
            **_without_effect("concurrentSyncs"),
            "leaseResyncSeconds": Field("lease.resync_seconds", reader.count),
            "leaseResyncMissThreshold": Field("lease.miss_threshold", reader.count),
            "syncPeriod": Field("seed_sync_period", reader.positive_duration),
        },
        "seedCare": {
            **_without_effect("concurrentSyncs"),
            "conditionThresholds": _thresholds("seed_condition_thresholds"),
            "syncPeriod": Field("seed_care_period", reader.positive_duration),
        },
        "shoot": {
            **_without_effect("dnsEntryTTLSeconds", "reconcileInMaintenanceOnly"),
            "concurrentSyncs": Field("shoot.concurrent_syncs", reader.count),
            "syncPeriod": Field("shoot.sync_period", reader.positive_duration),
            "retryDuration": Field("shoot.retry_duration", reader.positive_duration),
            "progressReportPeriod": Field("shoot.progress_report_period", reader.duration),
            "respectSyncPeriodOverwrite": Field("shoot.respect_ignore", reader.flag),
        },
        "shootCare": {
            **_without_effect(
                "concurrentSyncs",
                "managedResourceProgressingThreshold",
                "staleExtensionHealthChecks",
                "webhookRemediatorEnabled",
            ),
            "conditionThresholds": _thresholds("shoot.condition_thresholds"),
            "syncPeriod": Field("shoot_care_period", reader.positive_duration),
        },
        "backupEntry": {
            **_without_effect("concurrentSyncs"),
            "deletionGracePeriodHours": Field("backup_entry.deletion_grace_period_hours", reader.count_or_zero),
            "deletionGracePeriodShootPurposes": Field("backup_entry.deletion_grace_period_shoot_purposes", _purposes),
        },
        "managedSeed": {
            "concurrentSyncs": Field("managed_seed.concurrent_syncs", reader.count),
            "syncPeriod": Field("managed_seed.sync_period", reader.positive_duration),
            "waitSyncPeriod": Field("managed_seed.wait_sync_period", reader.positive_duration),
            "syncJitterPeriod": Field("managed_seed.sync_jitter_period", reader.duration),
            "jitterUpdates": Field("managed_seed.jitter_updates", reader.flag),
        },
    },
    "gardenClientConnection": {
        **_CLIENT_CONNECTION,
        **_without_effect(
            "gardenClusterAddress", "gardenClusterCACert", "bootstrapKubeconfig", "kubeconfigSecret", "bootstrapToken"
        ),
        "kubeconfigValidity": {
            "validity": Field("certificate.validity", reader.duration_from(timedelta(seconds=SHORTEST_SECONDS))),
            "autoRotationJitterPercentageMin": Field("certificate.renewed_from_percent", _percentage),
            "autoRotationJitterPercentageMax": Field("certificate.renewed_until_percent", _percentage),
        },
    },
    "backend": {
        "type": Field("backend.type", reader.label),
        "stepSeconds": Field("backend.step_seconds", reader.seconds),
        "stepSecondsByName": {name: Field("backend.step_seconds_by_name.", reader.seconds) for name in SHOOT_STEPS},
        "failures": Field("backend.failures", _failures),
        "binaries": Field("backend.binaries", reader.text),
        "backups": Field("backend.backups", reader.text),
        "keepRunning": Field("backend.keep_running", reader.flag),
        "options": Field("backend.options", _options),
        "extensions": {
            "kubeconfig": Field("extensions.kubeconfig", reader.name),
            "resourceManager": Field("extensions.resource_manager", reader.one_of("own", "external")),
            "kinds": Field("extensions.kinds", _extension_kinds),
            "address": Field("extensions.address", reader.text),
        },
    },
}
