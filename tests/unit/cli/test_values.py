"""Values of parameters, converted with and without typer's own conversion: they are the same, and so are the errors."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer._click.exceptions import ClickException
from typer.main import get_command

from gardenbus.cli.values import convert_lazily, without_flag_values


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


def command(received: list[Any]) -> Any:
    """A command of every type of parameter; what it is called with is kept."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def paint(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        *,
        text: Annotated[str, typer.Option(envvar="PAINT_TEXT")] = "plain",
        count: Annotated[int, typer.Option(min=1, max=9)] = 3,
        share: float = 0.5,
        flag: Annotated[bool, typer.Option("--flag/--no-flag", envvar="PAINT_FLAG")] = False,
        colour: Annotated[Colour, typer.Option(case_sensitive=False)] = Colour.RED,
        strict: Colour | None = None,
        file: Path | None = None,
        present: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
        files: Annotated[list[Path] | None, typer.Option("-f")] = None,
        upper: Annotated[str, typer.Option(parser=str.upper)] = "none",
    ) -> None:
        """Paint."""
        received.append((words, text, count, share, flag, colour, strict, file, present, files, upper))

    del paint
    return get_command(app)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a b --text x --count 4 --share 0.25 --flag --colour green",
        "--colour GREEN",
        "--colour blue",
        "--strict red",
        "--strict RED",
        "--count many",
        "--count 10",
        "--count 0",
        "--count -1",
        "--count 007",
        "--count +4",
        "--count 1_0",
        "--count ٣",
        "--share half",
        "--file {here}",
        "--file /nowhere/at/all",
        "--present {here}/there",
        "--present {here}",
        "--present /nowhere/at/all",
        "-f {here} -f {here}/there",
        "-f {here} -f /nowhere/at/all",
        "--upper low",
        "--nope",
    ],
)
@pytest.mark.parametrize("environ", [{}, {"PAINT_TEXT": "env", "PAINT_FLAG": "1"}, {"PAINT_FLAG": "perhaps"}])
def test_values_and_errors_are_those_of_typer(
    line: str, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "there").write_text("")
    words = line.format(here=tmp_path).split()
    theirs: list[Any] = []
    ours: list[Any] = []
    lazy = command(ours)
    convert_lazily(lazy, lazy.make_context("paint", [], resilient_parsing=True))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert error_of(lazy, words) == error_of(command(theirs), words)
    assert ours == theirs
    assert [type(value) for call in ours for value in call] == [type(value) for call in theirs for value in call]


def error_of(called: Any, words: list[str]) -> str:
    """The usage error of a call; "" where it has none."""
    try:
        called.main(words, standalone_mode=False)
    except ClickException as error:
        return error.format_message()
    return ""


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


def test_a_command_reads_the_values_of_its_flags_once_converted() -> None:
    received: list[Any] = []
    paint = command(received)
    context = paint.make_context("paint", [], resilient_parsing=True)
    for _ in range(2):
        convert_lazily(paint, context)
    paint.main(["--flag=true", "word"], standalone_mode=False)
    paint.main(["--flag=false"], standalone_mode=False)
    assert [(each[0], each[4]) for each in received] == [(["word"], True), (None, False)]
