"""Rules that a stored object breaks by now. What only holds for new objects is none of them."""

import re
from collections.abc import Mapping

from gardenbus.apiserver.domain.operations import without_operation
from gardenbus.apiserver.domain.validation.manifest import KINDS_WITH_RULES, problems_of_new
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import without
from gardenbus.common.errors import FieldProblem, GardenbusError, InvalidResource

HAVE_RULES = frozenset(kind.lower() for kind in KINDS_WITH_RULES)
"""Kinds with rules of their own, in lower case."""

_PLACE = re.compile(r"\[[0-9]+\]")


def rules_broken_by(stored: Document) -> Mapping[str, str]:
    """The fields of a stored object that break a rule, without places in lists, each with its first problem."""
    found: dict[str, str] = {}
    for problem in (*_problems_of_metadata(stored), *problems_of_new(_as_new(stored))):
        found.setdefault(_PLACE.sub("[]", problem.field), problem.message)
    return found


def _problems_of_metadata(stored: Document) -> tuple[FieldProblem, ...]:
    try:
        key_of(stored)
    except InvalidResource as error:
        return error.problems
    except GardenbusError as error:
        return (FieldProblem("metadata", error.message),)
    return ()


def _as_new(stored: Document) -> Document:
    """The object without what controllers have put on it, which no new one may bring along."""
    document = without_operation(stored)
    return {**document, "metadata": without(document["metadata"], "finalizers")}
