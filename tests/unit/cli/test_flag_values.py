"""Flags with values in the words of a command."""

from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from gardenbus.cli.flag_values import take_flag_values, without_flag_values


def command(received: list[Any]) -> Any:
    """A command with a flag; what it is called with is kept."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def paint(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        *,
        text: str = "plain",
        flag: Annotated[bool, typer.Option("--flag/--no-flag")] = False,
    ) -> None:
        """Paint."""
        del text
        received.append((words, flag))

    del paint
    return get_command(app)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--flag=true", "a"], ["--flag", "a"]),
        (["--flag=false", "a"], ["--no-flag", "a"]),
        (["--flag", "--flag=false"], ["--no-flag"]),
        (["--flag=false", "--flag=true"], ["--flag"]),
        (["--flag=maybe", "--text=true"], ["--flag=maybe", "--text=true"]),
        (["--flag=true", "--", "--flag=false"], ["--flag", "--", "--flag=false"]),
    ],
)
def test_a_flag_takes_true_and_false_for_a_value(words: list[str], left: list[str]) -> None:
    paint = command([])
    flags = {each.opts[0]: each for each in paint.params if getattr(each, "is_flag", False)}
    assert without_flag_values(words, flags) == left


def test_a_command_and_those_below_it_take_the_values_of_their_flags() -> None:
    received: list[Any] = []
    paint = command(received)
    for _ in range(2):
        take_flag_values(paint)
    paint.main(["--flag=true", "word"], standalone_mode=False)
    paint.main(["--flag=false"], standalone_mode=False)
    assert received == [(["word"], True), (None, False)]
