"""Tolerations of a shoot against its Project's whitelist, on creation, on changes, or as soon as there is a Project.

A shoot in a namespace that belongs to no Project yet is stored, with its tolerations noted as unchecked. They count
where a later Project allows them, and the note is removed then.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.admission_defaults import disallowed_tolerations
from gardenbus.apiserver.domain.annotations import annotated
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.garden.tolerations import (
    UNCHECKED_TOLERATIONS,
    allowed_by,
    is_allowed,
    toleration_pairs,
    unchecked_annotation,
    unchecked_in,
)
from gardenbus.common.api.members import Members
from gardenbus.common.errors import Forbidden

DISALLOWED = RejectionMessage(
    "spec.tolerations: {tolerations}: not in spec.tolerations.whitelist of the project {project}"
)


def needs_project(shoot: Document, old: Document | None) -> bool:
    """True when the tolerations of a shoot are to be checked: new ones, or such that are noted as unchecked."""
    if old is None or section(shoot, "spec").get("tolerations") != section(old, "spec").get("tolerations"):
        return True
    return UNCHECKED_TOLERATIONS in section(old, "metadata", "annotations")


def with_unchecked_note(
    shoot: Document,
    old: Document | None,
    project: Document | None,
    exposure_class: Document | None,
    allowed_everywhere: Tolerations = (),
) -> Document:
    """The shoot with its unchecked tolerations noted; `project` is None where its namespace belongs to none.

    What its exposure class gives, and what is allowed everywhere, needs no Project.
    """
    tolerations = toleration_pairs(section(shoot, "spec").get("tolerations"))
    if not tolerations:
        return annotated(shoot, UNCHECKED_TOLERATIONS, None)
    had = toleration_pairs(section(old or {}, "spec").get("tolerations"))
    unchecked = Members(unchecked_in(section(old or {}, "metadata", "annotations"), had))
    given, before = Members(_given_by(exposure_class)), Members(had)
    if not needs_project(shoot, old):
        open_ones: Sequence[tuple[str, str | None]] = ()
    elif project is None:
        everywhere = Members(allowed_everywhere)
        open_ones = [
            one
            for one in tolerations
            if (one in unchecked or one not in before) and one not in given and not is_allowed(*one, everywhere)
        ]
    else:
        allowed = Members((*allowed_by(project), *allowed_everywhere))
        open_ones = [one for one in tolerations if one in unchecked and not is_allowed(*one, allowed)]
    return annotated(shoot, UNCHECKED_TOLERATIONS, unchecked_annotation(open_ones))


def unchecked_warnings(shoot: Document) -> Sequence[str]:
    """Warnings for the sender of a shoot with unchecked tolerations."""
    tolerations = toleration_pairs(section(shoot, "spec").get("tolerations"))
    unchecked = unchecked_in(section(shoot, "metadata", "annotations"), tolerations)
    if not unchecked:
        return ()
    return (f"spec.tolerations: {named(unchecked)}: only what the namespace's Project whitelists will count",)


def admit_tolerations(
    spec: Document,
    old: Document | None,
    project: Document,
    exposure_class: Document | None,
    allowed_everywhere: Tolerations = (),
) -> None:
    """Raise Forbidden for a toleration (after creation: a new one) that neither Project nor exposure class allows.

    `allowed_everywhere` needs neither.
    """
    if not spec.get("tolerations"):
        return
    disallowed = disallowed_tolerations(
        spec, old, (*allowed_by(project), *allowed_everywhere, *_given_by(exposure_class))
    )
    if disallowed:
        owner = name_of(project)
        raise Forbidden(DISALLOWED(tolerations=named(disallowed), project=owner))


def named(tolerations: Tolerations) -> str:
    """Tolerations as text: `a, b=c`."""
    return ", ".join(str(key) if value is None else f"{key}={value}" for key, value in tolerations)


def _given_by(exposure_class: Document | None) -> Tolerations:
    return toleration_pairs(section(exposure_class or {}, "scheduling").get("tolerations"))
