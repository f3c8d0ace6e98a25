"""Every `gardenbus` command that a page names exists, with the options that it is given."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gardenbus.cli.lazy import loaded
from gardenbus.cli.main import COMMANDS
from gardenbus.docs.commands import options_of
from tests.support.sessions import PAGES, ROOT

HELP = {"-h", "--help"}
GENERATED = ROOT / "docs" / "reference"
WRITTEN = [page for page in (*PAGES, ROOT / "ARCHITECTURE.md") if GENERATED not in page.parents]


def named(page: Path) -> Iterator[str]:
    """Commands in code, inline or in blocks, up to where the shell goes on with something else."""
    text = page.read_text()
    blocks = re.findall(r"```(?:console|sh|bash|text)\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for code in (*inline, *(line.removeprefix("$ ") for block in blocks for line in block.splitlines())):
        found = re.search(r"(?:^|\| )gardenbus(?: .*|$)", " ".join(code.split()))
        if found:
            yield re.split(r" [|>&] | && |; ", found[0].removeprefix("| "))[0]


@cache
def command(name: str) -> Any:
    """A command with its options."""
    return loaded(name, COMMANDS[name])


def problem(words: list[str]) -> str:
    """What is wrong with a command line; "" for nothing."""
    if not words or words[0] in {*HELP, "--version"} or words[0].isupper():
        return ""
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]}"
    found = command(words[0])
    children: dict[str, Any] = getattr(found, "commands", {})
    existing = options_of(found) | HELP
    if len(words) > 1 and words[1] in children:
        existing |= options_of(children[words[1]])
    else:  # a group that takes a child's options itself
        existing = existing.union(*(options_of(child) for child in children.values()))
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
    return f"{words[0]} has no option {', '.join(sorted(given - existing))}" if given - existing else ""


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_exists_with_its_options(page: Path):
    problems = {line: problem(shlex.split(line, comments=True)[1:]) for line in named(page)}
    assert {line: what for line, what in problems.items() if what} == {}


def test_commands_are_found_and_wrong_ones_are_seen():
    assert len(list(named(ROOT / "docs" / "index.md"))) > 20
    assert problem(["frobnicate"])
    assert problem(["get", "seeds", "--frobnicate"])
    assert not problem(["rollout", "status", "mss/grove", "--watch"])


def test_each_line_of_the_failure_guide_has_a_symptom_a_cause_and_a_command():
    guide = (ROOT / "docs" / "operating.md").read_text().split("| symptom | cause | command |", 1)[1]
    rows = [line.split(" | ") for line in guide.split("\n\n", 1)[0].splitlines()[2:]]
    assert len(rows) >= 15
    for row in rows:
        assert len(row) == 3, row
        assert "`gardenbus " in row[2], row
