"""The page of all texts that people may see: of the command line, the dashboard, Events, conditions, errors and logs.

A text is a string of the source that has at least two words: no docstring, no key, no pattern. What is filled in stands
in braces. `docs/reference/texts.md` is for whoever reviews wording; `gardenbus.docs.text_vocabulary` checks it.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[5]
SOURCES = ("libs", "services", "cli", "tools")
UNSEEN = ("tools/docs", "tools/bench", "libs/common/src/gardenbus/common/api/fields/gardener.py")
"""Files whose strings are not read at run time: writers of documentation, measurements, a table of names."""

_SENTENCE = re.compile(r"[A-Za-z]{2,}[,:;]? [a-zA-Z{]")
_SCRIPT_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_FILLED_IN = re.compile(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_INTRODUCTION = """# Texts

All texts that people may see, by the file that has them: of the command line, the dashboard, Events, conditions,
errors and logs. What is filled in stands in braces. Would somebody who knows kubectl understand each without a second
look?
"""


class Text(NamedTuple):
    """A text with its file, below the root, and its line."""

    path: str
    line: int
    words: str


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Every text of a repository, file by file."""
    for folder in SOURCES:
        for file in sorted((root / folder).rglob("src/**/*")):
            path = str(file.relative_to(root))
            if file.suffix in _READERS and not path.startswith(UNSEEN):
                yield from (Text(path, line, words) for words, line in _READERS[file.suffix](file))


def texts_page() -> str:
    """The Markdown of the page."""
    lines, before = [_INTRODUCTION], ""
    for text in texts():
        if text.path != before:
            before = text.path
            lines.append(f"\n## {before}\n")
        words = " ".join(text.words.split()).replace("`", "'")
        lines.append(f"- `{words}`")
    return "\n".join(lines) + "\n"


def _of_python(file: Path) -> Iterator[tuple[str, int]]:
    tree = _parsed(file)
    return (
        (words, line)
        for words, line in _strings(tree, _docstrings(tree))
        if _SENTENCE.search(words) and not words.startswith("^")
    )


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _docstrings(tree: ast.Module) -> frozenset[int]:
    """Ids of the nodes of strings that stand alone: docstrings of all sorts."""
    return frozenset(
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _strings(node: ast.AST, skipped: frozenset[int]) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case _ if id(child) in skipped:
                continue
            case ast.Constant(value=str(words), lineno=line):
                yield words, line
            case ast.JoinedStr(values=values, lineno=line):
                yield "".join(map(_piece, values)), line
            case _:
                yield from _strings(child, skipped)


def _piece(value: ast.expr) -> str:
    match value:
        case ast.Constant(value=str(words)):
            return words
        case ast.FormattedValue(value=filled_in):
            return f"{{{ast.unparse(filled_in)}}}"
        case _:
            return "{…}"


def _of_script(file: Path) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(file.read_text().splitlines(), 1):
        for quoted, template in _SCRIPT_TEXT.findall(line):
            words = _FILLED_IN.sub("{…}", quoted or template)
            if _SENTENCE.search(words):
                yield words, number


def _of_page(file: Path) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(file.read_text().splitlines(), 1):
        words = re.sub(r"<[^>]*>", " ", line)
        if _SENTENCE.search(words):
            yield words, number


_READERS = {".py": _of_python, ".js": _of_script, ".html": _of_page}
