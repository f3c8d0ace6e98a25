"""Tables of objects (`meta.k8s.io/v1` Table), with the printer columns of Gardener and Kubernetes.

A kind is a row of `_COLUMNS`; any other kind has a name and an age.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, cast

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import STATUS_LABEL, Document, section
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.ports.clock import parse_timestamp

CellPrinter = Callable[[Document, datetime], object]
Included = Literal["None", "Metadata", "Object"]

UNKNOWN = "<unknown>"


class Column(NamedTuple):
    """One column; those of a higher priority are shown on `-o wide` alone."""

    name: str
    cell: CellPrinter
    type: str = "string"
    priority: int = 0
    format: str = ""


def human_duration(elapsed: timedelta) -> str:
    """A duration as kubectl writes it: `5s`, `4m10s`, `3h5m`, `6d`, `2y12d`."""
    seconds = int(elapsed.total_seconds())
    if seconds < 0:
        return "0s" if seconds > -2 else "<invalid>"  # noqa: PLR2004 - clocks differ by a moment
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for bound, unit, letter, rest, small, has_rest in (
        (120, seconds, "s", 0, "", False),
        (600, minutes, "m", seconds % 60, "s", True),
        (3 * 3600, minutes, "m", 0, "", False),
        (8 * 3600, hours, "h", minutes % 60, "m", True),
        (48 * 3600, hours, "h", 0, "", False),
        (8 * 86400, days, "d", hours % 24, "h", True),
        (2 * 365 * 86400, days, "d", 0, "", False),
        (8 * 365 * 86400, days // 365, "y", days % 365, "d", True),
    ):
        if seconds < bound:
            return f"{unit}{letter}{rest}{small}" if has_rest and rest else f"{unit}{letter}"
    return f"{days // 365}y"


def _value(document: Document, path: str) -> object:
    *parents, last = path.split(".")
    return section(document, *parents).get(last)


def _field(path: str, *, default: str = "") -> CellPrinter:
    def cell(document: Document, _now: datetime) -> object:
        value = _value(document, path)
        if isinstance(value, list):
            return ",".join(map(str, cast("list[object]", value)))
        return default if value is None else value

    return cell


def _age(path: str) -> CellPrinter:
    def cell(document: Document, now: datetime) -> object:
        instant = parse_timestamp(_value(document, path))
        return UNKNOWN if instant is None else human_duration(now - instant)

    return cell


def _condition(name: str, part: str = "status") -> CellPrinter:
    return lambda document, _now: str(condition(document, name).get(part) or UNKNOWN)


def _count(*paths: str) -> CellPrinter:
    return lambda document, _now: sum(len(section(document, path)) for path in paths)


def _last_operation(document: Document, _now: datetime) -> object:
    found = section(document, "status", "lastOperation")
    if not found:
        return "<pending>"
    progress = found.get("progress")
    return f"{found.get('type') or ''} {found.get('state') or ''} ({progress if progress is not None else 0}%)".strip()


def _hibernation(document: Document, _now: datetime) -> object:
    wanted = section(document, "spec", "hibernation").get("enabled") is True
    is_hibernated = section(document, "status").get("isHibernated") is True
    if wanted:
        return "Hibernated" if is_hibernated else "Hibernating"
    return "Waking Up" if is_hibernated else "Awake"


def _profile(document: Document, _now: datetime) -> object:
    return _value(document, "spec.cloudProfile.name") or _value(document, "spec.cloudProfileName") or ""


def _shoot_status(document: Document, _now: datetime) -> object:
    return section(document, "metadata", "labels").get(STATUS_LABEL) or UNKNOWN


_SEED_CONDITIONS = ("GardenletReady", "BackupBucketsReady", "ExtensionsReady", "SeedSystemComponentsHealthy")


def _seed_status(document: Document, _now: datetime) -> object:
    if condition(document, "GardenletReady").get("status") in (None, "Unknown"):
        return "Unknown"
    is_unready = any(condition(document, name).get("status") == "False" for name in _SEED_CONDITIONS)
    return "NotReady" if is_unready else "Ready"


def _about(document: Document, _now: datetime) -> object:
    about = section(document, "involvedObject")
    return f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}"


def _signing_condition(document: Document, _now: datetime) -> object:
    names = [str(each.get("type")) for each in conditions_of(document)] or ["Pending"]
    return ",".join([*names, "Issued"] if section(document, "status").get("certificate") else names)


_AGE = Column("Age", _age("metadata.creationTimestamp"))
_NAME = Column("Name", _field("metadata.name"), format="name")


def _columns(*columns: tuple[str, str | CellPrinter] | tuple[str, str | CellPrinter, int]) -> Sequence[Column]:
    """A field's path, or a cell; with a priority where it is wide."""
    return [
        Column(name, _field(cell) if isinstance(cell, str) else cell, priority=(*rest, 0)[0])
        for name, cell, *rest in columns
    ]


_BACKUP = _columns(("Status", _last_operation), ("Seed", "spec.seedName"))
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "shoot": [
        _NAME,
        *_columns(
            ("CloudProfile", _profile),
            ("Provider", "spec.provider.type"),
            ("Region", "spec.region"),
            ("K8S Version", "spec.kubernetes.version"),
            ("Hibernation", _hibernation),
            ("Last Operation", _last_operation),
            ("Status", _shoot_status),
            ("Purpose", "spec.purpose", 1),
            ("Gardener Version", "status.gardener.version", 1),
            ("Seed", "spec.seedName", 1),
            ("APIServer", _condition("APIServerAvailable"), 1),
            ("Control Plane", _condition("ControlPlaneHealthy"), 1),
            ("Observability", _condition("ObservabilityComponentsHealthy"), 1),
            ("Nodes", _condition("EveryNodeReady"), 1),
            ("System", _condition("SystemComponentsHealthy"), 1),
        ),
        _AGE,
    ],
    "seed": [
        _NAME,
        *_columns(
            ("Status", _seed_status),
            ("Last Operation", _last_operation),
            ("Provider", "spec.provider.type"),
            ("Region", "spec.provider.region"),
        ),
        _AGE,
        *_columns(("Version", "status.gardener.version"), ("K8S Version", "status.kubernetesVersion")),
    ],
    "project": [
        _NAME,
        *_columns(
            ("Namespace", "spec.namespace"),
            ("Status", "status.phase"),
            ("Owner", "spec.owner.name"),
            ("Creator", "spec.createdBy.name"),
        ),
        _AGE,
    ],
    "managedseed": [
        _NAME,
        *_columns(
            ("Status", _condition("SeedRegistered", "reason")),
            ("Shoot", "spec.shoot.name"),
            ("Gardenlet", "spec.gardenlet.deployment.image.tag"),
        ),
        _AGE,
    ],
    "managedseedset": [
        _NAME,
        *_columns(("Ready Replicas", "status.readyReplicas"), ("Replicas", "spec.replicas")),
        _AGE,
    ],
    "seedautoscaler": [
        _NAME,
        *_columns(
            ("Reference", "spec.scaleTargetRef.name"),
            ("MinPods", "spec.minReplicas"),
            ("MaxPods", "spec.maxReplicas"),
            ("Replicas", "status.currentReplicas"),
            ("Desired", "status.desiredReplicas"),
        ),
        _AGE,
    ],
    "exposureclass": [_NAME, *_columns(("Handler", "handler")), _AGE],
    "backupbucket": [
        _NAME,
        *_columns(("Provider", "spec.provider.type"), ("Region", "spec.provider.region")),
        *_BACKUP,
        _AGE,
    ],
    "backupentry": [_NAME, *_columns(("BackupBucket", "spec.bucketName")), *_BACKUP, _AGE],
    "controllerinstallation": [
        _NAME,
        *_columns(
            ("Registration", "spec.registrationRef.name"),
            ("Seed", "spec.seedRef.name"),
            ("Valid", _condition("Valid")),
            ("Installed", _condition("Installed")),
            ("Healthy", _condition("Healthy")),
            ("Progressing", _condition("Progressing")),
        ),
        _AGE,
    ],
    "secretbinding": [
        _NAME,
        *_columns(
            ("Provider", "provider.type"), ("Secret Namespace", "secretRef.namespace"), ("Secret", "secretRef.name")
        ),
        _AGE,
    ],
    "credentialsbinding": [
        _NAME,
        *_columns(
            ("Provider", "provider.type"),
            ("Credentials Kind", "credentialsRef.kind"),
            ("Credentials Namespace", "credentialsRef.namespace"),
            ("Credentials Name", "credentialsRef.name"),
        ),
        _AGE,
    ],
    "bastion": [
        _NAME,
        *_columns(
            ("Shoot", "spec.shootRef.name"),
            ("Seed", "spec.seedName"),
            ("Ingress", "status.ingress.ip"),
            ("Expires", "status.expirationTimestamp"),
        ),
        _AGE,
    ],
    "membercluster": [
        _NAME,
        *_columns(
            ("Joined", _condition("Joined")), ("Node-Count", "status.properties.kubernetes-fleet.io/node-count.value")
        ),
        _AGE,
    ],
    "namespace": [_NAME, *_columns(("Status", _field("status.phase", default="Active"))), _AGE],
    "configmap": [_NAME, Column("Data", _count("data", "binaryData")), _AGE],
    "secret": [_NAME, *_columns(("Type", "type")), Column("Data", _count("data")), _AGE],
    "lease": [_NAME, *_columns(("Holder", "spec.holderIdentity")), _AGE],
    "certificatesigningrequest": [
        _NAME,
        _AGE,
        *_columns(
            ("SignerName", "spec.signerName"),
            ("Requestor", "spec.username"),
            ("RequestedDuration", _field("spec.expirationSeconds", default="<none>")),
            ("Condition", _signing_condition),
        ),
    ],
    "event": [
        Column("Last Seen", _age("lastTimestamp")),
        *_columns(
            ("Type", "type"),
            ("Reason", "reason"),
            ("Object", _about),
            ("Subobject", "involvedObject.fieldPath", 1),
            ("Source", "reportingComponent", 1),
            ("Message", "message"),
            ("First Seen", _age("firstTimestamp"), 1),
            ("Count", "count", 1),
        ),
        Column("Name", _field("metadata.name"), priority=1, format="name"),
    ],
}


def columns_of(kind: str) -> Sequence[Column]:
    """The columns of a kind (lower-case singular)."""
    return _COLUMNS.get(kind, (_NAME, _AGE))


def table(
    kind: str,
    documents: Iterable[Document],
    now: datetime,
    *,
    version: int | None,
    included: Included = "Metadata",
    has_columns: bool = True,
) -> Document:
    """A Table; `version` is the list's resourceVersion. Later events of a watch come without columns."""
    columns = columns_of(kind)
    rows = [
        {
            "cells": [_shown(column.cell(document, now)) for column in columns],
            **({} if included == "None" else {"object": document if included == "Object" else partial(document)}),
        }
        for document in documents
    ]
    metadata = {} if version is None else {"resourceVersion": str(version)}
    definitions = [
        {"name": each.name, "type": each.type, "format": each.format, "description": "", "priority": each.priority}
        for each in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions if has_columns else [],
        "rows": rows,
    }


def partial(document: Document) -> Document:
    """The metadata of an object alone (`PartialObjectMetadata`)."""
    metadata: Any = document.get("metadata")
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def _shown(value: object) -> object:
    return value if isinstance(value, str | int | float) else str(value)
