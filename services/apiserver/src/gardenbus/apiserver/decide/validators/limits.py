"""Limits that are a number of clusters or percent of them, and quantities that are written as text."""

import re

from gardenbus.apiserver.decide.fields import Place, shown
from gardenbus.common.resources.quantities import parse_quantity

_PERCENT = re.compile(r"(100|[0-9]{1,2})%")


def check_limit(holder: Place, field: str) -> None:
    """Note a limit that is neither a whole number from 0 nor percent from 0% to 100%."""
    value = holder.content.get(field)
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            holder.note(field, f"must be a number as 2, or percent from 0% to 100% as '25%', not {shown(value)}")
    else:
        holder.integer(field, least=0)


def is_none_at_all(limit: object) -> bool:
    """Whether a limit allows nothing, however many clusters there are."""
    return limit in (0, "0%", "00%")


def check_quantity_text(holder: Place, field: str) -> None:
    """Note a field that is no quantity in quotes."""
    text = holder.text(field, required=True)
    if text:
        _note_quantity(holder, holder.at(field), text)


def check_quantity_texts(holder: Place, field: str) -> None:
    """Note entries of a mapping that are no quantities in quotes."""
    for name, text in holder.text_map(field).items():
        _note_quantity(holder, f"{holder.at(field)}[{name[:80]}]", text)


def check_only_quantity(holder: Place, field: str) -> None:
    """Note a list that does not hold exactly one quantity."""
    texts = holder.texts(field)
    stated = holder.content.get(field)
    if not isinstance(stated, list | None):
        return
    if len(stated or ()) != 1:  # pyright: ignore[reportUnknownArgumentType]
        holder.note(field, f"must hold exactly one quantity, as ['4'], and holds {len(stated or ())}")  # pyright: ignore[reportUnknownArgumentType]
        return
    for path, text in texts:
        _note_quantity(holder, path, text)


def _note_quantity(holder: Place, path: str, text: str) -> None:
    try:
        parse_quantity(text)
    except ValueError as error:
        holder.notebook.note(path, str(error))
