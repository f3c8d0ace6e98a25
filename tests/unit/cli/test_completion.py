"""What a shell is told, by the command as it is installed and in the words that typer's scripts use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gardenbus.cli.contexts.config import ContextEntry, ContextsConfig, write_config
from gardenbus.cli.main import COMMANDS, COMPLETING
from tests.support.commands import INSTALLED, gardenbus_program
from tests.support.eventually import HANG_SECONDS

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is reached, with a config file of two contexts."""
    file = tmp_path / "config.yaml"
    write_config(
        file, ContextsConfig("lab", {"lab": ContextEntry(nats_url="127.0.0.1:1"), "moon": ContextEntry(dir="/nowhere")})
    )
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GARDENBUS_")}
    path = f"{gardenbus_program().parent}{os.pathsep}{outside.get('PATH', '')}"
    return {**outside, "GARDENBUS_CONFIG": str(file), "PATH": path}


def completion_environ(shell: str, line: str) -> dict[str, str]:
    """What a shell's script puts into the environment where the cursor stands at the end of a line."""
    if shell == "bash":
        return {COMPLETING: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"} if shell == "fish" else {}
    return {COMPLETING: f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, **action}


def responded(environ: dict[str, str], shell: str, line: str) -> str:
    done = subprocess.run(
        [str(gardenbus_program())],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env={**environ, **completion_environ(shell, line)},
    )
    assert done.stderr == ""
    return done.stdout


def offered(environ: dict[str, str], line: str, shell: str = "bash") -> list[str]:
    """The words alone."""
    out = responded(environ, shell, line)
    if shell == "zsh":
        if out == "_files\n":
            return []
        return re.findall(r'^(?:_arguments .*?)?"([^"]+)"', out, re.MULTILINE)
    return [row.split("\t")[0] for row in out.splitlines() if row]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_told_commands_options_kinds_contexts_and_goals(environ: dict[str, str], shell: str):
    assert offered(environ, "gardenbus ", shell)[: len(COMMANDS)] == list(COMMANDS)
    assert offered(environ, "gardenbus get --fie", shell) == ["--field-selector"]
    assert offered(environ, "gardenbus get pro", shell) == ["projects", "project"]
    assert offered(environ, "gardenbus --context ", shell) == ["lab", "moon"]
    assert offered(environ, "gardenbus wait shoot apollo --for ", shell)[:2] == ["condition=", "scheduled"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gardenbus des", ["describe"]),
        ("gardenbus rollout ", ["status", "history", "undo"]),
        ("gardenbus get shoots,clo", ["shoots,cloudprofiles", "shoots,cloudprofile"]),
        ("gardenbus get shoots --context m", ["moon"]),
        ("gardenbus top seeds --context m", ["moon"]),
        ("gardenbus config use-context l", ["lab"]),
        ("gardenbus get shoots -o j", ["json", "jsonpath="]),
        ("gardenbus completion ", ["bash", "zsh", "fish"]),
        ("gardenbus down --cont", []),
        ("gardenbus get nothing ", []),
        ("gardenbus explain ", ["shoot", "seed", "placement", "clusterresourceplacement", "resourceplacement"]),
        ("gardenbus retry ", ["shoot"]),
        ("gardenbus scale ", ["managedseedset"]),
        ("gardenbus rollout status ma", ["managedseedset"]),
        ("gardenbus retry seed ", []),
    ],
)
def test_what_may_come_next_is_offered(environ: dict[str, str], line: str, words: list[str]):
    assert sorted(offered(environ, line)) == sorted(words)


@pytest.mark.parametrize(
    "line",
    [
        "gardenbus get shoots a",
        "gardenbus get -n ",
        "gardenbus explain apo",
        "gardenbus explain placement w",
        "gardenbus scale mss g",
        "gardenbus --context moon get shoots ",
        "gardenbus get --context nope shoots ",
        "gardenbus get --nats-url http://x shoots ",
    ],
)
def test_where_no_landscape_answers_nothing_is_offered_nor_said(environ: dict[str, str], line: str):
    assert offered(environ, line) == []


def test_a_broken_config_file_offers_nothing_and_keeps_nothing_from_being_offered(environ: dict[str, str]):
    Path(environ["GARDENBUS_CONFIG"]).write_text("{")

    assert offered(environ, "gardenbus --context ") == []
    assert offered(environ, "gardenbus get shoots ") == []
    assert "shoots" in offered(environ, "gardenbus get sh")


def test_fish_is_told_whether_it_is_to_offer_files(environ: dict[str, str]):
    def ends(line: str) -> int:
        requested = {**environ, **completion_environ("fish", line), "_TYPER_COMPLETE_FISH_ACTION": "is-args"}
        return subprocess.run(
            [str(gardenbus_program())], check=False, capture_output=True, env=requested, timeout=HANG_SECONDS
        ).returncode

    assert ends("gardenbus get sho") == 0
    assert ends("gardenbus apply -f ") == 1


def test_the_script_for_bash_does_it_in_bash(environ: dict[str, str]):
    program = (
        "source <(gardenbus completion bash)\n"
        "complete -p gardenbus\n"
        "COMP_WORDS=(gardenbus get --context '') COMP_CWORD=3\n"
        '_gardenbus_completion gardenbus; printf "%s\\n" "${COMPREPLY[@]}"'
    )

    done = subprocess.run(
        ["bash", "--norc", "-c", program], check=True, capture_output=True, text=True, timeout=HANG_SECONDS, env=environ
    )

    assert done.stdout.splitlines() == [
        "complete -o default -F _gardenbus_completion gardenbus",
        "lab",
        "moon",
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("shell", "part"),
    [
        ("bash", "complete -o default -F _gardenbus_completion gardenbus"),
        ("zsh", "compdef _gardenbus_completion gardenbus"),
        ("fish", "complete --command gardenbus --no-files"),
    ],
)
def test_a_script_asks_in_the_words_that_are_understood(environ: dict[str, str], shell: str, part: str):
    done = subprocess.run(
        [str(gardenbus_program()), "completion", shell],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env=environ,
    )

    assert part in done.stdout
    assert f"{COMPLETING}=complete_{shell}" in done.stdout


def test_commands_and_kinds_are_offered_without_importing_who_speaks_to_a_landscape(environ: dict[str, str]):
    def imported(line: str) -> set[str]:
        program = [sys.executable, "-X", "importtime", str(INSTALLED)]
        done = subprocess.run(
            program,
            check=True,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env={**environ, **completion_environ("bash", line)},
        )
        return {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}

    commands = imported("gardenbus ge")
    assert "typer" in commands
    assert commands.isdisjoint({"asyncio", "msgspec", "yaml", "rich.console", "nats", "gardenbus.cli.completions"})
    kinds = imported("gardenbus get sh")
    assert "gardenbus.cli.completions" in kinds
    assert kinds.isdisjoint({"nats", "structlog", "aiohttp", "gardenbus.scheduling", "gardenbus.embedded.up"})
