"""Tables in Markdown."""

from collections.abc import Sequence


def row(*values: str) -> str:
    """One line of a table; line breaks and bars in a cell do not end it."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in values) + " |"


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    """A whole table, with a line break at its end."""
    return "\n".join((row(*head), "|" + "---|" * len(head), *rows)) + "\n"
