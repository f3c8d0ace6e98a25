"""Import contracts of the workspace and of each service: each violation planted in a copy of the source is found."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import HANG_SECONDS

ROOT = Path(__file__).parents[3]
MEMBERS = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*/*/src"), ROOT / "cli" / "src"))
SERVICES = sorted(path.relative_to(ROOT) for path in ROOT.glob("services/*/pyproject.toml"))


def configuration(file: Path) -> Mapping[str, Any]:
    return tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["tool"]["importlinter"]


CONFIGURATION = configuration(Path("pyproject.toml"))

PLANTED = {
    "services/dashboard/src/gardenbus/dashboard/domain/planted.py": ("import asyncio", "import time", "import random"),
    "services/lifecycle/src/gardenbus/lifecycle/domain/planted.py": (
        "from gardenbus.common.adapters.redis import store",
    ),
    "services/placement/src/gardenbus/placement/domain/planted.py": ("import socket",),
    "services/apiserver/src/gardenbus/apiserver/domain/planted.py": ("import gardenbus.common.runtime.clock",),
    "libs/fleet/src/gardenbus/fleet/planted.py": ("import threading",),
    "libs/common/src/gardenbus/common/api/planted.py": ("import gardenbus.common.ports.store",),
    "services/autoscaler/src/gardenbus/autoscaler/utils.py": ("import gardenbus.autoscaler.controllers",),
    "services/relay/src/gardenbus/relay/planted.py": ("import gardenbus.scheduler.settings",),
    "cli/src/gardenbus/cli/output/planted.py": ("import gardenbus.gardenlet.settings", "import nats"),
    "libs/agent/src/gardenbus/agent/domain/planted.py": ("import pathlib",),
}

EXPECTED = {
    "asyncio in a domain": r"gardenbus\.dashboard\.domain\.planted -> asyncio",
    "time in a domain": r"gardenbus\.dashboard\.domain\.planted -> time",
    "random in a domain": r"gardenbus\.dashboard\.domain\.planted -> random",
    "an adapter in a domain": r"gardenbus\.lifecycle\.domain\.planted -> gardenbus\.common\.adapters\.redis\.store",
    "a socket in a domain": r"gardenbus\.placement\.domain\.planted -> socket",
    "the runtime in a domain": r"gardenbus\.apiserver\.domain\.planted -> gardenbus\.common\.runtime",
    "threads in a pure library": r"gardenbus\.fleet\.planted -> threading",
    "a port in the API": r"gardenbus\.common\.api\.planted -> gardenbus\.common\.ports",
    "a module in no layer": r"gardenbus\.autoscaler\.utils",
    "a module in no layer of the relay": r"gardenbus\.relay\.planted",
    "a service in a service": r"gardenbus\.relay\.planted -> gardenbus\.scheduler",
    "a service in the client": r"gardenbus\.cli\.output\.planted -> gardenbus\.gardenlet",
    "NATS outside of the adapters": r"gardenbus\.cli\.output\.planted -> nats",
    "files in the agents' decisions": r"gardenbus\.agent\.domain\.planted -> pathlib",
}


def lint(root: Path) -> tuple[int, str]:
    """Run import-linter on a copy, with each configuration; its exit codes together and all that it printed."""
    path = os.pathsep.join(str(root / member) for member in MEMBERS)
    code, printed = 0, ""
    for file in ("pyproject.toml", *SERVICES):
        linted = subprocess.run(
            [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", str(file)],
            check=False,
            cwd=root,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        code |= linted.returncode
        printed += linted.stdout + linted.stderr
    return code, re.sub(r"\s+", " ", printed)  # without line breaks in sentences


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy")
    for member in MEMBERS:
        shutil.copytree(ROOT / member, root / member, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for file in (Path("pyproject.toml"), *SERVICES):
        shutil.copy(ROOT / file, root / file)
    return root


@pytest.fixture(scope="module")
def rejections(copied: Path) -> str:
    """The complaints about a copy with all violations planted; the copy without them has none."""
    clean, complaints = lint(copied)
    assert clean == 0, complaints
    for name, lines in PLANTED.items():
        (copied / name).write_text("\n".join(lines) + "\n")
    planted, complaints = lint(copied)
    assert planted == 1
    return complaints


@pytest.mark.parametrize("violation", EXPECTED)
def test_a_planted_violation_is_refused(rejections: str, violation: str) -> None:
    assert re.search(EXPECTED[violation], rejections), rejections


def test_every_member_of_the_workspace_is_under_contract() -> None:
    packages = {
        f"gardenbus.{package.name}"
        for member in MEMBERS
        for package in (ROOT / member / "gardenbus").iterdir()
        if (package / "__init__.py").is_file()
    }
    assert {*CONFIGURATION["root_packages"]} == packages
    containers: Sequence[str] = [
        container
        for file in (Path("pyproject.toml"), *SERVICES)
        for contract in configuration(file)["contracts"]
        for container in contract.get("containers", ())
    ]
    assert len(containers) == len({*containers})
    assert {*containers} == packages
    (members,) = (contract for contract in CONFIGURATION["contracts"] if contract["name"].startswith("Members:"))
    assert {member for layer in members["layers"] for member in layer.split(" | ")} == packages
