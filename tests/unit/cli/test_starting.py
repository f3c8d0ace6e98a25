"""What a command does not import, and that the list of commands is true without importing them."""

import ast
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from gardenbus.cli.lazy import Entry, LazyGroup, loaded
from gardenbus.cli.main import COMMANDS, app

HEAVY = (
    "aiohttp",
    "matplotlib",
    "prometheus_client",
    "redis",
    "uvloop",
    "gardenbus.apiserver",
    "gardenbus.scheduler",
    "gardenbus.scheduling",
    "gardenbus.gardenlet",
    "gardenbus.bench",
    "gardenbus.embedded.up",
    "gardenbus.cli.commands.migrate",
    "gardenbus.cli.commands.simulate_autoscaler",
)


def imported_by(program: str) -> set[str]:
    script = f"import sys\ntry:\n    {program}\nfinally:\n    print(); print([*sys.modules])"
    reported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return set(ast.literal_eval(reported.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "words", [["--help"], ["get", "--help"], ["get", "shoots", "--dir", "/nowhere", "--limit", "5"]]
)
def test_a_command_imports_nothing_that_it_does_not_need(words: list[str]):
    names = imported_by(f"from gardenbus.cli.main import app; app({words!r})")

    assert "gardenbus.cli.main" in names
    assert names.isdisjoint({*HEAVY, "nats", "structlog", "pydantic"})
    if words == ["--help"]:
        assert names.isdisjoint({"asyncio", "msgspec", "yaml", "gardenbus.cli.commands.apply"})


def test_who_connects_over_tcp_imports_no_http_client():
    connect = "asyncio.run(opened())"
    program = (
        "import asyncio; from gardenbus.cli.client.api import connected\n"
        "    from gardenbus.cli.client.targets import LandscapeTarget\n"
        "    async def opened():\n"
        "        async with connected(LandscapeTarget('nats://127.0.0.1:1', 'garden'), timeout_seconds=0.05): pass\n"
        f"    {connect}"
    )

    names = imported_by(program)

    assert "nats" in names
    assert names.isdisjoint({*HEAVY, "pygments.lexers"})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_there(name: str):
    command: Any = loaded(name, COMMANDS[name])

    assert command.name == name
    assert command.help


def test_the_list_names_every_command_under_its_heading():
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout

    for name, entry in COMMANDS.items():
        assert f" {name} " in listed
        assert entry.panel in listed


def test_a_mistyped_command_is_guessed():
    result = CliRunner().invoke(app, ["gte"])

    assert result.exit_code == 2
    assert "Did you mean 'get'?" in result.stderr


def test_a_command_added_as_usual_is_one_of_them():
    class Alone(LazyGroup):
        entries = {"get": COMMANDS["get"]}

    other = typer.Typer(cls=Alone, add_completion=False)

    @other.callback()
    def root() -> None:
        """Anything."""

    @other.command()
    def hello() -> None:
        """Say hello."""
        typer.echo("hello")

    del root, hello
    assert CliRunner().invoke(other, ["hello"]).stdout == "hello\n"
    assert get_command(other).list_commands(None) == ["get", "hello"]  # type: ignore[attr-defined]


def test_a_command_of_an_extra_that_is_not_installed_names_the_extra(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(typer.Exit) as ended:
        loaded("fly", Entry("", "Landscape", "Fly.", extra="wings"))

    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == (
        "gardenbus: `gardenbus fly` is not part of the client: pip install 'gardenbus[wings]'\n"
    )
