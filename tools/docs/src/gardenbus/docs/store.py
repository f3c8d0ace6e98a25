"""The page of the store's data model, from the tables of keys and fields at the head of its functions."""

import re
from typing import NamedTuple

from gardenbus.common.adapters.redis.function_library import texts
from gardenbus.docs.markdown import row, table

_HEAD = """# Data model of the store

What Redis holds of a landscape. Every key begins with the landscape's prefix and a colon. `<key>` is
`<kind>:<ns>:<name>`; the namespace of a cluster-scoped object is `_`. Only the
[functions](../architecture.md#the-store) write these keys.

## Keys
"""

_FIELDS = """
## Fields of an object

An object is one hash, `o:<kind>:<ns>:<name>`. A field that would be empty is absent.
"""

_LINE = re.compile(r"--   (\S+) +(\S+) +(.+)")


class Described(NamedTuple):
    """A row of either table: a key with its type, or a field with the kind that has it."""

    name: str
    of: str
    meaning: str


def store_keys() -> tuple[Described, ...]:
    """The table of keys."""
    return _rows("-- Keys ")


def object_fields() -> tuple[Described, ...]:
    """The table of an object's fields."""
    return _rows("-- Fields of an object's hash")


def store_page() -> str:
    """The page's Markdown."""
    keys = table(("key", "type", "holds"), [_row(each) for each in store_keys()])
    fields = table(("field", "kinds", "holds"), [_row(each) for each in object_fields()])
    return f"{_HEAD}\n{keys}{_FIELDS}\n{fields}"


def _row(described: Described) -> str:
    meaning = described.meaning.replace("<", "&lt;").replace(">", "&gt;")
    return row(f"`{described.name}`", described.of, meaning)


def _rows(heading: str) -> tuple[Described, ...]:
    lines = iter(texts()["keys.lua"].splitlines())
    next(line for line in lines if line.startswith(heading))
    rows: list[Described] = []
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            break
        rows.append(Described(*found.groups()))
    return tuple(rows)
