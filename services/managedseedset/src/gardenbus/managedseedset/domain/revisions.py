"""Revisions of a set's templates.

As StatefulSet's: a revision is an object of its own (ControllerRevision) that keeps the templates, numbered in the
order in which they came into force. Templates that come back reuse their old revision under a new number.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.managed_seed_sets import revision_hash, same_templates, templates_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import APPS, REVISION_KIND
from gardenbus.common.api.owners import controller_reference
from gardenbus.managedseedset.domain.ownership import controls

DEFAULT_HISTORY = 10


class Revisions(msgspec.Struct, frozen=True, kw_only=True):
    """The set's revisions by hash. `update`: the target of replicas; `current`: the one that the others still have.

    `apply` are revisions to be stored, `drop` those to be deleted.
    """

    update: str
    current: str
    collision_count: int
    templates: Mapping[str, Document]
    apply: tuple[Document, ...] = ()
    drop: tuple[ObjectKey, ...] = ()


def plan_revisions(managed_seed_set: Document, stored: Sequence[Document], in_use: frozenset[str]) -> Revisions:
    """Find or create the revision of the set's templates.

    `stored` are all ControllerRevisions of the namespace, `in_use` the hashes of replicas.
    """
    own = sorted((each for each in stored if controls(managed_seed_set, each)), key=_number)
    templates = templates_of(managed_seed_set)
    status = section(managed_seed_set, "status")
    collisions = int(status.get("collisionCount") or 0)
    found = next((each for each in reversed(own) if same_templates(section(each, "data"), templates)), None)
    highest = max((_number(each) for each in own), default=0)
    apply: tuple[Document, ...] = ()
    if found is None:
        collisions, update = _free_hash(managed_seed_set, templates, stored, collisions)
        apply = (_revision(managed_seed_set, update, templates, highest + 1),)
    else:
        update = hash_of(managed_seed_set, name_of(found))
        if _number(found) != highest:
            apply = (_revision(managed_seed_set, update, templates, highest + 1),)
    templates_by_hash = {hash_of(managed_seed_set, name_of(each)): section(each, "data") for each in own} | {
        update: templates
    }
    current = hash_of(managed_seed_set, str(status.get("currentRevision") or ""))
    if current not in templates_by_hash:
        current = update
    kept = in_use | {update, current}
    return Revisions(
        update=update,
        current=current,
        collision_count=collisions,
        templates=templates_by_hash,
        apply=apply,
        drop=_expired_revisions(managed_seed_set, own, kept),
    )


def hash_of(managed_seed_set: Document, revision_name: str) -> str:
    """The hash in a revision's name."""
    return revision_name.removeprefix(f"{section(managed_seed_set, 'metadata').get('name')}-")


def revision_name(managed_seed_set: Document, revision: str) -> str:
    """The name of the revision with a hash."""
    return f"{section(managed_seed_set, 'metadata').get('name')}-{revision}"


def _free_hash(
    managed_seed_set: Document, templates: Document, stored: Sequence[Document], collisions: int
) -> tuple[int, str]:
    """A hash whose name no other templates have, and the collision count."""
    used_names = {name_of(each) for each in stored}
    while revision_name(managed_seed_set, update := revision_hash(templates, collisions)) in used_names:
        collisions += 1
    return collisions, update


def _revision(managed_seed_set: Document, revision: str, templates: Document, number: int) -> Document:
    return {
        "apiVersion": f"{APPS}/v1",
        "kind": REVISION_KIND,
        "metadata": {
            "name": revision_name(managed_seed_set, revision),
            "namespace": section(managed_seed_set, "metadata").get("namespace"),
            "labels": dict(section(managed_seed_set, "spec", "selector", "matchLabels")),
            "ownerReferences": [controller_reference(managed_seed_set)],
        },
        "revision": number,
        "data": templates,
    }


def _expired_revisions(
    managed_seed_set: Document, own: Sequence[Document], kept: frozenset[str]
) -> tuple[ObjectKey, ...]:
    """The oldest unused ones beyond the history limit."""
    limit = section(managed_seed_set, "spec").get("revisionHistoryLimit")
    limit = DEFAULT_HISTORY if not isinstance(limit, int) else max(limit, 0)
    unused = [each for each in own if hash_of(managed_seed_set, name_of(each)) not in kept]
    namespace = str(section(managed_seed_set, "metadata").get("namespace"))
    return tuple(
        ObjectKey(REVISION_KIND.lower(), namespace, name_of(each)) for each in unused[: max(len(unused) - limit, 0)]
    )


def _number(revision: Document) -> int:
    number = revision.get("revision")
    return number if isinstance(number, int) else 0
