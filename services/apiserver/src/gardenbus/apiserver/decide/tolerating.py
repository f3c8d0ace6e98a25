"""What a shoot may tolerate: what its Project whitelists, asked on creation and changes, or as soon as it can be.

A shoot in a namespace that belongs to no Project yet is stored, with its tolerations noted as unchecked. They count
where the Project that comes later allows them, and the note goes when it does.
"""

from collections.abc import Sequence

from gardenbus.apiserver.decide.annotations import annotated
from gardenbus.apiserver.decide.prescriptions import refused_tolerations
from gardenbus.common.errors import Forbidden
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.fitting import Tolerations
from gardenbus.common.resources.tolerations import (
    UNCHECKED_TOLERATIONS,
    allowed_by,
    is_allowed,
    pairs,
    unchecked_in,
    unchecked_note,
)


def asks_project(shoot: Document, old: Document | None) -> bool:
    """Whether the tolerations of a shoot are to be looked at: new ones, or such that nobody has checked yet."""
    if old is None or section(shoot, "spec").get("tolerations") != section(old, "spec").get("tolerations"):
        return True
    return UNCHECKED_TOLERATIONS in section(old, "metadata", "annotations")


def with_unchecked_note(
    shoot: Document, old: Document | None, project: Document | None, exposure_class: Document | None
) -> Document:
    """The shoot with its unchecked tolerations noted; `project` is None where its namespace belongs to none.

    What its exposure class gives needs no Project.
    """
    tolerations = pairs(section(shoot, "spec").get("tolerations"))
    if not tolerations:
        return annotated(shoot, UNCHECKED_TOLERATIONS, None)
    had = pairs(section(old or {}, "spec").get("tolerations"))
    unchecked = unchecked_in(section(old or {}, "metadata", "annotations"), had)
    given = _given_by(exposure_class)
    if not asks_project(shoot, old):
        open_ones: Sequence[tuple[str, str | None]] = ()
    elif project is None:
        open_ones = [one for one in tolerations if (one in unchecked or one not in had) and one not in given]
    else:
        allowed = allowed_by(project)
        open_ones = [one for one in tolerations if one in unchecked and not is_allowed(*one, allowed)]
    return annotated(shoot, UNCHECKED_TOLERATIONS, unchecked_note(open_ones))


def unchecked_warnings(shoot: Document) -> Sequence[str]:
    """What the sender of a shoot with unchecked tolerations should know."""
    tolerations = pairs(section(shoot, "spec").get("tolerations"))
    unchecked = unchecked_in(section(shoot, "metadata", "annotations"), tolerations)
    if not unchecked:
        return ()
    return (f"spec.tolerations: {named(unchecked)}: only what the namespace's Project whitelists will count",)


def admit_tolerations(spec: Document, old: Document | None, project: Document, exposure_class: Document | None) -> None:
    """Raise Forbidden for a toleration (after creation: a new one) that neither Project nor exposure class allows."""
    if not spec.get("tolerations"):
        return
    refused = refused_tolerations(spec, old, (*allowed_by(project), *_given_by(exposure_class)))
    if refused:
        owner = section(project, "metadata").get("name")
        raise Forbidden(f"spec.tolerations: {named(refused)}: not in spec.tolerations.whitelist of the project {owner}")


def named(tolerations: Tolerations) -> str:
    """Tolerations for people: `a, b=c`."""
    return ", ".join(str(key) if value is None else f"{key}={value}" for key, value in tolerations)


def _given_by(exposure_class: Document | None) -> Tolerations:
    return pairs(section(exposure_class or {}, "scheduling").get("tolerations"))
