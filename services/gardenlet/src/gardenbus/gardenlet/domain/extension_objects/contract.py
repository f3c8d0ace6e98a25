"""Requests to an extension, and whether its object shows that one was fulfilled.

| request | annotation `gardener.cloud/operation` | fulfilled |
|---|---|---|
| reconcile | `reconcile`, taken off before the work | `ready_problem` is None |
| restore | `wait-for-state` until the state is in the status, then `restore`, taken off after the work | the same |
| migrate | `migrate`, taken off after the work | `migration_problem` is None |
| delete | none: confirmed, then deleted | the object is gone |

Each request has a time, `gardener.cloud/timestamp`. It is compared with that of the last operation, which has whole
seconds: two requests of one second are one (`seconds_until_next_request`).

Source: Gardener's `pkg/utils/kubernetes/health/extensions.go` and `pkg/extensions/customresources.go`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import only_text
from gardenbus.common.api.garden.error_codes import ERROR_CODES
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.gardenlet.domain.extension_objects.kinds import API_VERSION, ExtensionObject
from gardenbus.gardenlet.domain.managed_resources.names import OPERATION, RECONCILE, annotations_of

TIMESTAMP = "gardener.cloud/timestamp"
MIGRATE, RESTORE, WAIT_FOR_STATE = "migrate", "restore", "wait-for-state"
_SUCCEEDED = "Succeeded"


class LastError(NamedTuple):
    """A `status.lastError` with Gardener's codes."""

    description: str
    codes: tuple[str, ...] = ()


def request_time(now: datetime) -> str:
    """Value of `TIMESTAMP`."""
    return now.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def last_error(live: Document) -> LastError | None:
    """The error that the extension has reported of an object; None without one."""
    error = section(live, "status").get("lastError")
    if not isinstance(error, dict):
        return None
    found = section(live, "status", "lastError")
    codes: list[object] = found.get("codes") or []
    return LastError(
        only_text(found.get("description")),
        tuple(code for code in codes if isinstance(code, str) and code in ERROR_CODES),
    )


def ready_problem(live: Document, requested: str = "") -> str | None:
    """Reason why an object is not ready; None when it is. `requested`: the time of the request that it has to carry."""
    metadata, status = section(live, "metadata"), section(live, "status")
    annotations, last = annotations_of(live), section(status, "lastOperation")
    wanted_at = only_text(annotations.get(TIMESTAMP))
    if requested and wanted_at != requested:
        return "the request for its reconciliation was overwritten"
    if (error := last_error(live)) is not None:
        return f"error during reconciliation: {error.description}"
    generation, observed = metadata.get("generation") or 0, status.get("observedGeneration") or 0
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    if OPERATION in annotations:
        return f'gardener operation "{annotations[OPERATION]}" is not yet picked up by controller'
    if not last:
        return "extension did not record a last operation yet"
    if last.get("state") != _SUCCEEDED:
        return f"extension state is not succeeded but {last.get('state')}"
    if _is_after(wanted_at, last):
        return (
            f"extension is not reconciled yet - reconciliation requested at {wanted_at}, "
            f"last update time is: {last.get('lastUpdateTime')}"
        )
    return None


def migration_problem(live: Document) -> str | None:
    """Reason why an object is not migrated; None when it is."""
    if is_migrated(live):
        return None
    if (error := last_error(live)) is not None:
        return f"error during migration: {error.description}"
    last = section(live, "status", "lastOperation")
    return f"last operation is not Migrate, Succeeded but {last.get('type')}, {last.get('state')}"


def is_migrated(live: Document) -> bool:
    """True once an object was migrated: whatever is requested of it, but a restoration, does nothing."""
    last = section(live, "status", "lastOperation")
    return (last.get("type"), last.get("state")) == ("Migrate", _SUCCEEDED)


def has_state(live: Document) -> bool:
    """True if the extension, or a restoration, has left state in an object's status."""
    status = section(live, "status")
    return bool(status.get("state") or status.get("resources"))


def requested(live: Document | None, wanted: ExtensionObject, operation: str, at: str) -> Document:
    """An object with its spec, and a request at this time. Labels and annotations of others stay."""
    metadata = dict(section(live or {}, "metadata"))
    metadata |= {"name": wanted.name} | ({"namespace": wanted.namespace} if wanted.namespace else {})
    if wanted.labels:
        metadata["labels"] = {**section(metadata, "labels"), **wanted.labels}
    annotations = {**section(metadata, "annotations"), **wanted.annotations, OPERATION: operation, TIMESTAMP: at}
    manifest = {**(live or {}), "apiVersion": API_VERSION, "kind": wanted.kind, "spec": wanted.spec}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def request_patch(operation: str, at: str) -> Document:
    """Merge patch of a request at this time."""
    return {"metadata": {"annotations": {OPERATION: operation, TIMESTAMP: at}}}


def deletion_patch(at: str) -> Document:
    """Merge patch that confirms a deletion."""
    return {"metadata": {"annotations": {CONFIRMATION: "true", TIMESTAMP: at}}}


def is_not_picked_up(live: Document) -> bool:
    """True while the extension has not taken up a request: it drops those of shoots that it ignores."""
    return annotations_of(live).get(OPERATION) in {RECONCILE, RESTORE, MIGRATE}


def seconds_until_next_request(live: Document | None, now: datetime) -> float:
    """Seconds until a request is told apart from what was requested, or done, before; at most two."""
    times: Mapping[str, object] = {} if live is None else annotations_of(live)
    done = section(live or {}, "status", "lastOperation").get("lastUpdateTime")
    latest = [each for each in (_whole(times.get(TIMESTAMP)), _whole(done)) if each is not None]
    if not latest:
        return 0.0
    left = (max(latest) + timedelta(seconds=1) - now).total_seconds()
    return min(max(left, 0.0), 2.0)


def _is_after(wanted_at: str, last: Document) -> bool:
    """True if a request came after the end of the last operation."""
    wanted, done = _whole(wanted_at), _whole(last.get("lastUpdateTime"))
    return wanted is not None and (done is None or wanted > done)


def _whole(text: object) -> datetime | None:
    instant = parse_timestamp(text)
    return None if instant is None else instant.replace(microsecond=0)
