"""What every command says of itself: an example that can be called, and how it ends."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from gardenbus.cli.lazy import loaded
from gardenbus.cli.main import COMMANDS, ENDS, INTERRUPTED, app
from gardenbus.cli.output.console import Exit

BEGINS_ELSEWHERE = ("source <(", "docker compose ", "EDITOR=")


def all_commands() -> Iterator[tuple[str, Any]]:
    """Each command that does something, by the words that call it."""

    def below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        subcommands: dict[str, Any] = getattr(command, "commands", {})
        if not subcommands:
            yield words, command
        for name, child in subcommands.items():
            if not child.hidden:  # another name of a command that is listed
                yield from below(f"{words} {name}", child)

    for name, entry in COMMANDS.items():
        yield from below(name, loaded(name, entry))


ALL = dict(all_commands())


def examples_of(command: Any) -> list[str]:
    """The lines of a help text that can be called."""
    text = str(command.help).replace("\b", "")
    lines = [line.strip().removeprefix("Example: ") for line in text.splitlines()]
    return [line for line in lines if line.startswith("gardenbus ") or line.startswith(BEGINS_ELSEWHERE)]


@pytest.mark.parametrize("words", ALL)
def test_the_help_of_every_command_has_an_example_of_it(words: str):
    group, _, last = words.partition(" ")
    called = f"gardenbus {group}" if last in ("landscapes", "what-if") else f"gardenbus {words}"

    assert any(called in example for example in examples_of(ALL[words]))
    shown = CliRunner().invoke(app, [*words.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "Example" in shown.stdout


@pytest.mark.parametrize("words", ALL)
def test_every_example_has_only_options_that_there_are(words: str):
    existing = {option for parameter in ALL[words].params for option in (*parameter.opts, *parameter.secondary_opts)}

    for example in examples_of(ALL[words]):
        parts = shlex.split(example.replace("<(", "( "), posix=True)
        called = parts[parts.index("gardenbus") + 1 :]
        given = {part.partition("=")[0] for part in called if part.startswith("-") and not part.lstrip("-").isdigit()}
        assert given - {"-"} <= existing, example


def test_how_commands_end_is_told_by_the_help():
    assert {ending.value for ending in Exit} == {0, 1, 2, 3, INTERRUPTED}
    shown = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout.split())
    assert ENDS in shown
    for ending in Exit:
        assert f"{ending.value} " in ENDS


@pytest.mark.parametrize("words", ALL)
def test_every_command_that_asks_a_landscape_can_be_told_its_context(words: str):
    names = {parameter.name for parameter in ALL[words].params}

    assert ("context" in names) == (
        {"directory", "nats_url", "prefix"} <= names and words not in ("up", "config set-context", "login")
    )


def test_simulate_shows_what_can_be_supposed_without_the_name_of_a_command():
    requested = [CliRunner().invoke(app, ["simulate", *words], env={"COLUMNS": "200"}) for words in ([], ["--help"])]

    compared = {option for parameter in ALL["simulate what-if"].params for option in parameter.opts}
    shown = {word.rstrip(",.") for word in requested[1].output.split()}
    assert [result.exit_code for result in requested] == [2, 0]
    assert requested[0].output.rstrip() == requested[1].output.rstrip()
    assert {"--add-seed", "--remove-seed", "--cordon", "--shoots", "--like", "--strategy"} <= compared & shown
