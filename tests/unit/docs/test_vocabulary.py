"""The check of words: each kind of offence is found, and the glossary is what it reads."""

import re
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


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("libs/one/src/gardenbus/one/told.py", "", "told"),
        ("libs/one/src/gardenbus/one/a.py", 'log.warning("seed.told", seed=1)', "seed.told"),
        ("libs/one/src/gardenbus/one/a.py", 'log.info("seed.told" if one else "seed.made")', "seed.told"),
        ("libs/one/src/gardenbus/one/a.py", 'log.info("a" if one else "seed.told" if two else "b")', "seed.told"),
        ("libs/one/src/gardenbus/one/a.py", 'RepeatedLines("seed.told", clock)', "seed.told"),
        ("libs/one/src/gardenbus/one/a.py", 'lines.RepeatedLines("seed.told", clock)', "seed.told"),
        ("libs/one/src/gardenbus/one/a.lua", "local function told(keys) -- adds", "told"),
        ("libs/one/src/gardenbus/one/a.lua", "local one, told_at = 1, 2", "told_at"),
        ("libs/one/src/gardenbus/one/a.lua", "register('a', function(told) end)", "told"),
        ("libs/one/src/gardenbus/one/static/a.js", "export const told = 1;", "told"),
        ("libs/one/src/gardenbus/one/static/a.js", "const { one, told } = each;", "told"),
        ("libs/one/src/gardenbus/one/static/a.js", "  async #told(each) {", "told"),
        ("libs/one/src/gardenbus/one/static/a.js", "  toldAt = Date.now();", "toldAt"),
        ("deploy/compose/a.py", "told = 1", "told"),
        ("examples/one/told.py", "", "told"),
        ("tests/unit/test_told.py", "", "test_told"),
        ("tests/support/a.py", "def told(): ...", "told"),
    ],
)
def test_a_retired_word_is_found_in_names_of_every_sort(tmp_path: Path, path: str, text: str, name: str):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    (found,) = check(tmp_path, WORDS)
    assert (found.path, found.message.partition(":")[0]) == (path, f"`{name}`")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/unit/test_a.py", "def test_a_seed_that_was_told(): ..."),
        ("libs/one/src/gardenbus/one/a.lua", "local one = 1 -- local told = 1"),
        ("libs/one/src/gardenbus/one/static/a.js", "one.told(1); // const told = 1"),
    ],
)
def test_sentences_comments_and_uses_pass(tmp_path: Path, path: str, text: str):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert check(tmp_path, WORDS) == []


@pytest.mark.parametrize("source", ["tolden = 1", "as_told_on_the_wire = 1", "x = 'told'", "import told", "x = y.told"])
def test_what_is_no_offence_passes(tmp_path: Path, source: str):
    assert messages(tmp_path, a=source) == []


def test_a_class_name_stands_for_one_thing(tmp_path: Path):
    (found,) = messages(tmp_path, a="class Step: ...", b="class Step: ...")
    assert found.startswith("a.py:1: class `Step` is also defined in")


@pytest.mark.parametrize(
    ("one", "another", "sort"),
    [
        ("Step = int | str", "Step = Mapping[str, str]", "alias"),
        ("Step = int | str", "class Step: ...", "alias"),
        ("class Step: ...", "Step: TypeAlias = int | str", "class"),
        ("_Step = int | str", "class _Step: ...", "alias"),
        ('Step = TypeVar("Step")', "class Step: ...", "type variable"),
    ],
)
def test_the_name_of_a_type_alias_stands_for_one_thing(tmp_path: Path, one: str, another: str, sort: str):
    (found,) = messages(tmp_path, a=one, b=another)
    assert re.match(rf"a\.py:1: {sort} `_?Step` is also defined in", found)


@pytest.mark.parametrize(
    "source", ["STEP = 1", "step = 1", 'Step = TypeVar("Step")', "def f():\n    Step = int", "STEPS, Step = 1, 2"]
)
def test_constants_variables_and_type_variables_may_share_a_name(tmp_path: Path, source: str):
    assert messages(tmp_path, a=source, b=source) == []


@pytest.mark.parametrize(
    "source",
    [
        '"""What a is."""',
        'def f():\n    """Which."""',
        'class A:\n    """How."""',
        'class A:\n    """Whoever asks."""',
        'LIMIT = 1\n"""How many."""',
        'class A:\n    limit: int = 1\n    """Whether."""',
        'class A:\n    limit: int\n    """\n    Whose.\n    """',
        'def f(self):\n    self.limit = 1\n    """Why."""',
    ],
)
def test_a_docstring_states_and_does_not_ask(tmp_path: Path, source: str):
    assert len(messages(tmp_path, a=source)) == 1


@pytest.mark.parametrize(
    "source", ['LIMIT = 1\n"""Longest wait."""', 'LIMIT = "How many."', 'def f(): ...\n"""How."""']
)
def test_strings_that_state_or_are_no_docstrings_pass(tmp_path: Path, source: str):
    assert messages(tmp_path, a=source) == []


@pytest.mark.parametrize("folder", ["deploy/compose", "examples/one"])
def test_scripts_state_too_and_may_share_names_of_classes(tmp_path: Path, folder: str):
    (tmp_path / folder).mkdir(parents=True)
    for name in "ab":
        (tmp_path / folder / f"{name}.py").write_text("class Step: ...")
    assert check(tmp_path, WORDS) == []
    (tmp_path / folder / "c.py").write_text('"""What c is."""')
    assert [violation.path for violation in check(tmp_path, WORDS)] == [f"{folder}/c.py"]


def test_the_glossary_names_retired_words_and_their_terms():
    words = read_glossary(GLOSSARY.read_text())
    assert words.retired["nudge"] == "enqueue, enqueuer"
    assert len(words.retired) > 60


def test_a_glossary_without_retired_words_is_an_error():
    with pytest.raises(ValueError, match="instead of"):
        read_glossary("| term | meaning | where it lives | |\n")
