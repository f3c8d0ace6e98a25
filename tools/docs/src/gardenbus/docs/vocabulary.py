"""Vocabulary check: retired words in names, names of types with two meanings, vague docstrings.

Names are identifiers and modules of Python (source, scripts, examples and tests), log events, and what Lua and
JavaScript define. A test function's name is a sentence: `text_vocabulary` checks it, and all other texts.

`python -m gardenbus.docs.vocabulary` is a part of `make check`. The retired words are those of the page
`docs/glossary.md`: the last column of each table row, and the identifiers that its section "Kept" allows.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from gardenbus.docs.text_vocabulary import check_texts, read_text_rules

ROOT = Path(__file__).parents[5]
GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = ("libs", "services", "tools", "cli")
SCRIPTS = ("deploy", "examples")
"""Folders of single files, without packages: each may have a class of a name that others have."""
TESTS = "tests"
PLANTED = "test_vocabulary.py"
"""Tests of this check, which hold retired words."""

VAGUE_BEGINNINGS = frozenset(
    {"What", "Who", "Whom", "Whose", "Whoever", "How", "Which", "Whether", "Where", "When", "Why"}
)
"""First words of docstrings that are questions instead of stating what the thing is or does."""

_SUB_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CODE = re.compile(r"`([^`]+)`")

_CAP_WORDS = re.compile(r"_?[A-Z]\w*[a-z]\w*")
TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})

LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
REPEATED_LINES = "RepeatedLines"
"""Class whose first argument is the name of the event that it logs."""

_DEFINITIONS = {
    ".lua": (
        re.compile(r"\b(?:local\s+function|local|function|for)\s+([A-Za-z_][\w, ]*)"),
        re.compile(r"\bfunction\s*\w*\(([\w, ]*)\)"),
        re.compile(r"^([A-Za-z_]\w*) = "),
    ),
    ".js": (
        re.compile(r"\b(?:const|let|var|function|class)\s+[{[]?\s*([A-Za-z_$][\w$, ]*)"),
        re.compile(r"^\s*(?:static |async )*(#?\w+)\s*(?:\(.*\{$|=[^=>])"),
    ),
}
"""Names that a file in another language defines, one or more in a group, by its suffix."""


class Vocabulary(NamedTuple):
    """The words that no identifier may hold, each with the term in its place, and identifiers that may all the same."""

    retired: Mapping[str, str]
    kept: frozenset[str]


class Violation(NamedTuple):
    """One offence: where it is, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        """`path:line: message`, as editors read it."""
        return f"{self.path}:{self.line}: {self.message}"


def read_glossary(text: str) -> Vocabulary:
    """Read the glossary page. Raises ValueError when it names no retired word."""
    retired: dict[str, str] = {}
    page, _, kept = text.partition("\n## Kept")
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) >= 4:  # noqa: PLR2004  term, meaning, where it lives, instead of
            for word in _CODE.findall(cells[-1]):
                retired[word.lower()] = cells[0].replace("*", "").replace("`", "")
    if not retired:
        raise ValueError("the glossary names no retired word: is its last column still `instead of`?")
    return Vocabulary(retired, frozenset(_CODE.findall(kept)))


def sub_words(identifier: str) -> list[str]:
    """The words that an identifier is made of, in lower case: `SeedRefused` is seed, refused."""
    return [word.lower() for word in _SUB_WORD.findall(identifier)]


def defined_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every identifier that a module defines, with its line: classes, functions, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case _:
                pass


def logged_events(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name of an event that a module logs, with its line; of a conditional expression both."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[event, *_]) if (
                called == REPEATED_LINES or (called in LOG_METHODS and isinstance(node.func, ast.Attribute))
            ):
                yield from _constants(event)
            case _:
                pass


def _constants(expression: ast.expr) -> Iterator[tuple[str, int]]:
    match expression:
        case ast.Constant(value=str(text)):
            yield text, expression.lineno
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_constants(body), *_constants(orelse))
        case _:
            pass


def defined_elsewhere(path: Path) -> Iterator[tuple[str, int]]:
    """Every identifier that a file in Lua or JavaScript defines, with its line."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = line.partition("--" if path.suffix == ".lua" else "//")[0]
        for names in (names for pattern in _DEFINITIONS[path.suffix] for names in pattern.findall(code)):
            for name in names.split(","):
                yield name.strip(" #"), number


def retired_words(path: str, names: Iterable[tuple[str, int]], vocabulary: Vocabulary) -> Iterator[Violation]:
    """Names that hold a retired word, each once a file."""
    seen: set[str] = set()
    for name, line in names:
        if name in seen or name.lstrip("_") in vocabulary.kept or name in vocabulary.kept:
            continue
        seen.add(name)
        for word in sub_words(name):
            if word in vocabulary.retired:
                yield Violation(path, line, f"`{name}`: `{word}` is retired, the term is: {vocabulary.retired[word]}")
                break


def vague_docstrings(path: str, tree: ast.AST) -> Iterator[Violation]:
    """Docstrings that begin with a question word: of modules, classes and functions, and of what they assign."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for before, statement in pairwise((None, *node.body)):
            match before, statement:
                case None | ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    first = re.match(r"\s*(\w+)", text)
                    if first and first[1] in VAGUE_BEGINNINGS:
                        message = f"a docstring says what the thing is or does; this one begins with {first[1]}"
                        yield Violation(path, line, message)
                case _:
                    pass


def defined_types(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Every class and every type alias of a module: its name, its line, and `class`, `alias` or `type variable`.

    An alias is what a module assigns to a name in CapWords.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno, "class"
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ) if _CAP_WORDS.fullmatch(name):
                yield name, statement.lineno, "type variable" if _is_type_variable(value) else "alias"
            case _:
                pass


def _is_type_variable(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=called)):
            return called in TYPE_VARIABLES
        case _:
            return False


def ambiguous_types(trees: Mapping[str, ast.Module]) -> Iterator[Violation]:
    """Names of classes and type aliases that are defined in more than one module; type variables may share theirs."""
    defined: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for path, tree in trees.items():
        for name, line, sort in defined_types(tree):
            defined[name].setdefault(path, (line, sort))
    for name, places in sorted(defined.items()):
        if len(places) > 1 and {sort for _, sort in places.values()} != {"type variable"}:
            path = min(places)
            line, sort = places[path]
            others = ", ".join(sorted(places.keys() - {path}))
            yield Violation(path, line, f"{sort} `{name}` is also defined in {others}: one name, one meaning")


def check(root: Path, vocabulary: Vocabulary, folders: Iterable[str] = SOURCES) -> list[Violation]:
    """Check every file below the folders of a repository, its scripts and its tests."""
    folders = tuple(folders)
    paths = sorted(path for folder in folders for path in (root / folder).rglob("src/**/*.py"))
    trees = {str(path.relative_to(root)): ast.parse(path.read_text()) for path in paths}
    found = [*ambiguous_types(trees)]
    scripts = sorted(path for folder in SCRIPTS for path in (root / folder).rglob("*.py"))
    trees |= {str(path.relative_to(root)): ast.parse(path.read_text()) for path in scripts}
    for path, tree in trees.items():
        names = (*_module_name(path), *defined_names(tree), *logged_events(tree))
        found += [*retired_words(path, names, vocabulary), *vague_docstrings(path, tree)]
    for each in sorted(path for folder in folders for path in (root / folder).rglob("src/**/*")):
        if each.suffix in _DEFINITIONS:
            found += retired_words(str(each.relative_to(root)), defined_elsewhere(each), vocabulary)
    return found + _check_tests(root, vocabulary)


def _check_tests(root: Path, vocabulary: Vocabulary) -> list[Violation]:
    found: list[Violation] = []
    for each in sorted((root / TESTS).rglob("*.py")):
        if each.name != PLANTED:
            path = str(each.relative_to(root))
            defined = defined_names(ast.parse(each.read_text()))
            names = (named for named in defined if not named[0].startswith("test_"))
            found += retired_words(path, (*_module_name(path), *names), vocabulary)
    return found


def _module_name(path: str) -> Iterator[tuple[str, int]]:
    yield Path(path).stem, 1


def main() -> int:
    """Print what is wrong, one line each; 1 when something is."""
    glossary = GLOSSARY.read_text()
    found = [*check(ROOT, read_glossary(glossary)), *check_texts(ROOT, read_text_rules(glossary))]
    for violation in found:
        print(violation)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
