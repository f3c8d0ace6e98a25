"""Admission plug-ins: rules for kinds of objects, whose functions the chain calls."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document
from gardenbus.common.ports.store import WritePrecondition

NOTHING_EXPIRED = datetime.min.replace(tzinfo=UTC)
"""An instant before every expiration."""


VerbCheck = Callable[[Document | None, Document], None]
"""Raises Forbidden for a change (what is stored, what it shall become) that takes a verb which its sender lacks."""


def any_verb(_old: Document | None, _new: Document) -> None:
    """Allow any change."""


class Change(NamedTuple):
    """A creation or an update under admission."""

    given: Document
    """The manifest before any plug-in."""
    old: Document | None
    """The stored manifest; None: a creation."""
    user: str
    now: datetime = NOTHING_EXPIRED
    check_verbs: VerbCheck = any_verb


Queries = Callable[[Document, Document | None], Sequence[RelatedQuery]]
Mutate = Callable[[Document, Change, RelatedObjects], Document]
Warn = Callable[[Document, Change, RelatedObjects], Sequence[str]]
Admit = Callable[[Document, Change, RelatedObjects], None]
Guards = Callable[[Document, Change, RelatedObjects], Sequence[WritePrecondition]]
DeletionQueries = Callable[[Document], Sequence[RelatedQuery]]
AdmitDeletion = Callable[[Document, str | None, RelatedObjects], None]
DeletionGuards = Callable[[Document], Sequence[WritePrecondition]]
OutcomeT = TypeVar("OutcomeT")


def of_stored(
    function: Callable[[Document, Document | None, RelatedObjects], OutcomeT],
) -> Callable[[Document, Change, RelatedObjects], OutcomeT]:
    """A rule's function out of one that needs of the change only what is stored."""
    return lambda document, change, related: function(document, change.old, related)


class AdmissionRule(NamedTuple):
    """A rule of a plug-in for some kinds; of the functions it has those that it needs.

    `mutate` and `warn` take any manifest whose metadata is valid; `admit` and `guards` one that is valid. They see what
    `queries` found. `mutate` raises Forbidden where a default contradicts the manifest and InvalidResource where its
    source is missing; `admit` and `admit_deletion` raise either.
    """

    kinds: tuple[str, ...] = ()
    """(): all kinds."""
    queries: Queries | None = None
    """Other objects that the rule needs, for a manifest and what is stored; few, and none where nothing changes."""
    mutate: Mutate | None = None
    warn: Warn | None = None
    """Warnings to the sender about the manifest as it will be stored."""
    admit: Admit | None = None
    guards: Guards | None = None
    """Conditions on other objects under which what was admitted may be written."""
    deletion_queries: DeletionQueries | None = None
    """Other objects that `admit_deletion` needs, for what is stored."""
    admit_deletion: AdmitDeletion | None = None
    """Checks a deletion by a user; None: by the system itself."""
    deletion_guards: DeletionGuards | None = None
    """Conditions under which an object may be deleted."""


class AdmissionPlugin(NamedTuple):
    """An admission plug-in."""

    name: str
    """Gardener's name; plug-ins of ours have names that it does not use."""
    acts: str
    """Its effect, in one sentence."""
    rules: tuple[AdmissionRule, ...]
    rejections: tuple[RejectionMessage, ...] = ()
    """All sentences with which it may reject something."""
