"""Columns of each kind for `get`. Pure."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.cells import Column, Context, age_of, condition_reason, condition_status, field, labels_of, names_in
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.placements.columns import FLEET_COLUMNS
from gardenbus.cli.rows import seed_row, set_row, shoot_row
from gardenbus.cli.supervisor.picture import readiness, used_of
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.kinds import KINDS

STYLES: Mapping[str, str] = {
    "ready": "green",
    "healthy": "green",
    "Succeeded": "green",
    "Processing": "cyan",
    "progressing": "cyan",
    "Pending": "yellow",
    "unhealthy": "red",
    "Error": "red",
    "Failed": "red",
    "Warning": "yellow",
    "Bound": "green",
    "Scheduled": "cyan",
    "Unscheduled": "yellow",
    "Deleting": "yellow",
}
"""How cells look on a terminal, by their last word."""


def objects_table(  # noqa: PLR0913 - one parameter an option of `get`
    kind: str,
    documents: Sequence[Document],
    context: Context,
    *,
    wide: bool,
    labels: bool = False,
    headers: bool = True,
    prefix: str = "",
) -> Table:
    """Objects of one kind as a table, a row an object; what is long comes last (`output.show_rows` counts on it)."""
    columns = shown_columns(kind, wide=wide, labels=labels)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, show_header=headers)
    for column in columns:
        table.add_column(column.title, no_wrap=True)
    for document in documents:
        cells = row_of(columns, document, context, prefix)
        table.add_row(*(Text(cell, style=STYLES.get(cell.rpartition(" ")[2], "")) for cell in cells))
    return table


def shown_columns(kind: str, *, wide: bool, labels: bool = False) -> Sequence[Column]:
    """The columns that are shown; `labels` adds one for them at the end."""
    columns = [column for column in columns_of(kind) if wide or not column.wide]
    has_labels = any(column.cell is labels_of for column in columns)
    return [*columns, Column("LABELS", labels_of)] if labels and not has_labels else columns


def row_of(columns: Sequence[Column], document: Document, context: Context, prefix: str = "") -> list[str]:
    """The cells of one object, each in one line; `prefix` stands before its name (where kinds are mixed)."""
    cells = [" ".join(column.cell(document, context).split()) for column in columns]
    return [f"{prefix}{cell}" if column.title == "NAME" else cell for column, cell in zip(columns, cells, strict=True)]


def columns_of(kind: str) -> Sequence[Column]:
    """The columns of a kind (lower-case singular)."""
    name = Column("NAME", _name)
    age = Column("AGE", _age)
    specific = _COLUMNS.get(kind) or FLEET_COLUMNS.get(kind, ())
    if kind == "event":
        return specific
    scope = () if kind in _CLUSTER_SCOPED else (Column("NAMESPACE", _namespace),)
    narrow = [column for column in specific if not column.wide]
    return (*scope, name, *narrow, age, *(column for column in specific if column.wide))


def _metadata(document: Document) -> Document:
    return as_mapping(document.get("metadata"))


def _name(document: Document, _context: Context) -> str:
    return str(_metadata(document).get("name") or "")


def _namespace(document: Document, _context: Context) -> str:
    return str(_metadata(document).get("namespace") or "")


def _age(document: Document, context: Context) -> str:
    return age_of(_metadata(document).get("creationTimestamp"), context.now)


def _operation(document: Document, _context: Context) -> str:
    operation = as_mapping(as_mapping(document.get("status")).get("lastOperation"))
    return f"{operation.get('type') or ''} {operation.get('state') or ''}".strip() or "<none>"


def _progress(document: Document, _context: Context) -> str:
    return f"{shoot_row(document).progress}%"


def _healthy(document: Document, _context: Context) -> str:
    labels = as_mapping(_metadata(document).get("labels"))
    return str(labels.get("shoot.gardener.cloud/status") or "")


def _generation(document: Document, _context: Context) -> str:
    row = shoot_row(document)
    return f"{row.observed_generation}/{row.generation}"


def _seed_shoots(document: Document, context: Context) -> str:
    row = seed_row(document)
    return used_of(context.usage.get(row.name, 0), row.allocatable)


def _pending_replica(document: Document, _context: Context) -> str:
    return set_row(document).pending


def _about(document: Document, _context: Context) -> str:
    about = as_mapping(document.get("involvedObject"))
    namespace = about.get("namespace")
    return f"{about.get('kind')} {f'{namespace}/' if namespace else ''}{about.get('name')}"


def _distances(document: Document, _context: Context) -> str:
    return ",".join(as_mapping(document.get("data")))


def _seed(document: Document, _context: Context) -> str:
    return shoot_row(document).seed or "<none>"


def _description(document: Document, _context: Context) -> str:
    return shoot_row(document).description


def _readiness(document: Document, _context: Context) -> str:
    return readiness(seed_row(document)).plain


def _renewed(document: Document, context: Context) -> str:
    return age_of(as_mapping(document.get("spec")).get("renewTime"), context.now)


def _last_seen(document: Document, context: Context) -> str:
    return age_of(document.get("lastTimestamp"), context.now)


def _profile(document: Document, context: Context) -> str:
    return field("spec", "cloudProfile", "name")(document, context) or field("spec", "cloudProfileName")(
        document, context
    )


_COLUMNS: Mapping[str, Sequence[Column]] = {
    "shoot": (
        Column("PROVIDER", field("spec", "provider", "type")),
        Column("REGION", field("spec", "region")),
        Column("SEED", _seed),
        Column("OPERATION", _operation),
        Column("PROGRESS", _progress),
        Column("STATUS", _healthy),
        Column("PURPOSE", field("spec", "purpose"), wide=True),
        Column("PROFILE", _profile, wide=True),
        Column("GENERATION", _generation, wide=True),
        Column("DESCRIPTION", _description, wide=True),
    ),
    "seed": (
        Column("PROVIDER", field("spec", "provider", "type")),
        Column("REGION", field("spec", "provider", "region")),
        Column("GARDENLET", _readiness),
        Column("SHOOTS", _seed_shoots),
        Column("OPERATION", _operation),
        Column("ZONES", field("spec", "provider", "zones"), wide=True),
        Column("TAINTS", names_in("spec", "taints", key="key"), wide=True),
        Column("RESTRICTIONS", names_in("spec", "accessRestrictions"), wide=True),
        Column("BACKUP", condition_status("BackupBucketsReady"), wide=True),
        Column("LABELS", labels_of, wide=True),
    ),
    "project": (
        Column("NAMESPACE", field("spec", "namespace")),
        Column("OWNER", field("spec", "owner", "name"), wide=True),
    ),
    "cloudprofile": (
        Column("TYPE", field("spec", "type")),
        Column("REGIONS", names_in("spec", "regions"), wide=True),
    ),
    "exposureclass": (Column("HANDLER", field("handler")),),
    "namespace": (),
    "configmap": (Column("KEYS", _distances, wide=True),),
    "managedseed": (
        Column("SHOOT", field("spec", "shoot", "name")),
        Column("REGISTERED", condition_reason("SeedRegistered")),
    ),
    "managedseedset": (
        Column("REPLICAS", field("spec", "replicas")),
        Column("READY", field("status", "readyReplicas")),
        Column("UPDATED", field("status", "updatedReplicas")),
        Column("PENDING", _pending_replica),
    ),
    "seedautoscaler": (
        Column("SET", field("spec", "scaleTargetRef", "name")),
        Column("MIN", field("spec", "minReplicas")),
        Column("MAX", field("spec", "maxReplicas")),
        Column("REPLICAS", field("status", "currentReplicas")),
        Column("DESIRED", field("status", "desiredReplicas")),
        Column("WAITING", field("status", "pendingShoots")),
        Column("LIMITED", condition_reason("ScalingLimited"), wide=True),
    ),
    "lease": (
        Column("HOLDER", field("spec", "holderIdentity")),
        Column("RENEWED", _renewed),
    ),
    "event": (
        Column("LAST SEEN", _last_seen),
        Column("TYPE", field("type")),
        Column("REASON", field("reason")),
        Column("OBJECT", _about),
        Column("COUNT", field("count")),
        Column("FROM", field("reportingComponent"), wide=True),
        Column("MESSAGE", field("message")),
    ),
}
_CLUSTER_SCOPED = frozenset(
    {
        "seed",
        "project",
        "cloudprofile",
        "exposureclass",
        "namespace",
        *(kind for kind in FLEET_COLUMNS if KINDS[kind].namespaced is False),
    }
)
