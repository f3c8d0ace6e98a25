"""Objects made of a ManagedSeedSet's templates: the Shoot and the ManagedSeed of a replica, and its future Seed.

Source: Gardener's `pkg/controllermanager/controller/managedseedset/replica.go`; revisions are those of Gardener's
proposal 13, which follow Kubernetes' StatefulSet.
"""

import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.document import Document, canonical, section
from gardenbus.common.api.garden.managed_seeds import TEMPLATE_PATHS, capacity_of, seed_of, with_shoot_defaults
from gardenbus.common.api.garden.seed_management import REPLICA_NAME, REVISION_LABEL
from gardenbus.common.api.garden.seeds import BACKUP_BUCKETS_READY, GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.api.quantities import parse_quantity

HASH_LENGTH = 10
"""Hexadecimal digits of a revision's hash; should two ever be alike, collisionCount makes another."""

_ORDINAL = re.compile(r"-([0-9]{1,9})$")


def replica_name(managed_seed_set: Document, ordinal: int) -> str:
    """`<set>-<ordinal>`."""
    return f"{section(managed_seed_set, 'metadata').get('name')}-{ordinal}"


def ordinal_of(name: str) -> int:
    """The number at the end of a replica's name; -1 when there is none."""
    found = _ORDINAL.search(name)
    return int(found[1]) if found else -1


def templates_of(managed_seed_set: Document) -> Document:
    """Data of a revision: `template` and `shootTemplate`."""
    spec = section(managed_seed_set, "spec")
    return {"template": spec.get("template") or {}, "shootTemplate": spec.get("shootTemplate") or {}}


def with_templates(managed_seed_set: Document, templates: Document) -> Document:
    """The set with the templates of a revision."""
    return {**managed_seed_set, "spec": {**section(managed_seed_set, "spec"), **templates}}


def same_templates(one: Document, other: Document) -> bool:
    """True when two revisions' data are equal."""
    return canonical(one) == canonical(other)


def revision_hash(templates: Document, collision_count: int = 0) -> str:
    """Hash of templates and collision count."""
    return hashlib.sha256(canonical([templates, collision_count])).hexdigest()[:HASH_LENGTH]


def replica_shoot(managed_seed_set: Document, name: str, *, revision: str | None = None) -> Document:
    """The Shoot of a replica, from the set's shootTemplate, labelled with its revision (the templates' hash if None).

    `replica-name` in spec.dns.domain becomes the replica's name. The arguments are left untouched.
    """
    template = section(managed_seed_set, "spec", "shootTemplate")
    spec = _named_domain({**section(template, "spec")}, ("dns",), name)
    return {
        "apiVersion": KINDS["shoot"].api_version,
        "kind": "Shoot",
        "metadata": _replica_metadata(managed_seed_set, template, name, revision),
        "spec": spec,
    }


def replica_managed_seed(managed_seed_set: Document, name: str, *, revision: str | None = None) -> Document:
    """The ManagedSeed of a replica, from the set's template, labelled with its revision (the templates' hash if None).

    `replica-name` in the ingress domain of its Seed becomes the replica's name, also below spec.dns.ingress, where
    older manifests have it.
    """
    template = section(managed_seed_set, "spec", "template")
    managed_seed: Document = {
        "apiVersion": KINDS["managedseed"].api_version,
        "kind": "ManagedSeed",
        "metadata": _replica_metadata(managed_seed_set, template, name, revision),
        "spec": {**section(template, "spec"), "shoot": {"name": name}},
    }
    for path in TEMPLATE_PATHS.values():
        managed_seed = _named_domain(managed_seed, ("spec", *path, "spec", "ingress"), name)
        managed_seed = _named_domain(managed_seed, ("spec", *path, "spec", "dns", "ingress"), name)
    return managed_seed


def template_seed(managed_seed_set: Document, name: str, *, now: str = "1970-01-01T00:00:00Z") -> Document:
    """Seed that a new replica would become, ready, for simulations.

    Provider, region, networks and zones come from the shootTemplate where the template has none; capacity is that of
    its gardenlet, and allocatable is the unreserved part of it. `now` is the time of its conditions.
    """
    managed_seed = with_shoot_defaults(
        replica_managed_seed(managed_seed_set, name), replica_shoot(managed_seed_set, name)
    )
    capacity, reserved = capacity_of(managed_seed)
    conditions = (GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY, BACKUP_BUCKETS_READY)
    status: Document = {
        "conditions": [_ready_condition(kind, now) for kind in conditions],
        "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100, "lastUpdateTime": now},
        "observedGeneration": 1,
        "capacity": capacity,
        "allocatable": {
            resource: _unreserved(quantity, reserved.get(resource)) for resource, quantity in capacity.items()
        },
    }
    return {**seed_of(managed_seed), "status": status}


def _replica_metadata(managed_seed_set: Document, template: Document, name: str, revision: str | None) -> Document:
    if revision is None:
        collisions = section(managed_seed_set, "status").get("collisionCount") or 0
        revision = revision_hash(templates_of(managed_seed_set), collisions)
    metadata: Document = {
        "name": name,
        "namespace": section(managed_seed_set, "metadata").get("namespace"),
        "labels": {**section(template, "metadata", "labels"), REVISION_LABEL: revision},
        "ownerReferences": [controller_reference(managed_seed_set)],
    }
    if annotations := section(template, "metadata", "annotations"):
        metadata["annotations"] = dict(annotations)
    return metadata


def _named_domain(document: Document, path: Sequence[str], name: str) -> Document:
    """The document with `replica-name` replaced in the `domain` at a path; the same object where there is none."""
    if not path:
        domain = document.get("domain")
        if not isinstance(domain, str) or REPLICA_NAME not in domain:
            return document
        return {**document, "domain": domain.replace(REPLICA_NAME, name)}
    below = section(document, path[0])
    named = _named_domain(below, path[1:], name)
    return document if named is below or named == below else {**document, path[0]: named}


def _ready_condition(kind: str, now: str) -> Document:
    return {
        "type": kind,
        "status": TRUE,
        "reason": "Expected",
        "message": "So it will be once the replica stands.",
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }


def _unreserved(quantity: Any, reserved: Any) -> Any:
    """Unreserved part of a resource, to the thousandth; as written when nothing is reserved."""
    if reserved is None:
        return quantity
    unreserved = max(parse_quantity(quantity) - parse_quantity(reserved), Fraction())
    return str(unreserved) if unreserved.denominator == 1 else f"{floor(unreserved * 1000)}m"
