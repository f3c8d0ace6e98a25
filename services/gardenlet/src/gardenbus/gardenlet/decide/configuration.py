"""The configuration of one gardenlet: Gardener's `GardenletConfiguration`, strict in what is read of it.

Fields that have no effect here are accepted. `backend` is ours.
Source: Gardener's `pkg/apis/config/gardenlet/v1alpha1` and its validation.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import msgspec
import yaml

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.gardenlet.decide.failures import FailureRequest, parse_failure_requests
from gardenbus.gardenlet.decide.fields import Section, duration, flag, positive_count, positive_duration, seconds, texts
from gardenbus.gardenlet.decide.flows import FLOWS

KIND = "GardenletConfiguration"
API_GROUP = "gardenlet.config.gardener.cloud"
Quantity = str | int | float

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_BACKENDS = ("local",)
_STEPS = frozenset(name for flow in FLOWS.values() for name in flow.steps)


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the heartbeat is kept."""

    resync_seconds: int = 2
    """Between two renewals, as in Gardener."""

    miss_threshold: int = 10
    """Renewals that may be missed before the gardenlet is unhealthy and a standby takes over."""

    @property
    def patience(self) -> timedelta:
        """How long a Lease is respected after its last renewal."""
        return timedelta(seconds=self.resync_seconds * self.miss_threshold)


class ShootSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How shoots are carried out."""

    concurrent_syncs: int = 20
    """Shoots in work at a time."""

    sync_period: timedelta = timedelta(hours=1)
    """After which a settled shoot is reconciled again."""

    retry_duration: timedelta = timedelta(hours=12)
    """How long a failing operation is tried again."""

    progress_report_period: timedelta = timedelta(0)
    """Least time between two reports of progress; zero reports each step at once."""

    respect_ignore: bool = False
    """Whether `shoot.gardener.cloud/ignore` counts outside the garden namespace (respectSyncPeriodOverwrite)."""


class ManagedSeedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How gardenlets are deployed into shoots that shall be seeds; the defaults are Gardener's."""

    concurrent_syncs: int = 20
    """ManagedSeeds in work at a time."""

    sync_period: timedelta = timedelta(hours=1)
    """After which a ManagedSeed that is settled is looked at again."""

    wait_sync_period: timedelta = timedelta(seconds=15)
    """After which one that waits for something is looked at again, at the latest."""

    sync_jitter_period: timedelta = timedelta(minutes=5)
    """Within which changes reach the gardenlets, where `jitter_updates` says so."""

    jitter_updates: bool = False
    """Whether changes are spread over that time, so that not all gardenlets start anew at once."""


class BackendSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the shoots are built on."""

    type: str = "local"
    step_seconds: float = 0.2
    """How long a step takes."""

    step_seconds_by_name: Mapping[str, float] = {}
    """How long single steps take."""

    failures: tuple[FailureRequest, ...] = ()
    """Failures of every shoot on this seed."""


class GardenletConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """What of the file has an effect."""

    seed_name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Document = {}
    capacity: Mapping[str, Quantity] = {}
    reserved: Mapping[str, Quantity] = {}
    lease: LeaseSettings = LeaseSettings()
    seed_sync_period: timedelta = timedelta(minutes=1)
    seed_care_period: timedelta = timedelta(seconds=30)
    shoot: ShootSettings = ShootSettings()
    shoot_care_period: timedelta = timedelta(minutes=1)
    managed_seed: ManagedSeedSettings = ManagedSeedSettings()
    certificate_validity: timedelta = timedelta(days=30)
    """How long a client certificate is good; it is renewed at 80 % of that (kubeconfigValidity.validity)."""

    backend: BackendSettings = BackendSettings()
    document: Document = {}
    """All of it as written, for those that inherit from it."""


def parse_configurations(text: str | bytes, *, source: str = "configuration") -> tuple[GardenletConfiguration, ...]:
    """Read a file of one or several GardenletConfigurations (YAML or JSON).

    Raises SettingsInvalid with `source`, path and reason of everything that is wrong, and when there is none in it.
    """
    try:
        loaded = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsInvalid((f"{source}: is no YAML: {' '.join(str(error).split())[:300]}",)) from error
    problems: list[str] = []
    found = [_configuration(Section(each, "", problems)) for each in loaded]
    if not found:
        problems.append(f"there is no {KIND} in it")
    if problems:
        raise SettingsInvalid(tuple(f"{source}: {problem}" for problem in problems))
    return tuple(found)


def _configuration(root: Section) -> GardenletConfiguration:
    if root.values.get("kind") != KIND:
        root.refuse("kind", f"must be {KIND}, is {root.values.get('kind')!r}")
    if not str(root.values.get("apiVersion")).startswith(f"{API_GROUP}/"):
        root.refuse("apiVersion", f"must be {API_GROUP}/v1alpha1, is {root.values.get('apiVersion')!r}")
    seed = root.section("seedConfig")
    metadata = seed.section("metadata")
    spec = seed.section("spec")
    if not spec.values:
        spec.refuse("", "must be given")
    controllers = root.section("controllers")
    capacity, reserved = _resources(root.section("resources"))
    lease, shoot = controllers.section("seed"), controllers.section("shoot")
    return GardenletConfiguration(
        seed_name=_seed_name(metadata),
        labels=metadata.read("labels", texts, {}),
        annotations=metadata.read("annotations", texts, {}),
        spec=dict(spec.values),
        capacity=capacity,
        reserved=reserved,
        lease=LeaseSettings(
            resync_seconds=lease.read("leaseResyncSeconds", positive_count, 2),
            miss_threshold=lease.read("leaseResyncMissThreshold", positive_count, 10),
        ),
        seed_sync_period=lease.read("syncPeriod", positive_duration, timedelta(minutes=1)),
        seed_care_period=controllers.section("seedCare").read("syncPeriod", positive_duration, timedelta(seconds=30)),
        shoot=ShootSettings(
            concurrent_syncs=shoot.read("concurrentSyncs", positive_count, 20),
            sync_period=shoot.read("syncPeriod", positive_duration, timedelta(hours=1)),
            retry_duration=shoot.read("retryDuration", positive_duration, timedelta(hours=12)),
            progress_report_period=shoot.read("progressReportPeriod", duration, timedelta(0)),
            respect_ignore=shoot.read("respectSyncPeriodOverwrite", flag, default=False),
        ),
        shoot_care_period=controllers.section("shootCare").read("syncPeriod", positive_duration, timedelta(minutes=1)),
        managed_seed=_managed_seed(controllers.section("managedSeed")),
        certificate_validity=root.section("gardenClientConnection")
        .section("kubeconfigValidity")
        .read("validity", positive_duration, timedelta(days=30)),
        backend=_backend(root.section("backend")),
        document=dict(root.values),
    )


def _managed_seed(section: Section) -> ManagedSeedSettings:
    default = ManagedSeedSettings()
    return ManagedSeedSettings(
        concurrent_syncs=section.read("concurrentSyncs", positive_count, default.concurrent_syncs),
        sync_period=section.read("syncPeriod", positive_duration, default.sync_period),
        wait_sync_period=section.read("waitSyncPeriod", positive_duration, default.wait_sync_period),
        sync_jitter_period=section.read("syncJitterPeriod", duration, default.sync_jitter_period),
        jitter_updates=section.read("jitterUpdates", flag, default.jitter_updates),
    )


def _seed_name(metadata: Section) -> str:
    name = metadata.values.get("name")
    if not isinstance(name, str) or _LABEL.fullmatch(name) is None:
        metadata.refuse("name", f"must be a lower-case RFC 1123 label, is {name!r}")
        return ""
    return name


def _resources(resources: Section) -> tuple[Mapping[str, Quantity], Mapping[str, Quantity]]:
    """Capacity and reserved as written; what is reserved must be there."""
    capacity, reserved = _quantities(resources, "capacity"), _quantities(resources, "reserved")
    for name, quantity in reserved.items():
        if name not in capacity:
            resources.refuse(f"reserved.{name}", "reserved without capacity")
        elif parse_quantity(quantity) > parse_quantity(capacity[name]):
            resources.refuse(f"reserved.{name}", "reserved must be lower or equal to capacity")
    return capacity, reserved


def _quantities(resources: Section, name: str) -> Mapping[str, Quantity]:
    section = resources.section(name)
    found: dict[str, Quantity] = {}
    for resource, value in section.values.items():
        try:
            if not isinstance(value, str | int | float):
                raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004, TRY301 - as parse_quantity says it
            if parse_quantity(value) < 0:
                raise ValueError("must not be negative")  # noqa: TRY301
            found[resource] = value
        except ValueError as error:
            section.refuse(resource, str(error))
    return found


def _backend(section: Section) -> BackendSettings:
    section.refuse_others("type", "stepSeconds", "stepSecondsByName", "failures")
    kind = section.values.get("type", "local")
    if kind not in _BACKENDS:
        section.refuse("type", f"must be one of {', '.join(_BACKENDS)}, is {kind!r}")
    by_name = section.section("stepSecondsByName")
    by_name.refuse_others(*_STEPS)
    return BackendSettings(
        type="local",
        step_seconds=section.read("stepSeconds", seconds, 0.2),
        step_seconds_by_name={name: by_name.read(name, seconds, 0.0) for name in by_name.values},
        failures=section.read("failures", _failures, ()),
    )


def _failures(value: Any) -> tuple[FailureRequest, ...]:
    """Read a text or a list of texts such as `infrastructure=ERR_INFRA_QUOTA_EXCEEDED,times=2`."""
    texts_given = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts_given):
        raise ValueError(f"must be texts <step>=<error code>[,times=<number>], is {value!r}")
    requests = tuple(request for text in texts_given for request in parse_failure_requests(text))
    unknown = sorted({request.step for request in requests} - _STEPS)
    if unknown:
        raise ValueError(f"no such steps: {', '.join(unknown)}; known are {', '.join(sorted(_STEPS))}")
    return requests
