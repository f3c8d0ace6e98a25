"""Server-side apply: what a manager's manifest makes of an object, and the conflicts with other managers. Pure.

1. The manifest is merged over the object, lists with keys entry by entry.
2. A field that it changes and that another manager owns is a conflict, unless the apply is forced: then it is the
   manager's alone.
3. A field that the manager applied last time, leaves out now, and nobody else owns, is removed.

Source: `structured-merge-diff/merge`, `apimachinery/pkg/util/managedfields/internal/conflict.go` (messages).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.api.field_ownership import (
    ABSENT,
    BEFORE_FIRST_APPLY,
    FieldValues,
    Owner,
    Path,
    Paths,
    changed_paths,
    owners_of,
    paths_of,
    with_owners,
    without_paths,
    written,
)
from gardenbus.kubeapi.domain.patches.strategic import merged_strategically
from gardenbus.kubeapi.domain.statuses import Rejected

_CONFLICT = 409


class Applier(NamedTuple):
    """A manager that applies: in which version, and whether it takes fields from others."""

    manager: str
    api_version: str
    is_forced: bool
    time: str


class _Conflict(NamedTuple):
    owner: Owner
    path: Path


def created(given: Document, applier: Applier) -> Document:
    """A new object of a manifest, whose fields are the manager's."""
    return with_owners(given, [_owner(applier, paths_of(given))])


def applied(present: Document, given: Document, applier: Applier) -> Document:
    """The object after an apply. Raises Rejected with each field that another manager owns, unless it is forced."""
    owners = owners_of(present) or (_unknown_owner(present),)
    own = next((each for each in owners if (each.manager, each.operation) == (applier.manager, "Apply")), None)
    others = [each for each in owners if each is not own]
    paths = paths_of(given)
    changed = changed_paths(paths, present, given)
    before = FieldValues(present)
    conflicts = [
        _Conflict(owner, path)
        for owner in others
        for path in sorted(owner.paths & changed)
        if before.at(path) is not ABSENT
    ]
    if conflicts and not applier.is_forced:
        raise _rejected(conflicts)
    others = [each._replace(paths=each.paths - changed) for each in others]
    left_out = (own.paths if own else frozenset[Path]()) - paths
    elsewhere = _with_parents(path for each in others for path in each.paths)
    merged = without_paths(merged_strategically(present, given), left_out - elsewhere)
    if own is not None and own.paths == paths and not changed and not left_out:
        return merged
    return with_owners(merged, [*others, _owner(applier, paths)])


def _with_parents(paths: Iterable[Path]) -> Paths:
    return frozenset(path[:length] for path in paths for length in range(1, len(path) + 1))


def _owner(applier: Applier, paths: Paths) -> Owner:
    return Owner(applier.manager, "Apply", applier.api_version, paths, applier.time)


def _unknown_owner(present: Document) -> Owner:
    return Owner(BEFORE_FIRST_APPLY, "Update", str(present.get("apiVersion") or ""), paths_of(present))


def _rejected(conflicts: Sequence[_Conflict]) -> Rejected:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_named(conflict.owner)}",
            "field": written(conflict.path),
        }
        for conflict in conflicts
    ]
    if len(conflicts) == 1:
        ((owner, path),) = conflicts
        message = f"Apply failed with 1 conflict: conflict with {_named(owner)}: {written(path)}"
        return Rejected(_CONFLICT, "Conflict", message, causes)
    by_owner: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_owner.setdefault(_named(conflict.owner), []).append(f"- {written(conflict.path)}")
    lines = [line for name in sorted(by_owner) for line in (f"conflicts with {name}:", *by_owner[name])]
    return Rejected(_CONFLICT, "Conflict", f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines), causes)


def _named(owner: Owner) -> str:
    name = f'"{owner.manager}"'
    if owner.operation == "Apply":
        return name
    return f"{name} using {owner.api_version}" + (f" at {owner.time}" if owner.time else "")
