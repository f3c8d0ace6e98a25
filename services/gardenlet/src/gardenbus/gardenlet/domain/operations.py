"""Next action for a shoot.

Residence of a shoot by its spec.seedName and status.seedName (Gardener's responsible seed):

    | spec   | status      | this seed                                                                        |
    |--------|-------------|----------------------------------------------------------------------------------|
    | me     | me, or none | runs it: `here`                                                                  |
    | other  | me          | prepares its migration: `leaving`                                                |
    | me     | other       | waits for that: `coming`; a record of an earlier stay is dropped                 |

Operation type, by the first row that applies (Gardener's `pkg/api/core/v1beta1/helper/common.go`):

    | the migration has begun here                                        | Migrate, to its end        |
    | leaving, and deleting                                               | Delete: it is not moved    |
    | leaving                                                             | Migrate                    |
    | last: Migrate, Succeeded or Aborted                                 | Restore                    |
    | deleting                                                            | Delete (a Restore in flight ends first) |
    | last: none, a Pending one of the scheduler, or unfinished Create    | Create                     |
    | last: unfinished Restore                                            | Restore                    |
    | last: unfinished Migrate, without a record                          | Migrate                    |
    | otherwise (also a migration that was cancelled while it waited)     | Reconcile                  |

Start of the operation, by the first row that applies (Gardener's `gardenlet/controller/shoot/shoot/helper/infos.go`):

    | the seed is under emergency stop                             | no                            |
    | Failed at this generation and version, not deleting since    | no                            |
    | ignored by annotation                                        | no                            |
    | failed before, and its backoff is not over                   | then                          |
    | the seed is not ready                                        | Error, again in 15 s          |
    | Migrate, and the destination is not ready for it             | Error, again when it is       |
    | Migrate, and the destination's readiness is unknown          | when it is (soon Error)       |
    | Restore, and the source's state is not here yet              | when it is (soon Error)       |
    | not a plain Reconcile, generation outdated, or not Succeeded | yes                           |
    | no record                                                    | yes                           |
    | reconciled                                                   | after the sync period         |
"""

from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, cast

from gardenbus.common.api.conditions import TRUE, get_condition
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.migration_feasibility import READY_FOR_MIGRATION
from gardenbus.common.api.garden.shoot_operations import is_force_deletion
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.gardenlet.domain.flows import SAVE_STATE, OperationType
from gardenbus.gardenlet.domain.shoot_record import Run, ShootName, ShootRecord, manifest_text

_decode = json_decoder(dict[str, Any])

FINALIZER = "gardener"
IGNORE_ANNOTATION = "shoot.gardener.cloud/ignore"
SEED_NOT_READY_RETRY = timedelta(seconds=15)
REPEAT_AFTER = timedelta(seconds=30)
"""Interval after which a report without effect is repeated."""


class ObservedShoot(NamedTuple):
    """A shoot as its binding describes it. `status_seed` is the seed that runs it ("": none yet).

    `manifest`: as records keep it.
    """

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
    manifest: str = ""

    @property
    def full_name(self) -> ShootName:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def key(self) -> ObjectKey:
        """Key of the Shoot."""
        return ObjectKey("shoot", self.namespace, self.name)

    @property
    def is_deletion_forced(self) -> bool:
        """True if its deletion leaves out what fails."""
        return self.is_deleting and is_force_deletion(self.annotations)

    @property
    def spec(self) -> Document:
        """The Shoot's whole spec; decoded at each use."""
        return section(_decode(self.manifest), "spec") if self.manifest else {}

    @classmethod
    def of(cls, manifest: Document, *, uid: str, version: int, role: str) -> "ObservedShoot":
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
            manifest=manifest_text(manifest),
        )


class SeedReadiness(NamedTuple):
    """Readiness of the seed for operations: `problem` says why not; an emergency stop suspends everything."""

    problem: str | None = None
    is_stopped: bool = False


class Claim(NamedTuple):
    """Claim the shoot for this seed, and wait for the confirmation."""


class RunOperation(NamedTuple):
    """Run the flow; `run` continues an earlier one when `resumed`."""

    run: Run
    resumed: bool


class AwaitDependency(NamedTuple):
    """The operation needs others first: `problem` says what is missing.

    `is_rejected`: their response was negative; otherwise it is in progress.
    """

    operation: OperationType
    problem: str
    is_rejected: bool = False


class AwaitExtensions(NamedTuple):
    """The operation needs extensions that are not ready on this seed: `problem` names them."""

    operation: OperationType
    problem: str


class DropStaleRecord(NamedTuple):
    """The record is of an earlier stay: another seed ran the shoot since. Tear it down and forget it."""


class SeedNotReady(NamedTuple):
    """The flow cannot run on the seed as it is."""

    operation: OperationType
    problem: str


class NothingBuilt(NamedTuple):
    """The shoot is deleting and was never created: there is nothing to tear down."""


class RepeatReport(NamedTuple):
    """All is done without effect so far: repeat the report."""


class NothingToDo(NamedTuple):
    """Nothing now: requeue after `seconds`, or (None) not before a change."""

    reason: str
    seconds: float | None = None


ShootAction = (
    Claim
    | RunOperation
    | SeedNotReady
    | AwaitDependency
    | AwaitExtensions
    | DropStaleRecord
    | NothingBuilt
    | RepeatReport
    | NothingToDo
)
Residence = Literal["here", "leaving", "coming", "elsewhere"]
_ROLES = {"here": "run", "leaving": "migrate-away", "coming": "wait"}


def residence(observed: ObservedShoot, seed_name: str) -> Residence:
    """Residence of a shoot, by the first table of the module; `elsewhere` if its role contradicts it."""
    wanted, actual = observed.spec_seed, observed.status_seed
    where: Residence = "elsewhere"
    if wanted == seed_name:
        where = "here" if actual in {"", seed_name} else "coming"
    elif wanted and actual == seed_name:
        where = "leaving"
    return where if _ROLES.get(where) == observed.role else "elsewhere"


def operation_type(
    *, is_deleting: bool, last_operation: Document, is_leaving: bool = False, record: ShootRecord | None = None
) -> OperationType:
    """Operation type, by the second table of the module."""
    last_type, state = last_operation.get("type"), last_operation.get("state")
    if record is not None and record.is_leaving:
        return "Migrate"
    if is_leaving:
        return "Delete" if is_deleting else "Migrate"
    if last_type == "Migrate" and state in {"Succeeded", "Aborted"}:
        return "Restore"
    if is_deleting and not (last_type == "Restore" and state == "Processing"):
        return "Delete"
    if last_type is None or (last_type == "Create" and state != "Succeeded"):
        return "Create"
    if last_type == "Restore" and state != "Succeeded":
        return "Restore"
    return "Migrate" if last_type == "Migrate" and record is None else "Reconcile"


def is_still_wanted(run: Run, observed: ObservedShoot, seed_name: str) -> bool:
    """True if a running operation should continue for the shoot as observed now."""
    where = residence(observed, seed_name)
    match run.operation:
        case "Delete" if observed.is_deletion_forced and not run.is_forced:
            return False
        case "Migrate" | "Delete":
            return where in {"here", "leaving"}
        case "Restore":
            return where == "here"
        case _:
            return where == "here" and not observed.is_deleting


class ShootSnapshot(NamedTuple):
    """Input of a decision, besides the shoot and its record.

    `version` is the gardenlet's own: a failure under another version is retried. `has_state`: the state saved by the
    source of a migration is here.
    """

    seed_name: str
    readiness: SeedReadiness
    now: datetime
    sync_period: timedelta
    respect_ignore: bool = False
    version: str = ""
    has_state: bool = False
    missing_extensions: str = ""
    """Extensions that the shoot needs and that are not ready on this seed."""


def next_action(observed: ObservedShoot, record: ShootRecord | None, snapshot: ShootSnapshot) -> ShootAction:
    """Decide by the tables of the module. `record` is the record of this very shoot (same uid), if any."""
    where = residence(observed, snapshot.seed_name)
    action = _at_the_border(observed, record, where)
    if action is None:
        action = _at_the_ends(observed, record)
    if action is not None:
        return action
    if snapshot.readiness.is_stopped:
        return NothingToDo("emergency stop")
    operation = operation_type(
        is_deleting=observed.is_deleting,
        last_operation=_last_operation(observed, record),
        is_leaving=where == "leaving",
        record=record,
    )
    if _has_failed(observed, record, operation, snapshot.version):
        return NothingToDo("failed")
    if _is_ignored(observed, snapshot.respect_ignore):
        return NothingToDo("ignored")
    return _when(observed, record, operation, snapshot)


def _at_the_border(observed: ObservedShoot, record: ShootRecord | None, where: Residence) -> ShootAction | None:
    """Action for a shoot that is not this seed's, or was another's in between."""
    if where == "elsewhere":
        return NothingToDo("not responsible")
    if where == "coming":
        return DropStaleRecord() if record is not None else NothingToDo("waiting for the source seed")
    return DropStaleRecord() if record is not None and _is_of_an_earlier_stay(observed, record) else None


def _at_the_ends(observed: ObservedShoot, record: ShootRecord | None) -> ShootAction | None:
    """Action before the first operation and after the last."""
    if observed.is_deleting and not observed.has_finalizer:
        return NothingToDo("no finalizer")
    if record is not None and record.has_left:
        return RepeatReport()
    if record is not None and record.is_torn_down:
        return RepeatReport() if observed.is_deleting else NothingToDo("torn down")
    if observed.status_seed:
        return None
    return NothingBuilt() if observed.is_deleting and record is None else Claim()


def _last_operation(observed: ObservedShoot, record: ShootRecord | None) -> Document:
    return record.last_operation if record else observed.last_operation


def _is_of_an_earlier_stay(observed: ObservedShoot, record: ShootRecord) -> bool:
    """True if the shoot was handed over to this seed after everything in the record.

    A handover is observed at an earlier generation than anything that is done here afterwards.
    """
    last = observed.last_operation
    if last.get("type") != "Migrate" or last.get("state") not in {"Succeeded", "Aborted"}:
        return False
    if record.run is None:  # waits for the state, or was never begun
        return bool(record.resources)
    return record.run.generation <= (observed.status.get("observedGeneration") or 0)


def _when(
    observed: ObservedShoot, record: ShootRecord | None, operation: OperationType, snapshot: ShootSnapshot
) -> ShootAction:
    last, now = _last_operation(observed, record), snapshot.now
    run = record.run if record else None
    is_same_run = run is not None and run.operation == operation and run.generation == observed.generation
    if is_same_run and record is not None and record.retry_at is not None and now < record.retry_at:
        return NothingToDo("backoff", (record.retry_at - now).total_seconds())
    is_current = last.get("state") == "Succeeded" and _observed_generation(observed, record) == observed.generation
    if record is not None and is_current and operation == "Reconcile" and not record.is_half_gone:
        remaining = ((parse_timestamp(last.get("lastUpdateTime")) or now) + snapshot.sync_period - now).total_seconds()
        if remaining > 0:
            return NothingToDo("settled", remaining)
    if snapshot.readiness.problem is not None:
        return SeedNotReady(operation, snapshot.readiness.problem)
    if record is not None and record.is_leaving and run is not None:
        return RunOperation(_resumed(run, observed.generation), resumed=True)
    if is_same_run and run is not None and last.get("state") in {"Processing", "Error"}:
        return RunOperation(run, resumed=True)
    missing = _missing(observed, record, operation, snapshot)
    if missing is not None:
        return missing
    if snapshot.missing_extensions and operation in {"Create", "Reconcile", "Restore"}:
        return AwaitExtensions(operation, snapshot.missing_extensions)
    number = run.number + 1 if run is not None else 1
    is_forced = operation == "Delete" and observed.is_deletion_forced
    new = Run(operation=operation, generation=observed.generation, number=number, is_forced=is_forced)
    return RunOperation(new, resumed=False)


def _resumed(run: Run, generation: int) -> Run:
    """A running migration at a possibly newer generation, which its saved state has to carry."""
    if run.generation == generation:
        return run
    return Run(
        operation=run.operation,
        generation=generation,
        number=run.number,
        done=tuple(step for step in run.done if step != SAVE_STATE),
    )


def _missing(
    observed: ObservedShoot, record: ShootRecord | None, operation: OperationType, snapshot: ShootSnapshot
) -> AwaitDependency | None:
    """Unmet dependency of a migration or restoration."""
    if operation == "Migrate" and residence(observed, snapshot.seed_name) == "leaving":
        constraints = cast("list[Document]", observed.status.get("constraints") or [])
        constraint = get_condition(constraints, READY_FOR_MIGRATION)
        if constraint is None:
            problem = f"it is not known yet whether seed {observed.spec_seed} is ready for the control plane."
            return AwaitDependency(operation, problem)
        if constraint.get("status") != TRUE:
            problem = f"seed {observed.spec_seed} is not ready for the control plane: {constraint.get('message') or ''}"
            return AwaitDependency(operation, problem, is_rejected=True)
    is_empty = record is None or not (record.resources or record.state)
    was_handed_over = operation == "Migrate" and is_empty and state_generation(observed, record) > 0
    if (operation == "Restore" or was_handed_over) and not snapshot.has_state and (record is None or not record.state):
        return AwaitDependency(operation, "the ShootState that its last seed saved does not exist yet.")
    return None


def _has_failed(observed: ObservedShoot, record: ShootRecord | None, operation: OperationType, version: str) -> bool:
    """True if this very operation has failed permanently."""
    last = _last_operation(observed, record)
    status = record.status if record else observed.status
    failed_under = section(status, "gardener").get("version") or version
    is_current = _observed_generation(observed, record) == observed.generation and failed_under == version
    return last.get("state") == "Failed" and last.get("type") == operation and is_current


def _is_ignored(observed: ObservedShoot, respect_ignore: bool) -> bool:  # noqa: FBT001
    is_requested = observed.annotations.get(IGNORE_ANNOTATION) == "true"
    return is_requested and (respect_ignore or observed.namespace == GARDEN_NAMESPACE)


def _observed_generation(observed: ObservedShoot, record: ShootRecord | None) -> int:
    status = record.status if record else observed.status
    observed_generation: int = status.get("observedGeneration") or 0
    return observed_generation


_KEPT_STATUS = frozenset(
    {
        "conditions",
        "constraints",
        "gardener",
        "hibernated",
        "lastErrors",
        "lastOperation",
        "observedGeneration",
        "retryCycleStartTime",
        "seedName",
        "technicalID",
        "uid",
    }
)


def state_generation(observed: ObservedShoot, record: ShootRecord | None) -> int:
    """Least generation of a ShootState that this shoot can be restored from; 0: any."""
    last = observed.last_operation
    if last.get("type") == "Migrate" and last.get("state") == "Succeeded":
        return observed.status.get("observedGeneration") or 0
    if record is None or (last.get("type") == "Migrate" and last.get("state") == "Aborted"):
        return 0
    return record.state_of_generation


def adopted(observed: ObservedShoot) -> ShootRecord:
    """New record of a shoot, with its observed status (but not that of a failed scheduling)."""
    status = {name: value for name, value in observed.status.items() if name in _KEPT_STATUS}
    if observed.last_operation.get("state") == "Pending":
        del status["lastOperation"]
    if constraints := cast("list[Document] | None", status.get("constraints")):  # not the gardenlet's own to repeat
        status["constraints"] = [each for each in constraints if each.get("type") != READY_FOR_MIGRATION]
    return ShootRecord(
        namespace=observed.namespace,
        name=observed.name,
        uid=observed.uid,
        has_workers=observed.has_workers,
        status=status,
        state_of_generation=state_generation(observed, None),
    )
