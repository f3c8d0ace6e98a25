"""Options of a deletion, from the body and the query."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.kubeapi.domain.statuses import invalid_option


class DeleteRequestOptions(NamedTuple):
    """Preconditions of a deletion, and whether it only tries."""

    uid: str = ""
    version: str = ""
    is_dry_run: bool = False


def delete_options(body: Document, query: Mapping[str, str]) -> DeleteRequestOptions:
    """Read the options. Raises Rejected for what is not done here, BadRequest."""
    policy = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphans: Any = body.get("orphanDependents")
    if policy not in ("", "Background") or orphans is True:
        named = str(policy or "Orphan")[:40]
        problem = f"{named} is not supported: dependents go in the background"
        raise invalid_option("DeleteOptions", "propagationPolicy", "FieldValueNotSupported", problem)
    preconditions = section(body, "preconditions")
    dry_run: Any = body.get("dryRun") or query.get("dryRun") or []
    return DeleteRequestOptions(
        str(preconditions.get("uid") or ""), str(preconditions.get("resourceVersion") or ""), is_dry_run(dry_run)
    )


def is_dry_run(value: Any, kind: str = "DeleteOptions") -> bool:
    """Read `dryRun`: `All`, or nothing. Raises Rejected for an option of a kind."""
    words = [value] if isinstance(value, str) else value
    if words not in ([], [""], ["All"]):
        raise invalid_option(kind, "dryRun", "FieldValueNotSupported", 'Unsupported value: supported values: "All"')
    return words == ["All"]
