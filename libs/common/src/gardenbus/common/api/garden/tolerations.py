"""Effective tolerations of a shoot.

A Project whitelists the tolerations of its shoots, which is checked when a shoot is created. For one that is created
before its namespace belongs to a Project the apiserver lists its unchecked tolerations in an annotation; each of them
counts only while the Project allows it.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.members import Members

UNCHECKED_TOLERATIONS = "gardener.cloud/unchecked-tolerations"
"""Annotation: a JSON list of `{"key", "value"?}`. Only the apiserver changes it."""

_decode = msgspec.json.Decoder(list[Any]).decode


def is_allowed(key: object, value: object, allowed: Container[tuple[object, object]]) -> bool:
    """True when a list allows a toleration: one without value allows its key with any, one with a value exactly that.

    Source: Gardener's admission plugin ShootTolerationRestriction.
    """
    return (key, None) in allowed or (key, value) in allowed


def allowed_by(project: Document) -> Tolerations:
    """Tolerations that a Project allows: its whitelist, and its own defaults."""
    lists = section(project, "spec", "tolerations")
    return tuple(pair for field in ("whitelist", "defaults") for pair in toleration_pairs(lists.get(field)))


def toleration_pairs(tolerations: Any) -> Tolerations:
    """Key and value of each entry of what should be a list of tolerations."""
    listed = cast("list[Any]", tolerations) if isinstance(tolerations, list) else []
    mappings = [cast("Document", entry) for entry in listed if isinstance(entry, dict)]
    return tuple((entry.get("key", ""), entry.get("value")) for entry in mappings)


def unchecked_annotation(tolerations: Sequence[tuple[str, str | None]]) -> str | None:
    """Value of the annotation for unchecked tolerations; None without any."""
    listed_unchecked = [{"key": key} | ({} if value is None else {"value": value}) for key, value in tolerations]
    return encode(listed_unchecked).decode() if listed_unchecked else None


def unchecked_in(annotations: Mapping[str, Any], tolerations: Tolerations) -> Tolerations:
    """Tolerations of a shoot that its annotation lists as unchecked; all of them when it cannot be decoded."""
    annotation = annotations.get(UNCHECKED_TOLERATIONS)
    if annotation is None:
        return ()
    try:
        listed_unchecked = toleration_pairs(_decode(str(annotation)))
    except msgspec.DecodeError:
        return tolerations
    noted = Members(listed_unchecked)
    return tuple(toleration for toleration in tolerations if toleration in noted)


def effective_tolerations(tolerations: Tolerations, unchecked: Tolerations, allowed: Tolerations) -> Tolerations:
    """Tolerations that count where a Project allows `allowed`."""
    if not unchecked:
        return tolerations
    noted, among = Members(unchecked), Members(allowed)
    return tuple(one for one in tolerations if one not in noted or is_allowed(*one, among))
