"""The page of what became of each function of Gardener's validation.

`gardener_functions.txt` lists the functions, with the version of Gardener; `gardener_results.txt` says of each whether
its rules were taken over, and by which module, or why they were not.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = Path(__file__).with_name("gardener_functions.txt")
RESULTS = Path(__file__).with_name("gardener_results.txt")

_OUTCOMES = {"=": "taken over", "~": "taken over in part", "-": "not meaningful here", "!": "absent"}
_INTRODUCTION = """# Gardener's rules

What became of each function of Gardener's validation ({version}, `pkg/api`). A rule that is taken over is in a module
of the apiserver below `domain/validation`; what is stored already, and does not change, breaks none of them. Rules that
Gardener keeps in admission plug-ins are on [another page](admission.md).

{counts}

| File | Function | Outcome | Module | Difference, or reason |
|---|---|---|---|---|
"""


class FunctionResult(NamedTuple):
    """Result of a function."""

    outcome: str
    module: str
    note: str


@cache
def version_and_functions() -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """The version of Gardener, and the names of its functions by their file."""
    head, *lines = FUNCTIONS.read_text().splitlines()
    version = next(word for word in head.split() if word.startswith("v1.")).rstrip(",")
    return version, {file: tuple(names.split()) for file, _, names in (line.partition(": ") for line in lines)}


@cache
def results() -> Mapping[tuple[str, str], FunctionResult]:
    """Results by file and function; that of a whole file has no function, ""."""
    found: dict[tuple[str, str], FunctionResult] = {}
    file = ""
    for line in RESULTS.read_text().splitlines():
        if line.startswith("#"):
            continue
        words = line.split(" ")
        sign = next(number for number, word in enumerate(words) if word in _OUTCOMES)
        names, rest = [word for word in words[:sign] if word], " ".join(words[sign + 1 :])
        if not line.startswith(" "):
            file, names = names[0], [""]
        module, _, note = rest.partition(": ") if words[sign] in "=~" else ("", "", rest)
        found |= {(file, name): FunctionResult(_OUTCOMES[words[sign]], module, note) for name in names}
    return found


def outcomes() -> Iterator[tuple[str, str, FunctionResult]]:
    """Every function with its file and result."""
    found = results()
    for file, names in version_and_functions()[1].items():
        for name in names:
            yield file, name, found.get((file, name)) or found[file, ""]


def gardener_rules_page() -> str:
    """The page as Markdown."""
    rows = list(outcomes())
    counts = {outcome: sum(result.outcome == outcome for _, _, result in rows) for outcome in _OUTCOMES.values()}
    listed = ", ".join(f"{outcome}: {count}" for outcome, count in counts.items())
    lines = [
        f"| `{file}` | `{name}` | {result.outcome} | {_module(result.module)} | {result.note or 'none'} |"
        for file, name, result in rows
    ]
    counted = f"{listed}; {len(rows)} functions in all."
    return _INTRODUCTION.format(version=version_and_functions()[0], counts=counted) + "\n".join(lines) + "\n"


def _module(module: str) -> str:
    return f"`{module.removeprefix('../')}`" if module else "none"
