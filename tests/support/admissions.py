"""Admission as it is without configuration: the functions of the default chain."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.profile_admission import admit_offered, admit_references
from gardenbus.apiserver.domain.related_objects import KindQuery, ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document
from gardenbus.common.ports.store import WritePrecondition

DEFAULT = Admission()
all_related_queries = DEFAULT.related_queries
mutate = DEFAULT.mutate
admit = DEFAULT.admit
write_guards = DEFAULT.write_guards
admit_deletion = DEFAULT.admit_deletion
deletion_guards = DEFAULT.deletion_guards


def related_queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """The queries of a change, but for what is read with all of a kind.

    These are the Namespace of each new object, and registrations and presets for each changed Shoot and Seed.
    """
    queries = all_related_queries(document, old)
    is_cluster = document.get("kind") in ("Shoot", "Seed")
    return tuple(
        query
        for query in queries
        if not (is_cluster and isinstance(query, KindQuery))
        and not (isinstance(query, ObjectQuery) and query.key.kind == "namespace")
    )


def uncounted_write_guards(
    document: Document, old: Document | None, related: RelatedObjects
) -> Sequence[WritePrecondition]:
    """The guards of a write, but for that of the ResourceQuotas, which every creation has."""
    return tuple(guard for guard in write_guards(document, old, related) if guard.kind != "quota")


def admit_profile(shoot: Document, old: Document | None, related: RelatedObjects, *, now: datetime) -> None:
    """Check a shoot against its profile and bindings, as two plug-ins do."""
    admit_references(shoot, old, related)
    admit_offered(shoot, old, related, now=now)
