"""What Gardener's API server says of single changes of manifests, as it was recorded, and asked anew.

A file has a manifest that Gardener accepts, and cases: a change of it, made in a new object or in a stored one, and the
field that Gardener rejects it for. A case in which the apiserver here says otherwise names its reason, which is in
`differences.json`. The program that answers for Gardener reads a question a line: `{"id", "new", "old"}`.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.kubernetes_versions import version_problems
from gardenbus.apiserver.domain.validation.manifest import key_of_applied, validate
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import FieldProblem, GardenbusError, InvalidResource

FOLDER = Path(__file__).parents[1] / "unit" / "api" / "gardener_results"
FILES: Sequence[str] = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "differences")
OF_STORED: Document = {
    "resourceVersion": "7",
    "uid": "11111111-2222-3333-4444-555555555555",
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "generation": 1,
}
"""Metadata that a stored object has."""

IN_PLACE_FEATURE = "InPlaceNodeUpdates"
"""Named by what Gardener says of a gate that counts as on here."""


class Case(NamedTuple):
    """A change, and what Gardener says of it."""

    name: str
    document: Document
    old: Document | None
    is_rejected: bool
    differs: str


@cache
def differences() -> dict[str, str]:
    """The reasons for which a result is another one here."""
    return json.loads((FOLDER / "differences.json").read_text())


def cases_of(name: str) -> Iterator[Case]:
    """The cases of a file."""
    recorded = json.loads((FOLDER / f"{name}.json").read_text())
    base: Document = recorded["base"]
    stored: Document = {**base, "metadata": {**base["metadata"], **OF_STORED}}
    for case in recorded["cases"]:
        old = None if case["verb"] == "create" else stored
        document = changed(base if old is None else stored, case["path"], case)
        shown = f"{case['verb']} {'.'.join(map(str, case['path']))}={case.get('value', 'left out')!r}"
        yield Case(shown, document, old, bool(case["rejected"]), case.get("differs", ""))


def changed(document: Document, path: Sequence[str | int], case: Document) -> Document:
    """A copy of a manifest with the value of a case at a path, or nothing there."""
    found = copy.deepcopy(document)
    here: Any = found
    for step in path[:-1]:
        if isinstance(step, str) and here.get(step) is None:
            here[step] = {}
        here = here[step]
    if "value" in case:
        here[path[-1]] = case["value"]
    else:
        del here[path[-1]]
    return found


def rejection(document: Document, old: Document | None) -> str:
    """What is wrong with a manifest, or with a change; "" when nothing is."""
    return "; ".join(map(str, _problems(document, old)))


def rejected_fields(document: Document, old: Document | None) -> list[str]:
    """The fields for which a manifest, or a change, is rejected, in order."""
    return [problem.field for problem in _problems(document, old)]


def _problems(document: Document, old: Document | None) -> Sequence[FieldProblem]:
    try:
        key_of_applied(document)
        document = with_defaults(document if old is not None else with_creation_defaults(document))
        before = with_defaults(with_creation_defaults(old)) if old is not None else None
        validate(document, before)
    except InvalidResource as error:
        return error.problems or (FieldProblem("", str(error)),)
    except GardenbusError as error:
        return (FieldProblem("", str(error)),)
    if document["kind"] != "Shoot":
        return ()
    return tuple(version_problems(section(document, "spec"), section(before or {}, "spec")))
