"""What is to be done for a shoot now.

Where it is, by its spec.seedName and status.seedName (Gardener's responsible seed):

    | spec   | status      | this seed                                                                        |
    |--------|-------------|----------------------------------------------------------------------------------|
    | me     | me, or none | runs it: `here`                                                                  |
    | other  | me          | prepares its migration: `leaving`                                                |
    | me     | other       | waits for that: `coming`; what is kept of an earlier stay has to go              |

Which operation it is, the first row that applies (Gardener's `pkg/api/core/v1beta1/helper/common.go`):

    | the migration has begun here                                        | Migrate, to its end        |
    | leaving, and to be deleted                                          | Delete: it is moved no more|
    | leaving                                                             | Migrate                    |
    | last: Migrate, Succeeded or Aborted                                 | Restore                    |
    | to be deleted                                                       | Delete (a Restore in work is ended first) |
    | last: none, a refused scheduling, or Create that has not succeeded  | Create                     |
    | last: Restore that has not succeeded                                | Restore                    |
    | last: Migrate that has not succeeded, and nothing is kept of it     | Migrate                    |
    | otherwise (a migration that was only waited for was taken back)     | Reconcile                  |

Whether now, the first rule that applies (Gardener's `gardenlet/controller/shoot/shoot/helper/infos.go`):

    | the seed is under emergency stop                             | no                            |
    | Failed at this generation and version, not deleted since     | no                            |
    | ignored by annotation                                        | no                            |
    | failed before, and its backoff is not over                   | then                          |
    | the seed is not fit to work                                  | Error, again in 15 s          |
    | Migrate, and the destination is not ready for it             | Error, again when it is       |
    | Migrate, and whether it is is not known yet                  | when it is (soon Error)       |
    | Restore, and what the source saved is not here yet           | when it is (soon Error)       |
    | not a plain Reconcile, generation outdated, or not Succeeded | yes                           |
    | nothing is kept of it                                        | yes                           |
    | settled                                                      | after the sync period         |
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, cast

from gardenbus.common.resources.conditions import TRUE, get_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE
from gardenbus.common.resources.migrating import READY_FOR_MIGRATION
from gardenbus.gardenlet.decide.flows import SAVE_STATE, OperationType
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


class Waiting(NamedTuple):
    """The operation cannot begin before others have done their part: `problem` says what is missing.

    `is_refused`: they have spoken, and against it; else their word is on its way, if all is well.
    """

    operation: OperationType
    problem: str
    is_refused: bool = False


class LetGo(NamedTuple):
    """What is kept is of an earlier stay: another seed ran the shoot since. It is taken down, and forgotten."""


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


Action = Claim | Begin | SeedUnfit | Waiting | LetGo | NothingBuilt | RepeatReport | Later
Residence = Literal["here", "leaving", "coming", "elsewhere"]
_ROLES = {"here": "run", "leaving": "migrate-away", "coming": "wait"}


def residence(told: ShootTold, seed_name: str) -> Residence:
    """Where a shoot is for a seed, by the first table of the module; what contradicts its role is nobody's."""
    wanted, actual = told.spec_seed, told.status_seed
    where: Residence = "elsewhere"
    if wanted == seed_name:
        where = "here" if actual in {"", seed_name} else "coming"
    elif wanted and actual == seed_name:
        where = "leaving"
    return where if _ROLES.get(where) == told.role else "elsewhere"


def operation_type(
    *,
    is_deleting: bool,
    last_operation: Document,
    is_leaving: bool = False,
    record: ShootRecord | None = None,
) -> OperationType:
    """Which operation it is, by the second table of the module."""
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


def is_still_wanted(operation: OperationType, told: ShootTold, seed_name: str) -> bool:
    """Whether an operation that has begun should go on, by what is told of the shoot now."""
    where = residence(told, seed_name)
    match operation:
        case "Migrate" | "Delete":
            return where in {"here", "leaving"}
        case "Restore":
            return where == "here"
        case _:
            return where == "here" and not told.is_deleting


class Snapshot(NamedTuple):
    """What a decision is made on, besides the shoot and what is kept of it.

    `version` is the gardenlet's own: what failed under another one is tried again. `has_state`: what the source of a
    migration saved is here.
    """

    seed_name: str
    fitness: SeedFitness
    now: datetime
    sync_period: timedelta
    respect_ignore: bool = False
    version: str = ""
    has_state: bool = False


def next_action(told: ShootTold, record: ShootRecord | None, snapshot: Snapshot) -> Action:
    """Decide by the tables of the module. `record` is what is kept of this very shoot (same uid), if anything."""
    where = residence(told, snapshot.seed_name)
    action = _at_the_border(told, record, where)
    if action is None:
        action = _at_the_ends(told, record)
    if action is not None:
        return action
    if snapshot.fitness.is_stopped:
        return Later("emergency stop")
    operation = operation_type(
        is_deleting=told.is_deleting,
        last_operation=_last_operation(told, record),
        is_leaving=where == "leaving",
        record=record,
    )
    if _has_failed(told, record, operation, snapshot.version):
        return Later("failed")
    if _is_ignored(told, snapshot.respect_ignore):
        return Later("ignored")
    return _when(told, record, operation, snapshot)


def _at_the_border(told: ShootTold, record: ShootRecord | None, where: Residence) -> Action | None:
    """What is to be done when the shoot is not this seed's, or was another's in between."""
    if where == "elsewhere":
        return Later("not responsible")
    if where == "coming":
        return LetGo() if record is not None else Later("waiting for the source seed")
    return LetGo() if record is not None and _is_of_an_earlier_stay(told, record) else None


def _at_the_ends(told: ShootTold, record: ShootRecord | None) -> Action | None:
    """What is to be done before the first operation, and after the last."""
    if told.is_deleting and not told.has_finalizer:
        return Later("no finalizer")
    if record is not None and record.has_left:
        return RepeatReport()
    if record is not None and record.is_torn_down:
        return RepeatReport() if told.is_deleting else Later("torn down")
    if told.status_seed:
        return None
    return NothingBuilt() if told.is_deleting and record is None else Claim()


def _last_operation(told: ShootTold, record: ShootRecord | None) -> Document:
    return record.last_operation if record else told.last_operation


def _is_of_an_earlier_stay(told: ShootTold, record: ShootRecord) -> bool:
    """Whether the shoot was handed over to this seed after all that is kept of it was done.

    What was handed over was observed at an earlier generation than whatever is done here afterwards.
    """
    last = told.last_operation
    if last.get("type") != "Migrate" or last.get("state") not in {"Succeeded", "Aborted"}:
        return False
    if record.run is None:  # waits for the state, or was never begun
        return bool(record.resources)
    return record.run.generation <= (told.status.get("observedGeneration") or 0)


def _when(told: ShootTold, record: ShootRecord | None, operation: OperationType, snapshot: Snapshot) -> Action:
    last, now = _last_operation(told, record), snapshot.now
    run = record.run if record else None
    is_same_run = run is not None and run.operation == operation and run.generation == told.generation
    if is_same_run and record is not None and record.retry_at is not None and now < record.retry_at:
        return Later("backoff", (record.retry_at - now).total_seconds())
    is_current = last.get("state") == "Succeeded" and _observed(told, record) == told.generation
    if record is not None and is_current and operation == "Reconcile" and not record.is_half_gone:
        remaining = (_instant(last.get("lastUpdateTime"), now) + snapshot.sync_period - now).total_seconds()
        if remaining > 0:
            return Later("settled", remaining)
    if snapshot.fitness.problem is not None:
        return SeedUnfit(operation, snapshot.fitness.problem)
    if record is not None and record.is_leaving and run is not None:
        return Begin(_taken_up(run, told.generation), resumed=True)
    if is_same_run and run is not None and last.get("state") in {"Processing", "Error"}:
        return Begin(run, resumed=True)
    missing = _missing(told, record, operation, snapshot)
    if missing is not None:
        return missing
    number = run.number + 1 if run is not None else 1
    return Begin(Run(operation=operation, generation=told.generation, number=number), resumed=False)


def _taken_up(run: Run, generation: int) -> Run:
    """A migration in work at a generation that may be a newer one: what is saved has to carry it."""
    if run.generation == generation:
        return run
    return Run(
        operation=run.operation,
        generation=generation,
        number=run.number,
        done=tuple(step for step in run.done if step != SAVE_STATE),
    )


def _missing(
    told: ShootTold, record: ShootRecord | None, operation: OperationType, snapshot: Snapshot
) -> Waiting | None:
    """What a migration or restoration has to wait for."""
    if operation == "Migrate" and residence(told, snapshot.seed_name) == "leaving":
        constraints = cast("list[Document]", told.status.get("constraints") or [])
        constraint = get_condition(constraints, READY_FOR_MIGRATION)
        if constraint is None:
            problem = f"it is not known yet whether seed {told.spec_seed} is ready for the control plane."
            return Waiting(operation, problem)
        if constraint.get("status") != TRUE:
            problem = f"seed {told.spec_seed} is not ready for the control plane: {constraint.get('message') or ''}"
            return Waiting(operation, problem, is_refused=True)
    is_empty = record is None or not (record.resources or record.state)
    was_handed_over = operation == "Migrate" and is_empty and state_generation(told, record) > 0
    if (operation == "Restore" or was_handed_over) and not snapshot.has_state and (record is None or not record.state):
        return Waiting(operation, "the ShootState that its last seed saved is not there yet.")
    return None


def _has_failed(told: ShootTold, record: ShootRecord | None, operation: OperationType, version: str) -> bool:
    """Whether this very operation failed for good, as things stand."""
    last = _last_operation(told, record)
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


def state_generation(told: ShootTold, record: ShootRecord | None) -> int:
    """The generation from which on a ShootState holds what this shoot was handed over with; 0: any will do."""
    last = told.last_operation
    if last.get("type") == "Migrate" and last.get("state") == "Succeeded":
        return told.status.get("observedGeneration") or 0
    if record is None or (last.get("type") == "Migrate" and last.get("state") == "Aborted"):
        return 0
    return record.state_of_generation


def adopted(told: ShootTold) -> ShootRecord:
    """A new record of a shoot, with what its status already says of it (a refused scheduling says nothing)."""
    status = {name: value for name, value in told.status.items() if name in _KEPT_STATUS}
    if told.last_operation.get("state") == "Pending":
        del status["lastOperation"]
    if constraints := cast("list[Document] | None", status.get("constraints")):  # not the gardenlet's own to repeat
        status["constraints"] = [each for each in constraints if each.get("type") != READY_FOR_MIGRATION]
    return ShootRecord(
        namespace=told.namespace,
        name=told.name,
        uid=told.uid,
        has_workers=told.has_workers,
        status=status,
        state_of_generation=state_generation(told, None),
    )
