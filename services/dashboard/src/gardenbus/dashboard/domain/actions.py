"""Actions of a page that change one object: the patch of each, what it does in words, and the Event of it. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.confirmation import CONFIRMATION, CONFIRMING_PATCH, is_confirmed
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.rows import SeedRow
from gardenbus.common.api.garden.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR
from gardenbus.common.api.shown_values import with_article
from gardenbus.common.errors import BadRequest, Conflict

ActionName = Literal["cordon", "uncordon", "annotate", "confirm-deletion"]

_ANNOTATION = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class PlannedAction(NamedTuple):
    """An action on an object: its patch, what it will do, and the reason and words of its Event."""

    patch: Document
    does: Sequence[str]
    reason: str
    words: str


def planned(
    action: str, kind: str, document: Document, *, annotation: str = "", value: str | None = None
) -> PlannedAction:
    """Plan an action on an object as it is. Raises Conflict where it is done already, BadRequest for no such action."""
    match action, kind:
        case "cordon" | "uncordon", "seed":
            return _visible(document, to=action == "uncordon")
        case "annotate", _:
            return _annotated(document, annotation, value)
        case "confirm-deletion", _:
            if is_confirmed(document):
                raise Conflict("its deletion is confirmed already")
            does = ["it may be deleted from now on, by whoever has the right to: nothing is deleted yet"]
            return PlannedAction(CONFIRMING_PATCH, does, "DeletionConfirmed", f"sets {CONFIRMATION}")
        case _:
            raise BadRequest(f"{action}: there is no such action on {with_article(kind)}")


def _visible(document: Document, *, to: bool) -> PlannedAction:
    is_open = section(document, "spec", "settings", "scheduling").get("visible") is not False
    if is_open == to:
        raise Conflict(f"it is {'open to new shoots' if to else 'cordoned'} already")
    patch = {
        "metadata": {"annotations": {CORDONED_BY: None if to else CORDONED_BY_OPERATOR}},
        "spec": {"settings": {"scheduling": {"visible": to}}},
    }
    if to:
        return PlannedAction(
            patch, ["it takes new shoots again; those that wait are tried"], "Uncordoned", "uncordons it"
        )
    return PlannedAction(patch, ["it takes no new shoots; those that are on it stay"], "Cordoned", "cordons it")


def _annotated(document: Document, annotation: str, value: str | None) -> PlannedAction:
    if _ANNOTATION.fullmatch(annotation) is None:
        raise BadRequest("annotation: write its name, as example.org/owner")
    before = section(document, "metadata", "annotations").get(annotation)
    if before == value:
        raise Conflict(f"annotation: {annotation} is so already")
    old = "" if before is None else f", which was {before}"
    words = f"removes the annotation {annotation}" if value is None else f"sets the annotation {annotation} to {value}"
    return PlannedAction({"metadata": {"annotations": {annotation: value}}}, [f"{words}{old}"], "Annotated", words)


def room_elsewhere(seed: SeedRow, others: Iterable[tuple[SeedRow, int]]) -> str:
    """Places that other seeds of a seed's region have left for new shoots; each of them with its number of shoots."""
    open_seeds = [
        (other, used)
        for other, used in others
        if (other.provider, other.region) == (seed.provider, seed.region)
        and other.name != seed.name
        and other.ready == "True"
        and other.is_visible
        and not other.is_deleting
    ]
    where = f"{seed.provider}/{seed.region}"
    if not open_seeds:
        return f"no other seed of {where} is open: new shoots of this region go farther away, or wait"
    if any(other.capacity is None for other, _ in open_seeds):
        return f"{len(open_seeds)} other seeds of {where} are open, without a limit"
    left = sum(max(0, int(other.capacity or 0) - used) for other, used in open_seeds)
    return f"{len(open_seeds)} other seeds of {where} are open, with {left} places left"
