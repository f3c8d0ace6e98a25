"""Words that texts do not use: of what people see, of names of tests, and of the documentation.

The words are those of the section "In texts" of `docs/glossary.md`: what each row retires, the term in its place, and
where the check looks. `EXCEPTIONS` has the phrases that may stand all the same. `gardenbus.docs.vocabulary` runs it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gardenbus.docs.texts import texts

EXCEPTIONS: Mapping[str, str] = {
    "refuses connections": "the operating system's word",
    "connection refused": "the operating system's word",
    "wish and refuse are named": "the names that an older protocol of filters had",
    "`wish` and `refuse`": "the names that an older protocol of filters had",
    "Waking up cluster due to schedule": "Gardener's Event",
    "Waking Up": "Gardener's text in the printer column `Hibernation` of a Shoot",
    "wakes up": "a hibernated shoot does",
    "wake it first": "of a hibernated shoot",
    "woken up, by their schedules": "of hibernated shoots",
    "sleep nor wake": "of hibernated shoots",
    "(`parked`)": "the value of a span's attribute",
    "response.get('unanswered')": "a field of a response of earlier schedulers",
    "user or 'nobody'": "the name shown for a request without a user",
}
"""Phrases with a retired word that stay, each with its reason."""

SCOPES = ("strings", "documentation", "test names", "Lua")
_CODE = re.compile(r"`([^`]+)`")
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NOT_CHECKED = ("docs/reference/", "docs/glossary.md", "CHANGELOG.md")
"""Pages that are written from the code, the one that names the words, and the one that tells of old ones."""


class TextRule(NamedTuple):
    """Words that texts do not use: a pattern, the term in their place, and the scopes that hold to it."""

    pattern: re.Pattern[str]
    term: str
    scopes: frozenset[str]


class TextFault(NamedTuple):
    """A retired word in a text: where it is, and the term."""

    path: str
    line: int
    word: str
    term: str

    def __str__(self) -> str:
        """`path:line: message`, as editors read it."""
        return f"{self.path}:{self.line}: `{self.word}` is retired in texts, the term is: {self.term}"


def read_text_rules(glossary: str) -> list[TextRule]:
    """Read the section of the glossary. Raises ValueError where it has no rules, or one with an unknown scope."""
    section = glossary.partition("\n## In texts\n")[2].partition("\n## ")[0]
    rules: list[TextRule] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        words = _CODE.findall(cells[0]) if line.startswith("| `") else []
        if words:
            scopes = frozenset(scope.strip() for scope in cells[2].split(","))
            if unknown := scopes - {*SCOPES}:
                raise ValueError(f"{words[0]}: {min(unknown)} is no scope of the check")
            pattern = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in words)
            rules.append(TextRule(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), cells[1], scopes))
    if not rules:
        raise ValueError("the glossary has no rules for texts: is its section still called `In texts`?")
    return rules


def check_texts(root: Path, rules: Sequence[TextRule]) -> Iterator[TextFault]:
    """Every retired word in the texts of a repository."""
    for scope, lines in (
        ("strings", ((each.path, each.line, each.words) for each in texts(root))),
        ("documentation", _documentation(root)),
        ("test names", _test_names(root)),
        ("Lua", _lua(root)),
    ):
        yield from _faults(lines, [rule for rule in rules if scope in rule.scopes])


def _faults(lines: Iterable[tuple[str, int, str]], rules: Sequence[TextRule]) -> Iterator[TextFault]:
    for path, number, words in lines:
        kept = words
        for phrase in EXCEPTIONS:
            kept = kept.replace(phrase, "")
        for rule in rules:
            if found := rule.pattern.search(kept):
                yield TextFault(path, number, found[0], rule.term)


def _documentation(root: Path) -> Iterator[tuple[str, int, str]]:
    for page in sorted((*root.glob("*.md"), *(root / "docs").rglob("*.md"))):
        path = str(page.relative_to(root))
        if not path.startswith(_NOT_CHECKED):
            text = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
            yield from ((path, number, line) for number, line in enumerate(text.splitlines(), 1))


def _test_names(root: Path) -> Iterator[tuple[str, int, str]]:
    for file in sorted((root / "tests").rglob("test_*.py")):
        text = file.read_text()
        for found in _TEST.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield str(file.relative_to(root)), line, found[1].replace("_", " ")


def _lua(root: Path) -> Iterator[tuple[str, int, str]]:
    for file in sorted((root / "libs").rglob("*.lua")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            yield str(file.relative_to(root)), number, line
