"""Classes of new Shoots: those that differ in their names alone, of which admission concludes the same. Pure.

What plug-ins conclude of a new Shoot follows from its manifest, its user, the objects that they read and the instant.
For plug-ins in `BY_CLASS` its name is none of that, so that one Shoot of a class stands for all while the objects have
the same versions and nothing expires. Functions of all other plug-ins are called for each Shoot.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.plugin import Admit, Guards
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.metadata import label_problem
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.garden.seed_management import USE_AS_SEED
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION, OPERATIONS

BY_CLASS = frozenset(
    {
        "NamespaceLifecycle",
        "ResourceReferenceManager",
        "ExtensionValidator",
        "ExtensionLabels",
        "ShootTolerationRestriction",
        "ShootExposureClass",
        "UncheckedTolerations",
        "ShootDNS",
        "ShootManagedSeed",
        "UseAsSeed",
        "ShootQuotaValidator",
        "ShootMutator",
        "SchedulingRequirements",
        "FinalizerRemoval",
        "ShootValidator",
        "DeletionConfirmation",
        "OpenIDConnectPreset",
        "ClusterOpenIDConnectPreset",
        "ShootVPAEnabledByDefault",
    }
)
"""Plug-ins whose rules for a new Shoot without seed, and without `_OWN_ANNOTATIONS`, do not depend on its name.

Warnings may: nothing reads those of a durable request. A plug-in that is new is none of them until it stands here.
"""

_OWN_ANNOTATIONS = frozenset({USE_AS_SEED, EXPIRATION_ANNOTATION, REQUIREMENTS, FORCE_DELETION, *OPERATIONS})
"""About the Shoot itself: a ManagedSeed of its name, an instant against which a Quota is held, operations."""

_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec"})
_METADATA = frozenset({"name", "namespace", "labels", "annotations"})
_PROFILES = ("cloudprofile", "namespacedcloudprofile")


class ClassKey(NamedTuple):
    """All that admission reads of a new Shoot but its name; texts are JSON."""

    frame: bytes
    """The order of fields, the API version, and the metadata under an empty name."""
    spec: bytes
    user: str
    validation: FieldValidation


class ManifestText(NamedTuple):
    """A manifest as JSON: in parts, and whole."""

    parts: Mapping[str, bytes]

    @property
    def whole(self) -> bytes:
        """The manifest as `encode` writes it."""
        return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), text) for name, text in self.parts.items())


def may_be_of_class(given: Document) -> bool:
    """True for a new Shoot with nothing out of the common, nor about itself alone; its labels may be invalid."""
    metadata, spec = given.get("metadata"), given.get("spec")
    if not (isinstance(metadata, dict) and isinstance(spec, dict) and given.get("kind") == "Shoot"):
        return False
    metadata = cast("Document", metadata)
    if not (_FIELDS.issuperset(given) and _METADATA.issuperset(metadata)) or "seedName" in spec:
        return False
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    if not (isinstance(labels, dict) and isinstance(annotations, dict) and _OWN_ANNOTATIONS.isdisjoint(annotations)):  # pyright: ignore[reportUnknownArgumentType]
        return False
    return isinstance(metadata.get("namespace"), str) and is_plain_name(metadata.get("name"))


def is_plain_name(name: object) -> bool:
    """True for a valid name of a Shoot."""
    return isinstance(name, str) and "--" not in name and not label_problem(name)


def class_key(
    given: Document, sent: Document, text: ManifestText, *, user: str, validation: FieldValidation
) -> ClassKey | None:
    """The class of a Shoot that `may_be_of_class`; None where something that it states is left out.

    `sent` is the manifest `without_system_fields`, and `text` the same as JSON.
    """
    metadata = sent["metadata"]
    if metadata.get("labels") != given["metadata"].get("labels"):
        return None
    if b"null" in text.parts["spec"] or b"null" in text.parts["metadata"]:
        return None
    frame = encode([*sent, sent["apiVersion"], {**metadata, "name": ""}])
    return ClassKey(frame, text.parts["spec"], user, validation)


def manifest_text(sent: Document, spec: bytes | None = None) -> ManifestText:
    """A manifest as JSON, whose fields have plain names; `spec`: that of its spec, where it is known."""
    parts = {name: spec if name == "spec" and spec is not None else encode(value) for name, value in sent.items()}
    return ManifestText(parts)


class FunctionsByName(NamedTuple):
    """Functions of the plug-ins that are no part of a class: they are called for each Shoot."""

    admit: tuple[Admit, ...]
    guards: tuple[Guards, ...]


def functions_by_name(admission: Admission) -> FunctionsByName | None:
    """Functions for each Shoot; None where one of their plug-ins mutates or reads, so that there are no classes."""
    rules = [
        rule
        for plugin in admission.plugins
        if plugin.name not in BY_CLASS
        for rule in plugin.rules
        if not rule.kinds or "Shoot" in rule.kinds
    ]
    if any(rule.mutate is not None or rule.queries is not None for rule in rules):
        return None
    return FunctionsByName(
        tuple(dict.fromkeys(rule.admit for rule in rules if rule.admit is not None)),
        tuple(dict.fromkeys(rule.guards for rule in rules if rule.guards is not None)),
    )


ReadVersions = tuple[object, ...]
"""The objects that admission has read, by their versions, which are never used twice."""


def read_versions(related: RelatedObjects) -> ReadVersions | None:
    """The versions of all that was read; None for what has none, or changes with each Shoot (the demand on a Quota)."""
    if related.demands or related.managed_seeds or related.shoots_on or related.profiles_below:
        return None
    listed = [*related.objects.values(), *related.projects.values(), *_each(related.all_of.values())]
    versions = tuple(_version(document) for document in listed)
    if None in versions:
        return None
    kinds = tuple((kind, len(documents)) for kind, documents in related.all_of.items())
    return (*related.objects, *related.projects, *kinds, *versions)


def _each(lists: Any) -> Iterator[Document]:
    for documents in cast("Sequence[Sequence[Document]]", lists):
        yield from documents


def _version(document: Document) -> tuple[Any, Any] | None:
    metadata = section(document, "metadata")
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if uid and version else None


def next_expiration(related: RelatedObjects, now: datetime) -> datetime | None:
    """The next instant at which something in the profiles that were read expires; None where nothing does."""
    profiles = [document for key, document in related.objects.items() if key.kind in _PROFILES]
    return min((instant for profile in profiles for instant in _expirations(profile) if instant > now), default=None)


def _expirations(value: Any) -> Iterator[datetime]:
    """The instants of all `expirationDate` in a value, as `is_expired` reads them."""
    left: list[Any] = [value]
    while left:
        here = left.pop()
        if isinstance(here, dict):
            mapping = cast("Document", here)
            left += mapping.values()
            instant = _instant(mapping.get("expirationDate"))
            if instant is not None:
                yield instant
        elif isinstance(here, list):
            left += cast("list[Any]", here)


def _instant(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
