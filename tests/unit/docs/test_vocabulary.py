"""The check of words: each kind of offence is found, and the glossary is what it reads."""

from pathlib import Path

import pytest

from gardenbus.docs.vocabulary import GLOSSARY, Vocabulary, check, read_glossary

WORDS = Vocabulary({"refusal": "rejection", "told": "observed"}, frozenset({"as_told_on_the_wire"}))


def messages(tmp_path: Path, **modules: str) -> list[str]:
    source = tmp_path / "libs" / "one" / "src" / "gardenbus" / "one"
    source.mkdir(parents=True)
    for name, text in modules.items():
        (source / f"{name}.py").write_text(text)
    return [str(violation).removeprefix("libs/one/src/gardenbus/one/") for violation in check(tmp_path, WORDS)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("class SeedRefusal: ...", "SeedRefusal"),
        ("def was_told(): ...", "was_told"),
        ("def f(told): ...", "told"),
        ("def f():\n    _told = 1", "_told"),
        ("class A:\n    def f(self):\n        self.told_at = 1", "told_at"),
        ("TOLD = 1", "TOLD"),
    ],
)
def test_a_retired_word_is_found_wherever_an_identifier_is_defined(tmp_path: Path, source: str, name: str):
    (found,) = messages(tmp_path, a=source)
    assert f"`{name}`" in found


@pytest.mark.parametrize("source", ["tolden = 1", "as_told_on_the_wire = 1", "x = 'told'", "import told", "x = y.told"])
def test_what_is_no_offence_passes(tmp_path: Path, source: str):
    assert messages(tmp_path, a=source) == []


def test_a_class_name_stands_for_one_thing(tmp_path: Path):
    (found,) = messages(tmp_path, a="class Step: ...", b="class Step: ...")
    assert found.startswith("a.py:1: class `Step` is also defined in")


@pytest.mark.parametrize("source", ['"""What a is."""', 'def f():\n    """Which."""', 'class A:\n    """How."""'])
def test_a_docstring_states_and_does_not_ask(tmp_path: Path, source: str):
    assert len(messages(tmp_path, a=source)) == 1


def test_the_glossary_names_retired_words_and_their_terms():
    words = read_glossary(GLOSSARY.read_text())
    assert words.retired["nudge"] == "enqueue, enqueuer"
    assert len(words.retired) > 60


def test_a_glossary_without_retired_words_is_an_error():
    with pytest.raises(ValueError, match="instead of"):
        read_glossary("| term | meaning | where it lives | |\n")
