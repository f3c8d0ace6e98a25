"""Admission as it is without configuration: the functions of the default chain."""

from datetime import datetime

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.profile_admission import admit_offered, admit_references
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document

DEFAULT = Admission()
related_queries = DEFAULT.related_queries
mutate = DEFAULT.mutate
admit = DEFAULT.admit
write_guards = DEFAULT.write_guards
admit_deletion = DEFAULT.admit_deletion
deletion_guards = DEFAULT.deletion_guards


def admit_profile(shoot: Document, old: Document | None, related: RelatedObjects, *, now: datetime) -> None:
    """Check a shoot against its profile and bindings, as two plug-ins do."""
    admit_references(shoot, old, related)
    admit_offered(shoot, old, related, now=now)
