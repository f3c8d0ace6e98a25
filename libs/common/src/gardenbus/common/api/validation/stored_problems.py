"""Checks of what changes: what is wrong in the stored object already stands in the way of no other change of it.

As in Kubernetes' ratcheting validation. An entry of a list may have moved: places in lists are not compared.
"""

import re
from collections.abc import Callable, Collection

from gardenbus.common.api.document import Document
from gardenbus.common.api.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.common.errors import FieldProblem

_PLACE = re.compile(r"\[[0-9]+\]")


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


def has_spec(old: Document | None) -> bool:
    """True where an object needs a spec: a new one, and one that has it already."""
    return old is None or old.get("spec") is not None


def _problems(cursor: FieldCursor, check: Callable[[FieldCursor], None]) -> Collection[FieldProblem]:
    errors = FieldErrors()
    check(FieldCursor(cursor.content, cursor.path, errors, is_present=cursor.is_present))
    return errors.problems
