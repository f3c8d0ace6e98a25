"""The condition ExtensionsReady of a Seed, by the conditions of the ControllerInstallations on it.

Source: Gardener's `pkg/controllermanager/controller/seed/extensionscheck`.
"""

from collections.abc import Iterable, Mapping

from gardenbus.common.api.conditions import FALSE, TRUE, build_condition, conditions_of, get_condition, get_or_init
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.extensions import EXTENSIONS_READY, INSTALLATION_CONDITIONS

_BAD = {
    "Valid": ("NotAllExtensionsValid", "Some extensions are not valid: {}"),
    "Installed": ("NotAllExtensionsInstalled", "Some extensions are not installed: {}"),
    "Healthy": ("NotAllExtensionsHealthy", "Some extensions are not healthy: {}"),
    "Progressing": ("SomeExtensionsProgressing", "Some extensions are progressing: {}"),
}
"""Reason and message of a Seed, by the first condition that some installation does not meet."""

_NOT_YET = "extension was not yet installed"
_INCOMPLETE = "not all required conditions found in ControllerInstallation"


def with_extensions_ready(seed: Document, installations: Iterable[Document], now: str) -> Document:
    """The Seed with the condition as it should be; the same document where it is."""
    status, reason, message = _finding(installations)
    conditions = conditions_of(seed)
    before = get_or_init(conditions, EXTENSIONS_READY, now)
    new, _ = build_condition(before, now=now, status=status, reason=reason, message=message)
    if new in conditions:
        return seed
    return _with_conditions(seed, [*_others(seed), new])


def without_extensions_ready(seed: Document) -> Document:
    """The Seed without the condition; the same document where it has none."""
    if get_condition(conditions_of(seed), EXTENSIONS_READY) is None:
        return seed
    return _with_conditions(seed, _others(seed))


def _finding(installations: Iterable[Document]) -> tuple[str, str, str]:
    problems: dict[str, dict[str, str]] = {kind: {} for kind in INSTALLATION_CONDITIONS}
    for installation in installations:
        if (problem := _problem(installation)) is not None:
            kind, text = problem
            problems[kind][name_of(installation)] = text
    for kind, texts in problems.items():
        if texts:
            reason, message = _BAD[kind]
            return FALSE, reason, message.format(_as_map(texts))
    return TRUE, "AllExtensionsReady", "All extensions installed into the seed cluster are ready and healthy."


def _problem(installation: Document) -> tuple[str, str] | None:
    """The first condition that an installation does not meet, and its message."""
    conditions = conditions_of(installation)
    if not conditions:
        return "Installed", _NOT_YET
    found = {kind: get_condition(conditions, kind) for kind in INSTALLATION_CONDITIONS}
    for kind, condition in found.items():
        wanted = FALSE if kind == "Progressing" else TRUE
        if condition is not None and condition.get("status") != wanted:
            return kind, str(condition.get("message") or "")
    return ("Healthy", _INCOMPLETE) if None in found.values() else None


def _as_map(texts: Mapping[str, str]) -> str:
    """A mapping as Go prints it: in the order of its keys."""
    return f"map[{' '.join(f'{name}:{text}' for name, text in sorted(texts.items()))}]"


def _others(seed: Document) -> list[Document]:
    return [each for each in conditions_of(seed) if each.get("type") != EXTENSIONS_READY]


def _with_conditions(seed: Document, conditions: list[Document]) -> Document:
    return {**seed, "status": {**section(seed, "status"), "conditions": conditions}}
