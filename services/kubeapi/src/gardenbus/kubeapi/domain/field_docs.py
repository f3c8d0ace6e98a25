"""Documentation of a Struct's fields, read from the source: the string below each."""

import ast
import inspect
import textwrap
from functools import cache

import msgspec


@cache
def field_docs(struct: type) -> dict[str, str]:
    """The docstring of each field that has one, by name; those of its bases included."""
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            found |= _own(base)
    return found


def _own(struct: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(struct)))
    definition = tree.body[0]
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text = following.value.value
            if isinstance(text, str):
                found[statement.target.id] = inspect.cleandoc(text)
    return found
