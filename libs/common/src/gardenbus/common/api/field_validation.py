"""Strictness of the validation of a request's fields, in kubectl's words."""

from enum import StrEnum

from gardenbus.common.errors import BadRequest


class FieldValidation(StrEnum):
    """Treatment of a manifest with fields that its kind does not have, or of another type."""

    STRICT = "strict"
    """It is rejected."""

    WARN = "warn"
    """It is taken, with a warning for each."""

    IGNORE = "ignore"
    """It is taken without a word."""


_WORDS = {
    **{each.value: each for each in FieldValidation},
    "true": FieldValidation.STRICT,
    "false": FieldValidation.IGNORE,
}


def parse_field_validation(text: str, *, name: str) -> FieldValidation:
    """Read one of strict (or true), warn, ignore (or false). Raises BadRequest, which begins with `name`."""
    try:
        return _WORDS[text.lower()]
    except KeyError:
        raise BadRequest(f"{name}: must be strict, warn or ignore, not {text[:40]!r}") from None
