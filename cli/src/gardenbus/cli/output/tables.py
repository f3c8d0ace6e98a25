"""Columns of each kind for `get`. Pure."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import (
    TableColumn,
    TableContext,
    age,
    condition_reason,
    condition_status,
    entries_at,
    field,
    labels_of,
    names_in,
    shown,
)
from gardenbus.cli.output.fleet_columns import FLEET_COLUMNS
from gardenbus.cli.output.landscape_tables import readiness, used_of
from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import STATUS_LABEL, Document
from gardenbus.common.api.garden.extensions import INSTALLATION_CONDITIONS
from gardenbus.common.api.garden.rows import seed_row, set_row
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.identity.signing_requests import NOT_AFTER
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.terminal_text import escaped_cell

NAMESPACE = TableColumn("NAMESPACE", field("metadata", "namespace"))
NAME = TableColumn("NAME", field("metadata", "name"))
AGE = TableColumn("AGE", age("metadata", "creationTimestamp"))

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
"""Styles of cells on a terminal, by their last word."""


def objects_table(  # noqa: PLR0913 - one parameter an option of `get`
    kind: str,
    documents: Sequence[Document],
    context: TableContext,
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


def shown_columns(kind: str, *, wide: bool, labels: bool = False) -> Sequence[TableColumn]:
    """The columns that are shown; `labels` adds one for them at the end."""
    columns = [column for column in columns_of(kind) if wide or not column.wide]
    has_labels = any(column.cell is labels_of for column in columns)
    return [*columns, TableColumn("LABELS", labels_of)] if labels and not has_labels else columns


def row_of(columns: Sequence[TableColumn], document: Document, context: TableContext, prefix: str = "") -> list[str]:
    """The cells of one object, each in one line; `prefix` stands before its name (where kinds are mixed)."""
    cells = [escaped_cell(" ".join(column.cell(document, context).split())) for column in columns]
    return [f"{prefix}{cell}" if column.title == "NAME" else cell for column, cell in zip(columns, cells, strict=True)]


def columns_of(kind: str) -> Sequence[TableColumn]:
    """The columns of a kind (lower-case singular)."""
    specific = _COLUMNS.get(kind) or FLEET_COLUMNS.get(kind, ())
    if kind == "event":
        return specific
    scope = () if kind in _CLUSTER_SCOPED else (NAMESPACE,)
    narrow = [column for column in specific if not column.wide]
    return (*scope, NAME, *narrow, AGE, *(column for column in specific if column.wide))


def _resources(registration: Document) -> str:
    return ",".join(f"{each.get('kind')}/{each.get('type')}" for each in entries_at(registration, "spec", "resources"))


def _operation(document: Document, _context: TableContext) -> str:
    operation = as_mapping(as_mapping(document.get("status")).get("lastOperation"))
    return f"{operation.get('type') or ''} {operation.get('state') or ''}".strip() or "<none>"


def _shoot_operation(document: Document, context: TableContext) -> str:
    if not _is_undecided(document):
        return _operation(document, context)
    return f"waits for {as_mapping(document.get('spec')).get('schedulerName') or DEFAULT_SCHEDULER}"


def _shoot_status(document: Document, context: TableContext) -> str:
    """The health in its label; a shoot without seed is pending, whatever scheduler it waits for."""
    state = as_mapping(as_mapping(document.get("status")).get("lastOperation")).get("state")
    if _is_undecided(document) or (state == "Pending" and not as_mapping(document.get("spec")).get("seedName")):
        return "pending"
    return field("metadata", "labels", STATUS_LABEL)(document, context)


def _is_undecided(shoot: Document) -> bool:
    """True for a shoot without seed on which no scheduler has decided, nor anybody else."""
    status = as_mapping(shoot.get("status"))
    return not as_mapping(shoot.get("spec")).get("seedName") and not status.get("lastOperation")


def _generation(document: Document, _context: TableContext) -> str:
    row = summarize_shoot(document)
    return f"{row.observed_generation}/{row.generation}"


def _seed_shoots(document: Document, context: TableContext) -> str:
    row = seed_row(document)
    return used_of(None if context.usage is None else context.usage.get(row.name, 0), row.capacity)


def _about(document: Document, _context: TableContext) -> str:
    about = as_mapping(document.get("involvedObject"))
    namespace = about.get("namespace")
    return f"{about.get('kind')} {f'{namespace}/' if namespace else ''}{about.get('name')}"


def _conditions(document: Document, _context: TableContext) -> str:
    """`Approved,Issued` as kubectl writes it."""
    names = [str(each.get("type")) for each in conditions_of(document)] or ["Pending"]
    return ",".join([*names, "Issued"] if as_mapping(document.get("status")).get("certificate") else names)


def _profile(document: Document, context: TableContext) -> str:
    return field("spec", "cloudProfile", "name")(document, context) or field("spec", "cloudProfileName")(
        document, context
    )


_COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "shoot": (
        TableColumn("PROVIDER", field("spec", "provider", "type")),
        TableColumn("REGION", field("spec", "region")),
        TableColumn("SEED", shown(lambda document: summarize_shoot(document).seed or "<none>")),
        TableColumn("OPERATION", _shoot_operation),
        TableColumn("PROGRESS", shown(lambda document: f"{summarize_shoot(document).progress}%")),
        TableColumn("STATUS", _shoot_status),
        TableColumn("PURPOSE", field("spec", "purpose"), wide=True),
        TableColumn("PROFILE", _profile, wide=True),
        TableColumn("GENERATION", _generation, wide=True),
        TableColumn("DESCRIPTION", shown(lambda document: summarize_shoot(document).description), wide=True),
    ),
    "seed": (
        TableColumn("PROVIDER", field("spec", "provider", "type")),
        TableColumn("REGION", field("spec", "provider", "region")),
        TableColumn("GARDENLET", shown(lambda document: readiness(seed_row(document)).plain)),
        TableColumn("SHOOTS", _seed_shoots),
        TableColumn("OPERATION", _operation),
        TableColumn("ZONES", field("spec", "provider", "zones"), wide=True),
        TableColumn("TAINTS", names_in("spec", "taints", key="key"), wide=True),
        TableColumn("RESTRICTIONS", names_in("spec", "accessRestrictions"), wide=True),
        TableColumn("BACKUP", condition_status("BackupBucketsReady"), wide=True),
        TableColumn("LABELS", labels_of, wide=True),
    ),
    "project": (
        TableColumn("NAMESPACE", field("spec", "namespace")),
        TableColumn("STATUS", field("status", "phase")),
        TableColumn("OWNER", field("spec", "owner", "name"), wide=True),
    ),
    "cloudprofile": (
        TableColumn("TYPE", field("spec", "type")),
        TableColumn("REGIONS", names_in("spec", "regions"), wide=True),
    ),
    "exposureclass": (TableColumn("HANDLER", field("handler")),),
    "controllerregistration": (
        TableColumn("RESOURCES", shown(_resources)),
        TableColumn("POLICY", field("spec", "deployment", "policy"), wide=True),
    ),
    "controllerinstallation": (
        TableColumn("REGISTRATION", field("spec", "registrationRef", "name")),
        TableColumn("SEED", field("spec", "seedRef", "name")),
        *(TableColumn(each.upper(), condition_status(each)) for each in INSTALLATION_CONDITIONS),
    ),
    "controllerdeployment": (),
    "namespace": (),
    "configmap": (TableColumn("KEYS", shown(lambda document: ",".join(as_mapping(document.get("data")))), wide=True),),
    "managedseed": (
        TableColumn("SHOOT", field("spec", "shoot", "name")),
        TableColumn("REGISTERED", condition_reason("SeedRegistered")),
    ),
    "managedseedset": (
        TableColumn("REPLICAS", field("spec", "replicas")),
        TableColumn("READY", field("status", "readyReplicas")),
        TableColumn("UPDATED", field("status", "updatedReplicas")),
        TableColumn("PENDING", shown(lambda document: set_row(document).pending_replica)),
    ),
    "seedautoscaler": (
        TableColumn("SET", field("spec", "scaleTargetRef", "name")),
        TableColumn("MIN", field("spec", "minReplicas")),
        TableColumn("MAX", field("spec", "maxReplicas")),
        TableColumn("REPLICAS", field("status", "currentReplicas")),
        TableColumn("DESIRED", field("status", "desiredReplicas")),
        TableColumn("WAITING", field("status", "pendingShoots")),
        TableColumn("LIMITED", condition_reason("ScalingLimited"), wide=True),
    ),
    "lease": (TableColumn("HOLDER", field("spec", "holderIdentity")), TableColumn("RENEWED", age("spec", "renewTime"))),
    "certificatesigningrequest": (
        TableColumn("SIGNERNAME", field("spec", "signerName"), wide=True),
        TableColumn("REQUESTOR", field("spec", "username")),
        TableColumn("CONDITION", _conditions),
        TableColumn("EXPIRES", field("metadata", "annotations", NOT_AFTER)),
    ),
    "event": (
        TableColumn("LAST SEEN", age("lastTimestamp")),
        TableColumn("TYPE", field("type")),
        TableColumn("REASON", field("reason")),
        TableColumn("OBJECT", _about),
        TableColumn("COUNT", field("count")),
        TableColumn("FROM", field("reportingComponent"), wide=True),
        TableColumn("MESSAGE", field("message")),
    ),
}
_CLUSTER_SCOPED = frozenset(
    {
        "seed",
        "project",
        "cloudprofile",
        "exposureclass",
        "controllerregistration",
        "controllerinstallation",
        "controllerdeployment",
        "namespace",
        "certificatesigningrequest",
        *(kind for kind in FLEET_COLUMNS if KINDS[kind].namespaced is False),
    }
)
