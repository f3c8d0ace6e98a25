"""Revisions of a ManagedSeedSet's templates as `rollout` shows them, and the way back to one of them. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.api.owners import controller_of
from gardenbus.common.errors import BadRequest, NotFound

PROGRESSING = "Progressing"
_OVER = ("UpdateComplete", "Partitioned")
_TEMPLATES = ("template", "shootTemplate")


class Revision(NamedTuple):
    """One revision: its number, and which of the set's roles it has (`current`, `update`)."""

    number: int
    name: str
    created: str
    roles: tuple[str, ...]
    templates: Document


class RolloutStatus(NamedTuple):
    """State of a rollout, with a sentence about it."""

    is_over: bool
    has_failed: bool
    sentence: str


def revisions_of(managed_seed_set: Document, stored: Sequence[Document]) -> list[Revision]:
    """The set's own revisions among ControllerRevisions, the oldest first."""
    uid = as_mapping(managed_seed_set.get("metadata")).get("uid")
    return sorted(_revision(managed_seed_set, each) for each in stored if uid and _owner(each) == uid)


def previous(managed_seed_set: Document, revisions: Sequence[Revision]) -> Revision:
    """The newest revision whose templates are not the set's own. Raises NotFound when there is none."""
    for revision in reversed(revisions):
        if undo_patch(managed_seed_set, revision):
            return revision
    raise NotFound("there is no earlier revision to go back to")


def revision_numbered(revisions: Sequence[Revision], number: int) -> Revision:
    """The revision with a number. Raises BadRequest when there is none."""
    found = next((revision for revision in revisions if revision.number == number), None)
    if found is None:
        there = ", ".join(str(revision.number) for revision in revisions) or "none"
        raise BadRequest(f"there is no revision {number}; there are {there}")
    return found


def undo_patch(managed_seed_set: Document, revision: Revision) -> Document:
    """The merge patch that gives the set the templates of a revision, exactly; {} when it has them.

    It holds for the version of the set that it was made from, and for no other.
    """
    spec = as_mapping(managed_seed_set.get("spec"))
    changes = {
        name: change
        for name in _TEMPLATES
        if (change := merge_patch_between(spec.get(name), revision.templates.get(name)))
    }
    if not changes:
        return {}
    version = as_mapping(managed_seed_set.get("metadata")).get("resourceVersion")
    return {"metadata": {"resourceVersion": version}, "spec": changes}


def rollout_status_of(managed_seed_set: Document) -> RolloutStatus:
    """State of the rollout of a set's templates."""
    metadata, status = as_mapping(managed_seed_set.get("metadata")), as_mapping(managed_seed_set.get("status"))
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        return RolloutStatus(False, False, "the set's latest change has not been reconciled yet")
    wanted: Any = as_mapping(managed_seed_set.get("spec")).get("replicas")
    wanted = 1 if wanted is None else wanted
    updated, ready, there = (status.get(name) or 0 for name in ("updatedReplicas", "readyReplicas", "replicas"))
    counts = f"{updated} of {there} replicas are updated, {ready} are ready, {wanted} are wanted"
    progressing = condition(managed_seed_set, PROGRESSING)
    message = str(progressing.get("message") or "")
    text = f"{counts}: {message}" if message else counts
    if progressing.get("status") == "False":
        return RolloutStatus(True, True, text)
    has_all = progressing.get("reason") in _OVER if progressing else updated >= there
    return RolloutStatus(has_all and ready >= wanted == there, False, text)


def _revision(managed_seed_set: Document, stored: Document) -> Revision:
    status, metadata = as_mapping(managed_seed_set.get("status")), as_mapping(stored.get("metadata"))
    name = str(metadata.get("name") or "")
    number: Any = stored.get("revision")
    roles = tuple(role for role in ("current", "update") if status.get(f"{role}Revision") == name)
    return Revision(
        number if isinstance(number, int) else 0,
        name,
        str(metadata.get("creationTimestamp") or ""),
        roles,
        as_mapping(stored.get("data")),
    )


def _owner(document: Document) -> str | None:
    owner = controller_of(document)
    return owner.get("uid") if owner is not None and owner.get("kind") == "ManagedSeedSet" else None
