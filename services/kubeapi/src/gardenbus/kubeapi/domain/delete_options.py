"""Options of a deletion, from the body and the query."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import BadRequest, InvalidResource


class DeleteOptions(NamedTuple):
    """What a deletion depends on, and whether it only tries."""

    uid: str = ""
    version: str = ""
    is_dry_run: bool = False


def delete_options(body: Document, query: Mapping[str, str]) -> DeleteOptions:
    """Read the options. Raises InvalidResource for what is not done here, BadRequest."""
    policy = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphans: Any = body.get("orphanDependents")
    if policy not in ("", "Background") or orphans is True:
        named = str(policy or "Orphan")[:40]
        raise InvalidResource(f"propagationPolicy: {named} is not supported: dependents go in the background")
    preconditions = section(body, "preconditions")
    asked: Any = body.get("dryRun") or query.get("dryRun") or []
    return DeleteOptions(
        str(preconditions.get("uid") or ""), str(preconditions.get("resourceVersion") or ""), is_dry_run(asked)
    )


def is_dry_run(value: Any) -> bool:
    """Read `dryRun`: `All`, or nothing. Raises BadRequest."""
    words = [value] if isinstance(value, str) else value
    if words not in ([], [""], ["All"]):
        raise BadRequest("dryRun: the only value is All")
    return words == ["All"]
