"""Typed views of documents, decoded leniently (unknown fields pass, null counts as absent)."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar, cast

import msgspec

from gardenbus.common.api.decoding import decode_json, json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem, InvalidResource

T = TypeVar("T")


class TypedView(msgspec.Struct, frozen=True, rename="camel"):
    """Base of structs with the fields of a manifest that are read here. Views are never written back."""

    @classmethod
    def from_document(cls, document: Document | bytes) -> Self:
        """Read one; raises InvalidResource with the path of the first field whose type is wrong."""
        return read_view(document, cls)


class Metadata(TypedView, frozen=True):
    """Fields of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class ObjectView(TypedView, frozen=True):
    """View of a whole object, of any kind."""

    metadata: Metadata

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def is_deleting(self) -> bool:
        """True when deletion was requested and finalizers delay it."""
        return self.metadata.deletion_timestamp is not None


class ConditionView(TypedView, frozen=True):
    """Fields of a condition."""

    type: str = ""
    """Type of the condition, as `GardenletReady`."""

    status: str = ""
    """`True`, `False`, `Unknown` or `Progressing`."""

    reason: str = ""
    """Reason for the status, in one word."""

    message: str = ""
    """Reason for the status, in a sentence."""


ConditionT = TypeVar("ConditionT", bound=ConditionView)


class LastOperation(TypedView, frozen=True):
    """Fields of status.lastOperation."""

    type: str = ""
    """`Create`, `Reconcile`, `Delete`, `Migrate` or `Restore`."""

    state: str = ""
    """`Pending`, `Processing`, `Succeeded`, `Error`, `Failed` or `Aborted`."""

    progress: int | float = 0
    """Percent."""

    description: str = ""
    """Current task; for an unschedulable shoot, the number of candidate seeds and the reasons of each."""

    last_update_time: str = ""
    """Time of the last update."""


def condition_in(conditions: Iterable[ConditionT], kind: str) -> ConditionT | None:
    """The condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def read_view(document: Document | bytes, view: type[T]) -> T:
    """Read a view; raises InvalidResource with the path of the first field whose type is wrong."""
    try:
        if isinstance(document, bytes):
            return decode_json(document, view)
        return msgspec.convert(document, view)
    except msgspec.ValidationError:
        plain = json_decoder()(document) if isinstance(document, bytes) else document
    try:
        return msgspec.convert(_without_nulls(plain), view)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        field = path.strip("`").removeprefix("$").removeprefix(".")
        raise InvalidResource(f"{field}: {message}", (FieldProblem(field, message),)) from error


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: for reading documents nobody has checked."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    return value
