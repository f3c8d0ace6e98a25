"""ResourceReferenceManager: what an object names exists, and what objects use stays.

Facts: the profile and the bindings of a shoot, what it, a binding or a backup's object names else; the profiles below
one that loses something. Source: `plugin/pkg/global/resourcereferencemanager`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.annotations import creator_warnings, with_creator
from gardenbus.apiserver.domain.named_objects import admit_named_objects, named_object_queries
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.profile_admission import (
    OTHER_BINDING,
    admit_references,
    profile_guards,
    profile_queries,
)
from gardenbus.apiserver.domain.profile_removals import BELOW, STAYS, admit_below, removal_guards, removal_queries
from gardenbus.apiserver.domain.rejection_messages import CHANGED_MEANWHILE, IN_USE, NOT_THERE, RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import is_protected, key_of_document
from gardenbus.common.ports.store import WritePrecondition

_ENTRIES = RejectionMessage("{bucket}: BackupEntries are in it")


def _mutate(document: Document, change: Change, _related: RelatedObjects) -> Document:
    return with_creator(document, change.old, change.user)


def _warn(_document: Document, change: Change, _related: RelatedObjects) -> Sequence[str]:
    return creator_warnings(change.given, change.old, change.user)


def _deletion_guards(stored: Document) -> Sequence[WritePrecondition]:
    if is_protected(stored):
        return ()
    key = key_of_document(stored)
    return (WritePrecondition("references", key.stored, IN_USE(object=key)),)


def _bucket_guards(stored: Document) -> Sequence[WritePrecondition]:
    key = key_of_document(stored)
    return (WritePrecondition("references", key.stored, _ENTRIES(bucket=key)),)


_NAMING = (
    *("Shoot", "Seed", "SecretBinding", "CredentialsBinding", "BackupBucket", "BackupEntry"),
    "ControllerRegistration",
)
"""Kinds of which something that they name has to be there."""

PLUGIN = AdmissionPlugin(
    name="ResourceReferenceManager",
    acts="records the creator; rejects an object that names what does not exist; keeps what is in use",
    rejections=(NOT_THERE, OTHER_BINDING, CHANGED_MEANWHILE, STAYS, BELOW, IN_USE, _ENTRIES),
    rules=(
        AdmissionRule(mutate=_mutate, warn=_warn),
        AdmissionRule(
            ("Shoot",), queries=profile_queries, admit=of_stored(admit_references), guards=of_stored(profile_guards)
        ),
        AdmissionRule(_NAMING, queries=named_object_queries, admit=of_stored(admit_named_objects)),
        AdmissionRule(
            ("CloudProfile",), queries=removal_queries, admit=of_stored(admit_below), guards=of_stored(removal_guards)
        ),
        AdmissionRule(("NamespacedCloudProfile",), guards=of_stored(removal_guards)),
        AdmissionRule(
            ("CloudProfile", "NamespacedCloudProfile", "ExposureClass", "SecretBinding", "CredentialsBinding"),
            deletion_guards=_deletion_guards,
        ),
        AdmissionRule(("BackupBucket",), deletion_guards=_bucket_guards),
    ),
)
