"""Which tolerations of a shoot count.

A Project whitelists what its shoots may tolerate, and that is checked when a shoot is created. One that is created
before its namespace belongs to any Project cannot be checked then: the apiserver notes its tolerations in an
annotation, and as long as they stand there each counts only if the Project allows it by now.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.resources.document import Document, encode, section
from gardenbus.common.resources.fitting import Tolerations

UNCHECKED_TOLERATIONS = "gardener.cloud/unchecked-tolerations"
"""The annotation: a JSON list of `{"key", "value"?}`. Nobody but the apiserver changes it."""

_decode = msgspec.json.Decoder(list[Any]).decode


def is_allowed(key: object, value: object, allowed: Iterable[tuple[object, object]]) -> bool:
    """Whether a list allows a toleration: one without value allows its key with any, one with a value exactly that.

    Source: Gardener's admission plugin ShootTolerationRestriction.
    """
    return any(key == name and (only is None or value == only) for name, only in allowed)


def allowed_by(project: Document) -> Tolerations:
    """What a Project lets its shoots tolerate: its whitelist, and what it gives them itself."""
    lists = section(project, "spec", "tolerations")
    return tuple(pair for field in ("whitelist", "defaults") for pair in pairs(lists.get(field)))


def pairs(tolerations: Any) -> Tolerations:
    """Key and value of each entry of what should be a list of tolerations."""
    listed = cast("list[Any]", tolerations) if isinstance(tolerations, list) else []
    mappings = [cast("Document", entry) for entry in listed if isinstance(entry, dict)]
    return tuple((entry.get("key", ""), entry.get("value")) for entry in mappings)


def unchecked_note(tolerations: Sequence[tuple[str, str | None]]) -> str | None:
    """The annotation's value that notes tolerations as unchecked; None when there is nothing to note."""
    noted = [{"key": key} | ({} if value is None else {"value": value}) for key, value in tolerations]
    return encode(noted).decode() if noted else None


def unchecked_in(annotations: Mapping[str, Any], tolerations: Tolerations) -> Tolerations:
    """Those of a shoot's tolerations that its annotation notes; all of them when the note cannot be read."""
    note = annotations.get(UNCHECKED_TOLERATIONS)
    if note is None:
        return ()
    try:
        noted = pairs(_decode(str(note)))
    except msgspec.DecodeError:
        return tolerations
    return tuple(toleration for toleration in tolerations if toleration in noted)


def counting(tolerations: Tolerations, unchecked: Tolerations, allowed: Tolerations) -> Tolerations:
    """The tolerations that count where a Project allows `allowed`."""
    if not unchecked:
        return tolerations
    return tuple(one for one in tolerations if one not in unchecked or is_allowed(*one, allowed))
