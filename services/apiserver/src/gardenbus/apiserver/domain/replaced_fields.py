"""Fields that a manifest states and that defaults or plug-ins replaced: its sender is told of each.

A default fills in what is open, and completes what is stated in part (`1.33`). Whatever else happens to a stated value
would be a loss without a word: this is the net below all that mutate. Left out are the status, which no sender states,
and annotations, of which those that the system keeps have warnings of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem

_ABSENT = object()
_OPEN: tuple[object, ...] = (None, "", {}, [])
_LEFT_OUT = frozenset({"status", "metadata.annotations"})


class ReplacedField(NamedTuple):
    """A stated value, and what is stored in its place (`_ABSENT`: nothing)."""

    path: str
    stated: Any
    stored: Any

    @property
    def is_mistyped(self) -> bool:
        """True for a value in whose place there is a mapping or a list: what was filled in below it hides a fault."""
        return any(isinstance(self.stored, kind) and not isinstance(self.stated, kind) for kind in (dict, list))

    @property
    def fault(self) -> str:
        """The sentence about a value of another type."""
        return f"must be {'a mapping' if isinstance(self.stored, dict) else 'a list'}, not {shown(self.stated)}"

    @property
    def warning(self) -> str:
        """The sentence for the sender."""
        if self.stored is _ABSENT:
            return f"{self.path} is ignored: such a value is set here alone"
        return f"{self.path} is ignored: it is set here, to {shown(self.stored)}"


def warnings_of_replaced(given: Document, stored: Document) -> Sequence[str]:
    """The sentences for the sender. Raises InvalidResource for values of another type than what was filled in."""
    replaced = tuple(replaced_fields(given, stored))
    if problems := [FieldProblem(each.path, each.fault) for each in replaced if each.is_mistyped]:
        raise invalid(problems)
    return tuple(each.warning for each in replaced)


def replaced_fields(given: Document, stored: Document) -> Iterator[ReplacedField]:
    """The stated fields of a manifest that it lost on the way; quick where little was copied."""
    for name, value in given.items():
        if value is not (after := stored.get(name, _ABSENT)) and name not in _LEFT_OUT:
            yield from _of_value(value, after, name)


def _of_value(stated: Any, stored: Any, path: str) -> Iterator[ReplacedField]:
    """Those of a value that is not the stored one itself."""
    if path in _LEFT_OUT or stated in _OPEN:
        return
    if isinstance(stated, dict) and isinstance(stored, dict):
        of_stored = cast("Mapping[str, Any]", stored)
        for name, value in cast("Mapping[str, Any]", stated).items():
            if value is not (after := of_stored.get(name, _ABSENT)):
                yield from _of_value(value, after, _member(path, name))
    elif isinstance(stated, list) and isinstance(stored, list):
        yield from _of_list(cast("Sequence[Any]", stated), cast("Sequence[Any]", stored), path)
    elif stated != stored and not _completes(stated, stored):
        yield ReplacedField(path, stated, stored)


def _of_list(stated: Sequence[Any], stored: Sequence[Any], path: str) -> Iterator[ReplacedField]:
    """Entries that are there somewhere are kept; any other is compared with the one in its place."""
    for index, entry in enumerate(stated):
        opposite = stored[index] if index < len(stored) else _ABSENT
        if entry is not opposite and entry not in stored:
            yield from _of_value(entry, opposite, f"{path}[{index}]")


def _completes(stated: Any, stored: Any) -> bool:
    return isinstance(stated, str) and isinstance(stored, str) and stored.startswith(f"{stated.removeprefix('v')}.")


def _member(path: str, name: str) -> str:
    return f"{path}[{name}]" if "." in name or "/" in name else f"{path}.{name}"
