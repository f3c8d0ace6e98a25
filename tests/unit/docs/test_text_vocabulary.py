"""The check of texts: each scope is searched, exceptions pass, and the glossary is what it reads."""

from pathlib import Path

import pytest

from gardenbus.docs.text_vocabulary import EXCEPTIONS, SCOPES, check_texts, read_text_rules
from gardenbus.docs.texts import texts_page
from gardenbus.docs.vocabulary import GLOSSARY

RULES = """
## In texts

| instead of | write | checked in |
|---|---|---|
| `refus*` | rejected | strings, documentation, Lua |
| `taken back` | cancelled | test names |

## Kept
"""


def faults(tmp_path: Path, path: str, text: str) -> list[str]:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    return [fault.word for fault in check_texts(tmp_path, read_text_rules(RULES))]


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("libs/one/src/a.py", 'X = "the manifest was refused"', "refused"),
        ("libs/one/src/a.py", 'X = f"{name} refuses the login"', "refuses"),
        ("services/one/src/static/a.js", 'h("p", null, "It was refused here")', "refused"),
        ("services/one/src/static/a.html", "<p>It was refused here</p>", "refused"),
        ("libs/one/src/functions/a.lua", "-- a write that is refused", "refused"),
        ("docs/a.md", "The manifest is refused.", "refused"),
        ("tests/unit/test_a.py", "def test_a_move_is_taken_back(): ...", "taken back"),
    ],
)
def test_a_retired_word_is_found_in_texts_of_every_sort(tmp_path: Path, path: str, text: str, word: str):
    assert faults(tmp_path, path, text) == [word]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("libs/one/src/a.py", '"""A docstring about what is refused."""'),
        ("libs/one/src/a.py", 'X = "port 1 refuses connections: nothing listens there"'),
        ("docs/a.md", "```\nthe manifest is refused\n```\n"),
        ("docs/reference/a.md", "the manifest is refused"),
        ("tests/unit/test_a.py", "def test_what_is_refused(): ..."),
    ],
)
def test_docstrings_code_generated_pages_and_exceptions_pass(tmp_path: Path, path: str, text: str):
    assert faults(tmp_path, path, text) == []


def test_the_glossary_has_rules_for_every_scope():
    rules = read_text_rules(GLOSSARY.read_text())

    assert {scope for rule in rules for scope in rule.scopes} == {*SCOPES}
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize("text", ["# Glossary\n", RULES.replace("test names", "somewhere")])
def test_a_glossary_without_rules_or_with_an_unknown_scope_is_an_error(text: str):
    with pytest.raises(ValueError, match=r"In texts|no scope"):
        read_text_rules(text)


def test_the_page_of_texts_lists_what_people_see():
    page = texts_page()

    assert "dry run: nothing was changed" in page
    assert "No matching shoots" in page
    assert "## cli/src/gardenbus/cli/commands/what_if.py" in page
