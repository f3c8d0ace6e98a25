"""Writes `gardenbus.common.api.fields.gardener`: the fields of Gardener's kinds, from a JSON file of them.

The file maps `<apiVersion> <kind>` to nested objects of fields: a type's name, a list of one type, or `{"*": type}` for
a mapping with free keys. Mappings with the same fields become one definition.

    python -m gardenbus.docs.gardener_fields fields.json > …/common/api/fields/gardener.py
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

WIDTH = 118

_HEAD = '''"""Every field of Gardener's kinds, in the notation of `shapes`; made by `gardenbus.docs.gardener_fields`."""

GARDENER = """
'''


class _Definitions:
    """Definitions by their content, each under a name of its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._bodies: dict[str, str] = {}

    def type_text(self, described: Any, place: str) -> str:
        """A type in our notation; a mapping's fields become a definition that is called as its place is."""
        if isinstance(described, str):
            return described
        if isinstance(described, list):
            return f"[{self.type_text(described[0], place)}]"
        if not described:
            return "open"  # a mapping without fields of its own holds free keys
        if set(described) == {"*"}:
            return f"{{{self.type_text(described['*'], place)}}}"
        return self._define(self.fields_text(described), place)

    def fields_text(self, described: dict[str, Any]) -> str:
        """The fields of a mapping, those of strings without their type."""
        typed = {name: self.type_text(value, name[0].upper() + name[1:]) for name, value in sorted(described.items())}
        return " ".join(name if text == "string" else f"{name}={text}" for name, text in typed.items())

    def kind(self, identity: str, described: dict[str, Any]) -> None:
        """Define a kind."""
        self._bodies[identity.replace(" ", "/")] = self.fields_text(described)

    def _define(self, body: str, place: str) -> str:
        if body not in self._names:
            number, name = 1, place
            while name in self._bodies:
                number += 1
                name = f"{place}{number}"
            self._names[body] = name
            self._bodies[name] = body
        return self._names[body]

    def lines(self) -> list[str]:
        """All definitions, what they consist of first."""
        return [
            line
            for name, body in self._bodies.items()
            for line in textwrap.wrap(
                f"{name}: {body}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        ]


def module_text(fields: dict[str, Any]) -> str:
    """The module's source."""
    definitions = _Definitions()
    for identity, described in sorted(fields.items()):
        definitions.kind(identity, described)
    return _HEAD + "\n".join(definitions.lines()) + '\n"""\n'


if __name__ == "__main__":
    sys.stdout.write(module_text(json.loads(Path(sys.argv[1]).read_text())))
