"""Checks of what changes: what is wrong in the stored object already stands in the way of no other change of it.

As in Kubernetes' ratcheting validation. An entry of a list may have moved: places in lists are not compared.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem

_PLACE = re.compile(r"\[[0-9]+\]")
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def check_new(cursor: FieldCursor, before: Document, check: Callable[[FieldCursor], None]) -> None:
    """Note what a check finds at a place, except for what it finds in the stored content of that place as well."""
    if not before:
        check(cursor)
        return
    found = _problems(cursor, check)
    earlier = _problems(FieldCursor(before, cursor.path, cursor.errors), check) if found else ()
    stored = {(_PLACE.sub("", problem.field), problem.message) for problem in earlier}
    for problem in found:
        if (_PLACE.sub("", problem.field), problem.message) not in stored:
            cursor.errors.add_error(problem.field, problem.message)


def without_stored(document: Document, old: Document, check: Callable[[Document, FieldErrors], None]) -> FieldErrors:
    """Problems of a changed object, without those that the stored one has, and that are unchanged, wherever they are.

    Each stored problem excuses one: the same mistake in a further entry is a new one.
    """
    found, earlier, new = FieldErrors(sys.maxsize), FieldErrors(sys.maxsize), FieldErrors()
    check(document, found)
    check(old, earlier)
    stored = Counter(_mistake(problem, old) for problem in earlier.problems)
    for problem in found.problems:
        mistake = _mistake(problem, document)
        if stored[mistake]:
            stored[mistake] -= 1
        else:
            new.add_error(problem.field, problem.message)
    return new


def _mistake(problem: FieldProblem, document: Document) -> tuple[str, str, Any]:
    """A problem without places in lists, and with the value that it is about where that is no mapping or list."""
    value: Any = document
    for name, place in _STEP.findall(problem.field):
        if isinstance(value, list):
            entries = cast("list[Any]", value)
            value = entries[int(place)] if place.isdecimal() and int(place) < len(entries) else None
        else:
            value = cast("Document", value).get(name or place) if isinstance(value, dict) else None
    scalar = None if isinstance(value, dict | list) else value
    return _PLACE.sub("", problem.field), problem.message, scalar


def has_spec(old: Document | None) -> bool:
    """True where an object needs a spec: a new one, and one that has it already."""
    return old is None or old.get("spec") is not None


def _problems(cursor: FieldCursor, check: Callable[[FieldCursor], None]) -> Collection[FieldProblem]:
    errors = FieldErrors()
    check(FieldCursor(cursor.content, cursor.path, errors, is_present=cursor.is_present))
    return errors.problems
