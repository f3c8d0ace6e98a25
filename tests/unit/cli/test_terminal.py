"""What comes from outside does not steer the terminal of whoever looks at it."""

import ast
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.live import Live
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.text import Text
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.logs.lines import pretty, read_line
from gardenbus.cli.main import app
from gardenbus.cli.output import terminal
from gardenbus.cli.output.console import new_table, rows_text, yaml_text
from gardenbus.cli.output.terminal import ProtectedStream
from gardenbus.cli.output.terminal_console import TerminalConsole
from gardenbus.common.api.terminal_text import escaped, escaped_cell, escaped_json, steers
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.fake_api import FakeApi

TOP = Path(__file__).parents[3]
EVIL = "a\x1b[2Jb\rc\x9b31md\u202etxt.exe\u2066e\x07\u200bf\U000e0041\x7f"
FORMATS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
LEFT_AS_THEY_ARE = {
    *"\t\n\u200c\u200d",
    *"\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2",  # signs that are seen
}


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(each) in FORMATS and each not in LEFT_AS_THEY_ARE for each in text)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    status = {"lastOperation": {"type": "Create", "state": "Error", "progress": 3, "description": EVIL}}
    bus = FakeApi(
        a_project(metadata={"annotations": {"note": EVIL}}),
        a_seed("aws", shoots=10, metadata={"labels": {"note": EVIL}}),
        a_shoot("apollo", status=status, metadata={"annotations": {"note": EVIL, "two": "a\nforged   row"}}),
    )

    def call(*words: str) -> Result:
        monkeypatch.setattr(options, "connected", bus.connected)
        return CliRunner().invoke(app, [*words, "--nats-url", "nats://nowhere:1"])

    return call


def test_every_control_and_format_character_is_escaped_but_joiners_and_visible_signs():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in FORMATS and character not in LEFT_AS_THEY_ARE:
            assert steers(character), hex(code)
            assert escaped(character).isascii()
        elif unicodedata.category(character) not in ("Cn", "Co"):
            assert escaped(character) == character, hex(code)


def test_a_cell_is_one_line_and_text_keeps_its_lines():
    assert escaped("a\tb\nc\r\x1b[0m") == "a\tb\nc\\r\\u001b[0m"
    assert escaped_cell("a\tb\nc") == "a\\tb\\nc"


def test_escaped_json_and_yaml_mean_what_they_meant():
    document = {"note": EVIL, EVIL: ["\U000e0041\u202e"]}
    as_json = json.dumps(document, ensure_ascii=False)

    assert json.loads(escaped_json(as_json)) == document
    assert is_harmless(escaped_json(as_json))
    assert is_harmless(escaped(yaml_text(document)))


@pytest.mark.parametrize(
    "words",
    [
        "describe shoot apollo",
        "describe project dev",
        "describe seed aws",
        "get shoots -o wide --show-labels",
        "get seeds -o wide",
        "get shoots -o custom-columns=NOTE:.metadata.annotations.note,TWO:.metadata.annotations.two",
        "get shoots -o name",
        "get shoot \x1b[2J\u202e",
        "get \u202eshoots",
        "label shoot apollo \x9b31m=x",
    ],
)
def test_no_command_prints_what_steers_a_terminal(run: Any, words: str):
    done = run(*words.split(" "))

    assert done.output
    assert is_harmless(done.output), ascii(done.output)


def test_a_cell_forges_no_row(run: Any):
    done = run("get", "shoots", "-o", "custom-columns=TWO:.metadata.annotations.two")

    assert done.output.splitlines()[1:] == ["a\\nforged   row"]


@pytest.mark.parametrize("way", ["json", "yaml", "jsonpath={.items[0].metadata.annotations.note}"])
def test_documents_stay_as_they_are_stored_in_a_pipe_and_are_escaped_at_a_terminal(
    run: Any, way: str, monkeypatch: pytest.MonkeyPatch
):
    piped = run("get", "shoots", "-o", way).output
    monkeypatch.setattr("typer.testing._NamedTextIOWrapper.isatty", always, raising=False)
    shown = run("get", "shoots", "-o", way).output

    assert is_harmless(shown), ascii(shown)
    if way.startswith("jsonpath"):
        assert piped == EVIL
    else:
        read = json.loads if way == "json" else yaml.safe_load
        assert read(piped)["items"][0]["metadata"]["annotations"]["note"] == EVIL
    if way == "json":
        assert json.loads(shown) == json.loads(piped)


def always(_: object) -> bool:
    return True


def drawn(*renderables: Any) -> str:
    out = io.StringIO()
    console = TerminalConsole(file=out, force_terminal=True, width=900, color_system=None)
    for each in renderables:
        console.print(each)
    return out.getvalue()


def test_a_console_escapes_text_in_whatever_it_stands_in():
    table = new_table("A", ">B", folded=EVIL)
    table.add_row(EVIL, Text(EVIL, style="red"), Text.assemble("x", (EVIL, "bold")))
    columns = TextColumn("{task.description}"), TextColumn("{task.fields[words]}", markup=False)
    bars = Progress(*columns, console=TerminalConsole(file=io.StringIO(), width=900))
    bars.add_task(EVIL, words=EVIL)

    shown = drawn(EVIL, Text(EVIL), table, Panel(EVIL, title=Text(EVIL)), bars.get_renderable())

    assert is_harmless(shown), ascii(shown)
    assert shown.count("\\u202e") == 7  # the two of the bars are cut
    assert is_harmless(rows_text(table))


def test_a_console_takes_brackets_and_colons_literally():
    assert drawn("[red]x[/] system:bear:x [link=file:///etc]y[/link] [/]") == (
        "[red]x[/] system:bear:x [link=file:///etc]y[/link] [/]\n"
    )


def test_a_live_picture_keeps_its_own_movements_of_the_cursor():
    out = io.StringIO()
    with Live(Text(EVIL), console=TerminalConsole(file=out, force_terminal=True), auto_refresh=False) as live:
        live.update(Text("b\n" + EVIL), refresh=True)

    assert "\x1b[2K" in out.getvalue()
    assert "\x1b[2Jb" not in out.getvalue()
    assert "\u202e" not in out.getvalue()


def test_styles_stay_on_the_characters_that_they_were_on():
    text = Text("ab\x1bcd")
    text.stylize("bold", 2, 4)
    out = io.StringIO()

    TerminalConsole(file=out, force_terminal=True, color_system="standard", width=40).print(text)

    assert out.getvalue() == "ab\x1b[1m\\u001bc\x1b[0md\n"


def test_a_line_of_a_log_has_no_codes_but_its_own_colours():
    raw = json.dumps({"event": EVIL, "level": EVIL, "service": EVIL, "trace_id": EVIL, EVIL: EVIL, "exception": EVIL})

    for line in (
        read_line(raw, ""),
        read_line(f"{EVIL} | x", ""),
        read_line(f"[1] 2026/11/28 10:00:00.000000 [ERR] {EVIL}", EVIL),
    ):
        assert is_harmless(pretty(line, width=10, is_coloured=False))
        coloured = pretty(line, width=10, is_coloured=True)
        assert "\x1b[2J" not in coloured
        assert "\u202e" not in coloured


def test_a_protected_stream_escapes_all_that_others_write_and_rich_finds_the_one_behind():
    behind = io.StringIO()
    stream = ProtectedStream(behind)

    print(EVIL, file=stream)
    stream.writelines([EVIL, "\n"])

    assert is_harmless(behind.getvalue())
    assert stream.rich_proxied_file is behind
    with pytest.raises((TypeError, AttributeError)):
        stream.write(b"x")  # pyright: ignore[reportArgumentType]


def test_documents_pass_a_protected_stream_into_a_pipe(monkeypatch: pytest.MonkeyPatch):
    behind = io.StringIO()
    monkeypatch.setattr(sys, "stdout", ProtectedStream(behind))

    terminal.write_document(EVIL)
    terminal.write(EVIL)

    assert behind.getvalue() == EVIL + escaped(EVIL)


def _writes(file: Path) -> list[str]:
    """Calls that write to a terminal past `output.terminal`, in a file."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in (
                "print",
                "Console",
                "typer.echo",
                "sys.stdout.write",
                "sys.stderr.write",
                "sys.__stdout__.write",
            ) or (called.endswith((".secho", ".prompt", ".confirm"))):
                found.append(f"{file.name}:{node.lineno}: {called}")
    return found


def test_nothing_but_the_one_place_writes_to_a_terminal():
    files = [*(TOP / "cli/src").rglob("*.py"), *(TOP / "tools/embedded/src").rglob("*.py")]

    assert len(files) > 100
    assert [each for file in files if file.name != "terminal.py" for each in _writes(file)] == []
    assert _writes(TOP / "cli/src/gardenbus/cli/output/terminal.py")
