"""What every process of agents is told at its start: files, a directory, and the environment; all mistakes at once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gardenbus.agent.settings import AgentSettings, load_agent_settings
from gardenbus.common.errors import SettingsInvalid

USAGE = "usage: agents --config FILE"


class Settings(AgentSettings, frozen=True, kw_only=True):
    configurations: tuple[str, ...] = ()
    state_dir: str = ".agents"


def parse(text: bytes, *, source: str) -> list[str]:
    if b"?" in text:
        raise SettingsInvalid((f"{source}: what is ? to mean",))
    return text.decode().split()


def twice(words: Sequence[str]) -> list[str]:
    return [f"{word} twice" for word in sorted(set(words)) if words.count(word) > 1]


def loaded(*arguments: str, **environ: str) -> Settings:
    return load_agent_settings(Settings, parse, twice, usage=USAGE, arguments=arguments, environ=environ)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    contents = {"one": "a b", "two": "c", "wrong": "?", "again": "c"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return [str(tmp_path / name) for name in contents]


def test_several_files_and_a_directory_are_read(files: list[str]) -> None:
    settings = loaded("--config", files[0], "--config", files[1], "--state-dir", "/somewhere")
    assert (settings.configurations, settings.state_dir) == (("a", "b", "c"), "/somewhere")


def test_the_directory_is_the_environment_s_or_the_usual_one(files: list[str]) -> None:
    assert loaded("--config", files[0]).state_dir == ".agents"
    assert loaded("--config", files[0], GARDENBUS_STATE_DIR="/there").state_dir == "/there"


def test_all_mistakes_are_told_at_once(files: list[str]) -> None:
    names = [*files, "/nowhere"]
    with pytest.raises(SettingsInvalid) as raised:
        loaded(*(part for name in names for part in ("--config", name)), GARDENBUS_LOG_LEVEL="sing")
    problems = raised.value.problems
    for expected in ("what is ? to mean", "c twice", "/nowhere: No such file", "GARDENBUS_LOG_LEVEL"):
        assert sum(expected in each for each in problems) == 1, problems


def test_wrong_arguments_are_answered_with_the_usage() -> None:
    with pytest.raises(SettingsInvalid) as raised:
        loaded("--loud")
    assert USAGE in raised.value.problems
