"""Admission: the chain of plug-ins, defaults first, then all that mutate, then, on a valid manifest, all that admit.

The caller fetches what `related_queries` lists, and passes it to `mutate` (before validation) and `admit` (after it).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

import msgspec

from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.plugins.plugin import (
    NOTHING_EXPIRED,
    AdmissionPlugin,
    Admit,
    AdmitDeletion,
    Change,
    DeletionGuards,
    DeletionQueries,
    Guards,
    Mutate,
    Queries,
    VerbCheck,
    Warn,
    any_verb,
)
from gardenbus.apiserver.domain.plugins.table import DEFAULT_PLUGINS
from gardenbus.apiserver.domain.related_objects import RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.replaced_fields import warnings_of_replaced
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity import signing_requests
from gardenbus.common.ports.store import WritePrecondition

NOTHING_RELATED = RelatedObjects()


class Mutated(msgspec.Struct, frozen=True):
    """The manifest to be stored, and warnings for its sender."""

    document: Document
    warnings: tuple[str, ...] = ()


class _Chain(NamedTuple):
    """Functions of the rules for one kind, in the order of their plug-ins; one that several share is called once."""

    queries: tuple[Queries, ...]
    mutate: tuple[Mutate, ...]
    warn: tuple[Warn, ...]
    admit: tuple[Admit, ...]
    guards: tuple[Guards, ...]
    deletion_queries: tuple[DeletionQueries, ...]
    admit_deletion: tuple[AdmitDeletion, ...]
    deletion_guards: tuple[DeletionGuards, ...]


class Admission:
    """Plug-ins in the order in which they act."""

    def __init__(self, plugins: Iterable[AdmissionPlugin] = DEFAULT_PLUGINS) -> None:
        self.plugins = tuple(plugins)
        self._of = cache(self._chain_of)

    def _chain_of(self, kind: str) -> _Chain:
        rules = [rule for plugin in self.plugins for rule in plugin.rules if not rule.kinds or kind in rule.kinds]
        return _Chain(
            *(
                tuple(dict.fromkeys(function for rule in rules if (function := getattr(rule, field)) is not None))
                for field in _Chain._fields
            )
        )

    def related_queries(self, document: Document, old: Document | None) -> Sequence[RelatedQuery]:
        """Queries of the objects that `mutate` and `admit` need; none for a change that touches no rule of theirs."""
        queries = [query for find in self._of(_kind(document)).queries for query in find(document, old)]
        return tuple(dict.fromkeys(queries))

    def mutate(
        self,
        document: Document,
        old: Document | None,
        related: RelatedObjects,
        *,
        user: str,
        now: datetime = NOTHING_EXPIRED,
    ) -> Mutated:
        """Fill in defaults, also those that come from other objects.

        Accepts any manifest whose metadata is valid, also one that validation will reject. Raises Forbidden where
        defaults contradict the manifest, and InvalidResource where the object that they come from is missing.
        """
        change = Change(document, old, user, now)
        chain = self._of(_kind(document))
        document = with_defaults(document)
        if old is None:
            document = with_creation_defaults(document)
        for mutate in chain.mutate:
            document = mutate(document, change, related)
        if _kind(document) == signing_requests.KIND:  # no plug-in: nobody can turn it off
            document = signing_requests.with_requester(document, old, user)
        warnings = [one for warn in chain.warn for one in warn(document, change, related)]
        warnings += warnings_of_replaced(change.given, document)
        return Mutated(document, tuple(warnings))

    def admit(
        self,
        document: Document,
        old: Document | None,
        related: RelatedObjects,
        *,
        user: str = "",
        now: datetime = NOTHING_EXPIRED,
        check_verbs: VerbCheck = any_verb,
    ) -> None:
        """Check a valid manifest against other objects, at an instant. Raises Forbidden or InvalidResource."""
        change = Change(document, old, user, now, check_verbs)
        for admit in self._of(_kind(document)).admit:
            admit(document, change, related)

    def write_guards(
        self, document: Document, old: Document | None, related: RelatedObjects, *, user: str = ""
    ) -> Sequence[WritePrecondition]:
        """Conditions on other objects under which an admitted manifest may be written."""
        change, guards = Change(document, old, user), self._of(_kind(document)).guards
        return tuple(one for find in guards for one in find(document, change, related))

    def guards_of(self, kind: str) -> Sequence[Guards]:
        """The functions whose conditions `write_guards` collects."""
        return self._of(kind).guards

    def deletion_queries(self, stored: Document) -> Sequence[RelatedQuery]:
        """Queries of the objects that `admit_deletion` needs."""
        queries = [query for find in self._of(_kind(stored)).deletion_queries for query in find(stored)]
        return tuple(dict.fromkeys(queries))

    def admit_deletion(
        self, stored: Document, related: RelatedObjects = NOTHING_RELATED, *, user: str | None = None
    ) -> None:
        """Check that an object may be deleted, by a user or (None) by the system itself. Raises Forbidden."""
        for admit in self._of(_kind(stored)).admit_deletion:
            admit(stored, user, related)

    def deletion_guards(self, stored: Document) -> Sequence[WritePrecondition]:
        """The sets that must be empty for this object to be deleted."""
        return tuple(one for find in self._of(_kind(stored)).deletion_guards for one in find(stored))


def _kind(document: Document) -> str:
    return str(document.get("kind"))
