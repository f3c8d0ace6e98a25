"""What can be waited for, and whether a document has come to it. Pure.

| goal | reached when |
|---|---|
| `condition=TYPE[=STATUS]` | the condition has this status (default True; upper or lower case) |
| `scheduled` | spec.seedName is set |
| `reconciled` | its gardenlet or controller has carried out what stands in the manifest now |
| `delete` | it is gone |
| `create` | it is there |
| `jsonpath=PATH[=VALUE]` | the path leads to this value (without one: to anything) |
"""

from collections.abc import Callable
from typing import NamedTuple

from gardenbus.cli.documents import as_mapping
from gardenbus.cli.jsonpath import parse_path, text_of, values_at
from gardenbus.cli.rows import condition, set_row, shoot_row
from gardenbus.common.errors import BadRequest
from gardenbus.common.resources.document import Document

Reached = Callable[[Document | None], bool]


class Goal(NamedTuple):
    """One goal. `reached` is asked with the document, or None when the object is not there."""

    text: str
    reached: Reached
    past: str
    """How it is told: `condition met`, `deleted`, …."""


def parse_goal(text: str) -> Goal:
    """Read the value of `--for`. Raises BadRequest with what there is."""
    kind, _, rest = text.partition("=")
    if kind == "condition" and rest:
        return _condition_goal(text, rest)
    if kind == "jsonpath" and rest:
        return _path_goal(text, rest)
    match text.lower():
        case "scheduled":
            return Goal(text, is_scheduled, "scheduled")
        case "reconciled":
            return Goal(text, is_reconciled, "reconciled")
        case "delete":
            return Goal(text, _is_gone, "deleted")
        case "create":
            return Goal(text, _is_there, "created")
        case _:
            there_is = "condition=TYPE[=STATUS], scheduled, reconciled, delete, create, jsonpath={.path}[=VALUE]"
            raise BadRequest(f"--for {text!r}: there is {there_is}")


def _is_gone(document: Document | None) -> bool:
    return document is None


def _is_there(document: Document | None) -> bool:
    return document is not None


def _condition_goal(text: str, rest: str) -> Goal:
    wanted, _, status = rest.partition("=")
    expected = (status or "True").lower()

    def reached(document: Document | None) -> bool:
        return document is not None and _status_of(document, wanted).lower() == expected

    return Goal(text, reached, "condition met")


def _status_of(document: Document, wanted: str) -> str:
    conditions = as_mapping(document.get("status")).get("conditions")
    named = next(
        (
            each.get("type")
            for each in map(as_mapping, conditions if isinstance(conditions, list) else ())  # pyright: ignore[reportUnknownArgumentType]
            if str(each.get("type")).lower() == wanted.lower()
        ),
        wanted,
    )
    return str(condition(document, str(named)).get("status") or "")


def _path_goal(text: str, rest: str) -> Goal:
    path, value = _path_and_value(rest)
    steps = parse_path(path)

    def reached(document: Document | None) -> bool:
        found = [] if document is None else values_at(steps, document)
        return any(value is None or text_of(each) == value for each in found)

    return Goal(text, reached, "condition met")


def _path_and_value(text: str) -> tuple[str, str | None]:
    """`{.a[?(@.b=="c")]}=v` in two; "=" inside of the braces belongs to the path."""
    if text.startswith("{"):
        closing = text.rfind("}")
        path, rest = text[: closing + 1], text[closing + 1 :]
        return path, rest.removeprefix("=") if rest else None
    path, equals, value = text.partition("=")
    return path, value if equals else None


def is_scheduled(document: Document | None) -> bool:
    """Whether a shoot has its seed."""
    return document is not None and bool(shoot_row(document).seed)


def is_reconciled(document: Document | None) -> bool:
    """Whether what stands in the manifest has been carried out."""
    if document is None:
        return False
    if document.get("kind") == "Shoot":
        return shoot_row(document).is_reconciled
    if document.get("kind") == "ManagedSeedSet":
        return set_row(document).is_settled
    metadata, status = as_mapping(document.get("metadata")), as_mapping(document.get("status"))
    observed = status.get("observedGeneration")
    return observed is not None and observed == metadata.get("generation")


def failure_of(document: Document | None) -> str:
    """Why it will not come to anything without help: a Failed operation's description; "" otherwise."""
    operation = as_mapping(as_mapping((document or {}).get("status")).get("lastOperation"))
    return str(operation.get("description") or "no reason given") if operation.get("state") == "Failed" else ""


def standing_of(document: Document | None) -> str:
    """Where it stands, in a few words, for who has waited in vain."""
    if document is None:
        return "not there"
    operation = as_mapping(as_mapping(document.get("status")).get("lastOperation"))
    if not operation:
        return "nothing reported yet"
    words = f"{operation.get('type')} {operation.get('state')} {operation.get('progress') or 0}%"
    return f"{words}: {operation.get('description')}" if operation.get("description") else words
