"""Related objects for `describe`: the ones to look up, and a line about each.

Pure but for `related`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.cli.client.api import ApiClient, is_forbidden
from gardenbus.cli.client.resource_args import ResourceArgs
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.fleet.related import fleet_parties, fleet_relations
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.fleet_columns import fleet_summary
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.api.keys import GARDEN_NAMESPACE, LEASE_NAMESPACE, ObjectKey
from gardenbus.common.api.kinds import KINDS

MOST_LISTED = 10
"""Of the objects that refer to one, so many are named, and the rest counted."""


class Relation(NamedTuple):
    """An object and what it is to the one described."""

    word: str
    key: ObjectKey


def relations_of(document: Document) -> Sequence[Relation]:
    """The objects that a document names, each once."""
    metadata, spec = as_mapping(document.get("metadata")), as_mapping(document.get("spec"))
    kind = str(document.get("kind")).lower()
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
    relations = [
        Relation("owner", _owner_key(str(owner.get("kind")).lower(), namespace, str(owner.get("name"))))
        for owner in map(as_mapping, metadata.get("ownerReferences") or ())
    ]
    match kind:
        case "shoot":
            relations += _of_a_shoot(document, namespace, name)
        case "seed":
            relations += [
                Relation("made of", ObjectKey("managedseed", GARDEN_NAMESPACE, name)),
                Relation("heartbeat", ObjectKey("lease", LEASE_NAMESPACE, name)),
            ]
        case "managedseed":
            shoot = str(as_mapping(spec.get("shoot")).get("name") or "")
            relations.append(Relation("made of", ObjectKey("shoot", namespace, shoot)))
            relations.append(Relation("is", ObjectKey("seed", "", name)))
        case "seedautoscaler":
            target = str(as_mapping(spec.get("scaleTargetRef")).get("name") or "")
            relations.append(Relation("scales", ObjectKey("managedseedset", namespace, target)))
        case _:
            relations += [Relation(word, key) for word, key in fleet_relations(document)]
    return list(dict.fromkeys(relation for relation in relations if relation.key.name))


def _owner_key(kind: str, namespace: str, name: str) -> ObjectKey:
    spec = KINDS.get(kind)
    return ObjectKey(kind, "" if spec is not None and spec.namespaced is False else namespace, name)


def _of_a_shoot(document: Document, namespace: str, name: str) -> Sequence[Relation]:
    spec = as_mapping(document.get("spec"))
    row = summarize_shoot(document)
    profile = as_mapping(spec.get("cloudProfile"))
    profile_kind = str(profile.get("kind") or "CloudProfile").lower()
    profile_name = str(profile.get("name") or spec.get("cloudProfileName") or "")
    return [
        Relation("profile", ObjectKey(profile_kind, "", profile_name)),
        Relation("exposure", ObjectKey("exposureclass", "", str(spec.get("exposureClassName") or ""))),
        Relation("to be on", ObjectKey("seed", "", row.seed)),
        Relation("is on", ObjectKey("seed", "", row.actual_seed)),
        Relation("seed made of it", ObjectKey("managedseed", namespace, name)),
    ]


def referrers_of(document: Document) -> tuple[ResourceArgs, str, str] | None:
    """Query for objects that refer to a document: (kind, namespace or "", field selector); None when nothing can."""
    metadata = as_mapping(document.get("metadata"))
    name = str(metadata.get("name"))
    match str(document.get("kind")).lower():
        case "seed":
            return ResourceArgs("shoot", (), is_namespaced=True), "", f"spec.seedName={name}"
        case "managedseedset":
            return ResourceArgs("managedseed", (), is_namespaced=True), str(metadata.get("namespace")), ""
        case "project":
            namespace = str(as_mapping(document.get("spec")).get("namespace") or "")
            return (ResourceArgs("shoot", (), is_namespaced=True), namespace, "") if namespace else None
        case "cloudprofile":
            return ResourceArgs("shoot", (), is_namespaced=True), "", f"spec.cloudProfile.name={name}"
        case _:
            return None


_NAMED = ("owner", "profile", "exposure", "to be on", "is on", "scales", "cluster")
"""Words of objects that a manifest names: the others may be there or not."""


async def related(api: ApiClient, document: Document) -> list[str]:
    """A line about each object that has to do with one, as far as they are there. Raises Unavailable, ApiError."""
    lines: list[str] = []
    for relation in relations_of(document):
        response = await api.request(f"get.{relation.key.tail}")
        if response.ok:
            lines.append(f"{relation.word:<16} {relation.key}{state_suffix(as_mapping(response.result))}")
        elif relation.word in _NAMED:
            why = "not yours to read" if is_forbidden(response.error) else "not found"
            lines.append(f"{relation.word:<16} {relation.key}  ({why})")
    if query := referrers_of(document):
        wanted, namespace, fields = query
        tail = f"{wanted.kind}.{namespace}" if namespace else wanted.kind
        found = await api.items_if_readable(tail, {"fieldSelector": fields})
        if wanted.kind == "managedseed":
            found = [each for each in found or () if is_owned_by(each, document)]
        lines += [f"{wanted.kind}s  (not yours to read)"] if found is None else listed(f"{wanted.kind}s", found)
    for word, others in await fleet_parties(api, document):
        lines += listed(word, others)
    return lines


def is_owned_by(document: Document, owner: Document) -> bool:
    """True when an object's ownerReferences name another one."""
    uid = as_mapping(owner.get("metadata")).get("uid")
    references = as_mapping(document.get("metadata")).get("ownerReferences") or ()
    return any(as_mapping(reference).get("uid") == uid for reference in references)


def listed(word: str, found: Sequence[Document]) -> list[str]:
    """The number of objects, and the names of the first."""
    lines = [f"{word:<16} {len(found)}"]
    for document in found[:MOST_LISTED]:
        metadata = as_mapping(document.get("metadata"))
        scope = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        lines.append(f"{'':<16} {scope}{metadata.get('name')}{state_suffix(document)}")
    if len(found) > MOST_LISTED:
        lines.append(f"{'':<16} and {len(found) - MOST_LISTED} more")
    return lines


def state_suffix(document: Document) -> str:
    """Two blanks and where it stands, in a few words; "" where its status has none."""
    match str(document.get("kind")):
        case "Shoot":
            row = summarize_shoot(document)
            words = f"{row.operation} {row.operation_state} {row.progress}%" if row.operation else "new"
        case "Seed":
            words = f"GardenletReady {condition(document, 'GardenletReady').get('status') or 'never reported'}"
        case "ManagedSeed":
            words = str(condition(document, "SeedRegistered").get("reason") or "")
        case "ManagedSeedSet":
            status = as_mapping(document.get("status"))
            words = f"{status.get('readyReplicas') or 0} of {as_mapping(document.get('spec')).get('replicas')} ready"
        case "Lease":
            words = f"renewed {as_mapping(document.get('spec')).get('renewTime')}"
        case _:
            words = fleet_summary(document)
    return f"  ({words})" if words else ""
