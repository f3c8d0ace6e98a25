"""Values as an error message shows them."""

from typing import Any

_SHOWN = 80


def shown(value: Any) -> str:
    """A value, short, and what it is where it is long."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        case _:
            return str(value)[:_SHOWN]


def with_article(kind: str) -> str:
    """`a Shoot`, `an ExposureClass`."""
    return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"
