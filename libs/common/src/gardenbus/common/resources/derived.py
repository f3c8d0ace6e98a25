"""What the store indexes an object by, and what a change of it means to others: computed from the document alone.

The store's functions parse no manifest, so every writer computes these the same way, here.
"""

import re
from typing import Any, NamedTuple, cast

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.seeds import gate_content, may_gain, removal_mark, shoot_capacity

DEFAULT_SCHEDULER_NAME = "default-scheduler"
FINALIZER = "gardener"
REGION_CONFIG_LABEL = ("scheduling.gardener.cloud/purpose", "region-config")

GAIN_KINDS = ("seed", "cloudprofile", "namespacedcloudprofile", "project", "configmap")
"""Kinds whose changes can make a shoot fit that did not; their announcements carry the gain counter."""

_UID = re.compile(r"[0-9A-Za-z][-0-9A-Za-z]{0,127}")

FOLLOWING_KINDS = ("managedseed", "shootstate")
"""Kinds that are shown to the gardenlets of a shoot's seeds, wherever it goes."""


class Derived(NamedTuple):
    """Index values of one object. Owners are uids; references are `ObjectKey.stored`; claims are free-form."""

    scheduler_name: str = ""  # Shoot: whose queue it waits in; "" when it hosts its own control plane and needs no seed
    capacity: str = ""  # Seed: how many shoots it takes; "" is without limit
    references: tuple[str, ...] = ()  # objects that must not be deleted before this one
    owners: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()  # what only one object may have
    mark: str = ""  # Seed: on whose behalf it is about to be removed; "" while it is to stay


class Meaning(NamedTuple):
    """What a change means to others.

    `gate`: what was decided on this Seed before must be decided anew; `gain`: somebody may fit now that did not.
    """

    gate: bool
    gain: bool


def derive(document: Document) -> Derived:
    """Compute the index values of a manifest that passed validation."""
    metadata, spec = section(document, "metadata"), section(document, "spec")
    owners = tuple(
        owner["uid"] for owner in metadata.get("ownerReferences") or () if owner.get("uid") and is_uid(owner["uid"])
    )
    match document["kind"]:
        case "Shoot":
            return Derived(
                scheduler_name="" if _hosts_itself(spec) else spec.get("schedulerName") or DEFAULT_SCHEDULER_NAME,
                references=_shoot_references(metadata["namespace"], spec),
                owners=owners,
            )
        case "Seed":
            capacity = shoot_capacity(document)
            return Derived(
                capacity="" if capacity is None else str(capacity), owners=owners, mark=removal_mark(document)
            )
        case "Project":
            namespace = spec.get("namespace")
            return Derived(claims=(f"namespace/{namespace}",) if namespace else (), owners=owners)
        case "NamespacedCloudProfile":
            parent = section(spec, "parent").get("name")
            references = (ObjectKey("cloudprofile", "", parent).stored,) if parent else ()
            return Derived(references=references, owners=owners)
        case "ManagedSeed":
            namespace, shoot = metadata["namespace"], section(spec, "shoot").get("name")
            if not shoot:
                return Derived(owners=owners)
            return Derived(
                references=(ObjectKey("shoot", namespace, shoot).stored,),
                owners=owners,
                claims=(f"managedseed-shoot/{namespace}/{shoot}",),
            )
        case "SeedAutoscaler":
            target = section(spec, "scaleTargetRef").get("name")
            claims = (f"seedautoscaler-target/{metadata['namespace']}/{target}",) if target else ()
            return Derived(owners=owners, claims=claims)
        case _:
            return Derived(owners=owners)


def is_uid(text: str) -> bool:
    """Whether an object could have this uid: the store makes UUIDs, and work for an owner is queued by its uid."""
    return _UID.fullmatch(text) is not None


def followed_shoot(key: ObjectKey, derived: Derived) -> ObjectKey | None:
    """The shoot to whose seeds an object is shown: a ManagedSeed's spec.shoot, the shoot of a ShootState's name."""
    if key.kind == "shootstate":
        return ObjectKey("shoot", key.namespace, key.name)
    if key.kind == "managedseed" and derived.references:
        return ObjectKey.from_stored(derived.references[0])
    return None


def _hosts_itself(spec: Document) -> bool:
    """Whether one of a shoot's worker pools carries its control plane: no scheduler is asked then."""
    workers: Any = section(spec, "provider").get("workers")
    pools = cast("list[Any]", workers) if isinstance(workers, list) else []
    return any(isinstance(pool, dict) and cast("Document", pool).get("controlPlane") is not None for pool in pools)


def _shoot_references(namespace: str, spec: Document) -> tuple[str, ...]:
    references = [ObjectKey("namespace", "", namespace).stored]
    profile = section(spec, "cloudProfile")
    name = profile.get("name") or spec.get("cloudProfileName")
    if name:
        namespaced = profile.get("name") and profile.get("kind") == "NamespacedCloudProfile"
        kind, scope = ("namespacedcloudprofile", namespace) if namespaced else ("cloudprofile", "")
        references.append(ObjectKey(kind, scope, name).stored)
    if exposure_class := spec.get("exposureClassName"):
        references.append(ObjectKey("exposureclass", "", exposure_class).stored)
    return tuple(references)


def meaning_of(kind: str, old: Document | None, new: Document | None) -> Meaning:
    """Tell what a creation (`old` None), change or removal (`new` None) of an object means to pending shoots."""
    if kind == "seed":
        gate = old is None or (new is not None and gate_content(old) != gate_content(new))
        return Meaning(gate=gate, gain=may_gain(old, new))
    if kind not in GAIN_KINDS or (kind == "configmap" and not (_is_region_config(old) or _is_region_config(new))):
        return Meaning(gate=False, gain=False)
    return Meaning(gate=False, gain=_decisive(old) != _decisive(new))


def _is_region_config(document: Document | None) -> bool:
    name, value = REGION_CONFIG_LABEL
    return document is not None and section(document, "metadata", "labels").get(name) == value


def _decisive(document: Document | None) -> object:
    """Everything of a profile, Project or ConfigMap that a decision can read."""
    if document is None:
        return None
    metadata = section(document, "metadata")
    content = [document.get("spec"), document.get("data"), section(document, "status").get("cloudProfileSpec")]
    return [*content, metadata.get("labels"), metadata.get("annotations")]
