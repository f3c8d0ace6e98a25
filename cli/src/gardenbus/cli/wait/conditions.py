"""Wait conditions of `--for`. Pure.

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

from gardenbus.cli.client.summaries import summarize_set, summarize_shoot
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.jsonpath import parse_path, text_of, values_at
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.errors import BadRequest

WaitPredicate = Callable[[Document | None], bool]


class WaitCondition(NamedTuple):
    """One condition. `reached` gets the document, or None when the object does not exist."""

    text: str
    reached: WaitPredicate
    past: str
    """Words once it is met: `condition met`, `deleted`, …."""

    @property
    def unmet(self) -> str:
        """The word after `not`, where the condition is not met."""
        return self.past if self.text in ("delete", "create") else self.text


def parse_condition(text: str) -> WaitCondition:
    """Parse the value of `--for`. Raises BadRequest with the conditions that exist."""
    kind, _, rest = text.partition("=")
    if kind == "condition" and rest:
        return _status_condition(text, rest)
    if kind == "jsonpath" and rest:
        return _path_condition(text, rest)
    match text.lower():
        case "scheduled":
            return WaitCondition(text, is_scheduled, "scheduled")
        case "reconciled":
            return WaitCondition(text, is_reconciled, "reconciled")
        case "delete":
            return WaitCondition(text, _is_gone, "deleted")
        case "create":
            return WaitCondition(text, _is_there, "created")
        case _:
            there_is = "condition=TYPE[=STATUS], scheduled, reconciled, delete, create, jsonpath={.path}[=VALUE]"
            raise BadRequest(f"--for {text!r}: there is {there_is}")


def _is_gone(document: Document | None) -> bool:
    return document is None


def _is_there(document: Document | None) -> bool:
    return document is not None


def _status_condition(text: str, rest: str) -> WaitCondition:
    wanted, _, status = rest.partition("=")
    expected = (status or "True").lower()

    def reached(document: Document | None) -> bool:
        return document is not None and _status_of(document, wanted).lower() == expected

    return WaitCondition(text, reached, "condition met")


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


def _path_condition(text: str, rest: str) -> WaitCondition:
    path, value = _path_and_value(rest)
    steps = parse_path(path)

    def reached(document: Document | None) -> bool:
        found = [] if document is None else values_at(steps, document)
        return any(value is None or text_of(each) == value for each in found)

    return WaitCondition(text, reached, "condition met")


def _path_and_value(text: str) -> tuple[str, str | None]:
    """`{.a[?(@.b=="c")]}=v` in two; "=" inside of the braces belongs to the path."""
    if text.startswith("{"):
        closing = text.rfind("}")
        path, rest = text[: closing + 1], text[closing + 1 :]
        return path, rest.removeprefix("=") if rest else None
    path, equals, value = text.partition("=")
    return path, value if equals else None


def is_scheduled(document: Document | None) -> bool:
    """True when a shoot has its seed."""
    return document is not None and bool(summarize_shoot(document).seed)


def is_reconciled(document: Document | None) -> bool:
    """True when the present generation has been carried out."""
    if document is None:
        return False
    if document.get("kind") == "Shoot":
        return summarize_shoot(document).is_reconciled
    if document.get("kind") == "ManagedSeedSet":
        return summarize_set(document).is_converged
    metadata, status = as_mapping(document.get("metadata")), as_mapping(document.get("status"))
    observed = status.get("observedGeneration")
    return observed is not None and observed == metadata.get("generation")


def failure_message(document: Document | None) -> str:
    """Description of a Failed operation, which needs help; "" otherwise."""
    operation = as_mapping(as_mapping((document or {}).get("status")).get("lastOperation"))
    return str(operation.get("description") or "no reason given") if operation.get("state") == "Failed" else ""


def has_given_up(document: Document | None) -> bool:
    """True if a Failed operation is about the object as it is wanted now, and not one from before its last change."""
    metadata, status = as_mapping((document or {}).get("metadata")), as_mapping((document or {}).get("status"))
    is_of_deletion = as_mapping(status.get("lastOperation")).get("type") == "Delete"
    is_current = status.get("observedGeneration") in (None, metadata.get("generation"))
    return bool(failure_message(document)) and is_current and (is_of_deletion or not metadata.get("deletionTimestamp"))


def progress_text(document: Document | None) -> str:
    """Last state in a few words, for a wait that timed out."""
    if document is None:
        return "not there"
    operation = as_mapping(as_mapping(document.get("status")).get("lastOperation"))
    if not operation:
        return "nothing reported yet"
    words = f"{operation.get('type')} {operation.get('state')} {operation.get('progress') or 0}%"
    return f"{words}: {operation.get('description')}" if operation.get("description") else words
