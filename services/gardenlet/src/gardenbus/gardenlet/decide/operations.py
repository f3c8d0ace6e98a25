"""What is to be done for a shoot now.

Which operation it is:

    | deleting | last operation                | operation |
    |----------|-------------------------------|-----------|
    | yes      | any                           | Delete    |
    | no       | none, or a refused scheduling | Create    |
    | no       | Create, not Succeeded         | Create    |
    | no       | any other                     | Reconcile |

Whether now, the first rule that applies (Gardener's `gardenlet/controller/shoot/shoot/helper/infos.go`):

    | the seed is under emergency stop                            | no                            |
    | Failed at this generation and version, not deleted since    | no                            |
    | ignored by annotation                                       | no                            |
    | failed before, and its backoff is not over                  | then                          |
    | the seed is not fit to work                                 | Error, again in 15 s          |
    | not a plain Reconcile, generation outdated, or not Succeeded | yes                          |
    | nothing is kept of it                                       | yes                           |
    | settled                                                     | after the sync period         |
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE
from gardenbus.gardenlet.decide.flows import OperationType
from gardenbus.gardenlet.decide.record import Run, ShootRecord

FINALIZER = "gardener"
IGNORE_ANNOTATION = "shoot.gardener.cloud/ignore"
UNFIT_SEED_RETRY = timedelta(seconds=15)
REPEAT_AFTER = timedelta(seconds=30)
"""When a report that has had no visible effect is made again."""


class ShootTold(NamedTuple):
    """A shoot as its binding tells of it. `status_seed` is who carries it out ("": nobody yet)."""

    namespace: str
    name: str
    uid: str
    version: int
    role: str
    generation: int
    spec_seed: str
    status_seed: str
    is_deleting: bool
    has_finalizer: bool
    has_workers: bool
    annotations: dict[str, str]
    last_operation: Document
    status: Document

    @classmethod
    def of(cls, manifest: Document, *, uid: str, version: int, role: str) -> "ShootTold":
        """Read the manifest of a binding; uid, version and role come from its headers."""
        metadata, spec, status = section(manifest, "metadata"), section(manifest, "spec"), section(manifest, "status")
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=uid or metadata.get("uid") or "",
            version=version,
            role=role,
            generation=metadata.get("generation") or 0,
            spec_seed=spec.get("seedName") or "",
            status_seed=status.get("seedName") or "",
            is_deleting=bool(metadata.get("deletionTimestamp")),
            has_finalizer=FINALIZER in (metadata.get("finalizers") or ()),
            has_workers=bool(section(spec, "provider").get("workers")),
            annotations=section(metadata, "annotations"),
            last_operation=section(status, "lastOperation"),
            status=status,
        )


class SeedFitness(NamedTuple):
    """Whether the seed can be worked on: `problem` says why not; an emergency stop holds everything."""

    problem: str | None = None
    is_stopped: bool = False


class Claim(NamedTuple):
    """Say that this seed takes the shoot, and wait until it is confirmed."""


class Begin(NamedTuple):
    """Run the flow: `run` goes on where it stood when `resumed`."""

    run: Run
    resumed: bool


class SeedUnfit(NamedTuple):
    """The flow cannot run on the seed as it is."""

    operation: OperationType
    problem: str


class NothingBuilt(NamedTuple):
    """The shoot is to be deleted and was never begun: there is nothing to take down."""


class RepeatReport(NamedTuple):
    """All is done, and it has had no effect yet: say it again."""


class Later(NamedTuple):
    """Nothing now: look again after `seconds`, or (None) when something is told."""

    reason: str
    seconds: float | None = None


Action = Claim | Begin | SeedUnfit | NothingBuilt | RepeatReport | Later


def operation_type(*, is_deleting: bool, last_operation: Document) -> OperationType:
    """Which operation it is, by the first table of the module."""
    if is_deleting:
        return "Delete"
    last_type, state = last_operation.get("type"), last_operation.get("state")
    if last_type is None or (last_type == "Create" and state != "Succeeded"):
        return "Create"
    return "Reconcile"


def next_action(  # noqa: PLR0913 - the whole snapshot
    told: ShootTold,
    record: ShootRecord | None,
    *,
    seed_name: str,
    fitness: SeedFitness,
    now: datetime,
    sync_period: timedelta,
    respect_ignore: bool = False,
    version: str = "",
) -> Action:
    """Decide by the tables of the module. `record` is what is kept of this very shoot (same uid), if anything.

    `version` is the gardenlet's own: what failed under another one is tried again.
    """
    if told.role != "run" or told.spec_seed != seed_name or told.status_seed not in {"", seed_name}:
        return Later("not responsible")
    if told.is_deleting and not told.has_finalizer:
        return Later("no finalizer")
    if record is not None and record.is_torn_down:
        return RepeatReport() if told.is_deleting else Later("torn down")
    if told.is_deleting and record is None and not told.status_seed:
        return NothingBuilt()
    if not told.status_seed:
        return Claim()
    if fitness.is_stopped:
        return Later("emergency stop")
    if _has_failed(told, record, version):
        return Later("failed")
    if _is_ignored(told, respect_ignore):
        return Later("ignored")
    return _when(told, record, fitness=fitness, now=now, sync_period=sync_period)


def _when(
    told: ShootTold,
    record: ShootRecord | None,
    *,
    fitness: SeedFitness,
    now: datetime,
    sync_period: timedelta,
) -> Action:
    last = record.last_operation if record else told.last_operation
    run = record.run if record else None
    operation = operation_type(is_deleting=told.is_deleting, last_operation=last)
    is_same_run = run is not None and run.operation == operation and run.generation == told.generation
    if is_same_run and record is not None and record.retry_at is not None and now < record.retry_at:
        return Later("backoff", (record.retry_at - now).total_seconds())
    is_current = last.get("state") == "Succeeded" and _observed(told, record) == told.generation
    if record is not None and is_current and operation == "Reconcile":
        remaining = (_instant(last.get("lastUpdateTime"), now) + sync_period - now).total_seconds()
        if remaining > 0:
            return Later("settled", remaining)
    if fitness.problem is not None:
        return SeedUnfit(operation, fitness.problem)
    if is_same_run and run is not None and last.get("state") in {"Processing", "Error"}:
        return Begin(run, resumed=True)
    number = run.number + 1 if run is not None else 1
    return Begin(Run(operation=operation, generation=told.generation, number=number), resumed=False)


def _has_failed(told: ShootTold, record: ShootRecord | None, version: str) -> bool:
    """Whether this very operation failed for good, as things stand."""
    last = record.last_operation if record else told.last_operation
    operation = operation_type(is_deleting=told.is_deleting, last_operation=last)
    status = record.status if record else told.status
    failed_under = section(status, "gardener").get("version") or version
    is_current = _observed(told, record) == told.generation and failed_under == version
    return last.get("state") == "Failed" and last.get("type") == operation and is_current


def _is_ignored(told: ShootTold, respect_ignore: bool) -> bool:  # noqa: FBT001
    asked = told.annotations.get(IGNORE_ANNOTATION) == "true"
    return asked and (respect_ignore or told.namespace == GARDEN_NAMESPACE)


def _observed(told: ShootTold, record: ShootRecord | None) -> int:
    status = record.status if record else told.status
    observed: int = status.get("observedGeneration") or 0
    return observed


def _instant(text: object, default: datetime) -> datetime:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return default


_KEPT_STATUS = frozenset(
    {
        "conditions",
        "constraints",
        "gardener",
        "lastErrors",
        "lastOperation",
        "observedGeneration",
        "retryCycleStartTime",
        "seedName",
        "technicalID",
        "uid",
    }
)


def adopted(told: ShootTold) -> ShootRecord:
    """A new record of a shoot, with what its status already says of it (a refused scheduling says nothing)."""
    status = {name: value for name, value in told.status.items() if name in _KEPT_STATUS}
    if told.last_operation.get("state") == "Pending":
        del status["lastOperation"]
    return ShootRecord(
        namespace=told.namespace, name=told.name, uid=told.uid, has_workers=told.has_workers, status=status
    )
