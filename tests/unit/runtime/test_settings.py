from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, load


class QueueSettings(CommonSettings, frozen=True, kw_only=True):
    directory: Path
    """No default: somebody must say it."""

    batch: Annotated[int, msgspec.Meta(gt=0)] = 100


def problems_of(file: Path | None, environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsInvalid) as caught:
        load(QueueSettings, file, environ)
    return caught.value.problems


def test_defaults_hold_when_nothing_is_given():
    settings = load(CommonSettings, environ={})

    assert settings.nats_url == "nats://127.0.0.1:4222"
    assert settings.prefix == "garden"
    assert settings.health_port == 0
    assert settings.instance


def test_the_environment_wins_over_the_file(tmp_path: Path):
    file = tmp_path / "settings.yaml"
    file.write_text("batch: 5\ndirectory: /from/file\n")

    settings = load(QueueSettings, file, {"GARDENBUS_BATCH": "7", "GARDENBUS_HEALTH_PORT": "8080"})

    assert settings.batch == 7
    assert settings.directory == Path("/from/file")
    assert settings.health_port == 8080


def test_all_problems_are_told_at_once(tmp_path: Path):
    file = tmp_path / "settings.yaml"
    file.write_text("bach: 5\nbatch: '9'\n")

    problems = problems_of(file, {"GARDENBUS_NATS_URL": "http://x", "GARDENBUS_HEALTH_PORT": "70000"})

    text = "\n".join(problems)
    assert len(problems) == 5
    assert "bach: no such setting" in text
    assert "batch: Expected `int`, got `str`" in text
    assert "GARDENBUS_NATS_URL" in text
    assert "GARDENBUS_HEALTH_PORT" in text
    assert "GARDENBUS_DIRECTORY: must be set" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [("- a\n", "must be a mapping"), ("a: [\n", "is no YAML")],
)
def test_a_file_that_is_no_mapping_is_a_problem(tmp_path: Path, content: str, words: str):
    file = tmp_path / "settings.yaml"
    file.write_text(content)

    assert words in problems_of(file, {"GARDENBUS_DIRECTORY": "/d"})[0]


def test_a_missing_file_is_a_problem_and_an_empty_one_is_none(tmp_path: Path):
    assert "cannot be read" in problems_of(tmp_path / "none.yaml", {"GARDENBUS_DIRECTORY": "/d"})[0]

    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    assert load(QueueSettings, empty, {"GARDENBUS_DIRECTORY": "/d"}).batch == 100


@pytest.mark.parametrize("prefix", ["a.b", "Garden", "a b", "*", ""])
def test_a_prefix_that_is_no_label_is_refused(prefix: str):
    with pytest.raises(SettingsInvalid):
        load(CommonSettings, environ={"GARDENBUS_PREFIX": prefix})
