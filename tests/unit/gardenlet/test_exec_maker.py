"""The backend `exec`: what commands are given, what their exit codes and answers mean, and how they are ended."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.errors import SettingsInvalid
from gardenbus.gardenlet.backend.exec.maker import ExecMaker
from gardenbus.gardenlet.backend.installed import new_maker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken, MakerContext, StepFailed, StepRequest
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS, CheckError
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually
from tests.support.maker_conformance import SHOOT, MakerConformance
from tests.support.seed_backends import a_local_backend
from tests.support.sessions import ROOT

OBSERVED = ObservedShoot.of(a_shoot(), uid="u1", version=1, role="run")

COMMAND = ROOT / "examples" / "backend" / "exec_backend.py"
PAGE = ROOT / "docs" / "backends.md"


def a_command(directory: Path, text: str) -> list[str]:
    """A command that runs Python text."""
    script = directory / "step.py"
    directory.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    return [sys.executable, "-S", str(script)]


def an_exec_maker(directory: Path, text: str, **options: Any) -> ExecMaker:
    """A maker whose only command is Python text."""
    return a_maker(directory, {"commands": {"default": a_command(directory, text)}, **options})


def a_maker(directory: Path, options: Mapping[str, Any]) -> ExecMaker:
    files = LocalFiles(directory / "grove")
    files.open()
    assert files.acquire(FencingToken(1, 1))
    settings = ShootBackendSettings(type="exec", options=dict(options))
    maker = new_maker(MakerContext("grove", directory / "grove", settings, FakeClock(), files.owned))
    assert isinstance(maker, ExecMaker)
    return maker


def a_request(step: str = "etcd", **kept: Any) -> StepRequest:
    return StepRequest(SHOOT, "u1", step, "Create", OBSERVED, kept=kept)


async def failure_of(maker: ExecMaker, step: str = "etcd") -> StepFailed:
    with pytest.raises(StepFailed) as error:
        await maker.make(a_request(step))
    return error.value


class TestTheCommandOfThePage(MakerConformance):
    cuts = (0, 2, 5)
    kills = (-1, 1)
    killed_in = (("Create", False), ("Delete", False))

    def backend(self, directory: Path) -> SeedBackend:
        options = {"commands": {"default": [sys.executable, "-S", str(COMMAND)]}, "killAfterSeconds": 0.5}
        return a_local_backend(directory, ShootBackendSettings(type="exec", options=options))

    def left(self, directory: Path) -> list[str]:
        return [str(path) for path in (directory / "exec").glob("*")]

    async def test_the_file_has_the_spec_and_its_loss_is_a_problem(self, tmp_path: Path) -> None:
        backend = await self.a_life(tmp_path, 1)
        await self.run(backend, "Create", 1)
        (file,) = (tmp_path / "exec").iterdir()
        assert json.loads(file.read_text()) == self.observed().spec
        file.unlink()
        assert await backend.problems(self.observed()) == {"ControlPlaneHealthy": "Its file is gone."}
        await backend.stop()


def test_the_page_shows_the_command_as_it_is_and_it_has_at_most_40_lines() -> None:
    source = COMMAND.read_text()
    assert f"```python\n{source}```" in PAGE.read_text()
    assert len(source.splitlines()) <= 40


async def test_a_command_is_given_the_step_the_shoot_and_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED_ON", "yes")
    monkeypatch.setenv("HELD_BACK", "secret")
    maker = an_exec_maker(
        tmp_path,
        "import json, os, sys\n"
        "print(json.dumps({'kept': {'given': json.load(sys.stdin), 'names': sorted(os.environ)}}))",
        environment=["PASSED_ON"],
    )
    kept = await maker.make(a_request("etcd", secrets={"ca": "1"}))
    given = kept["given"]
    assert given["step"] == "etcd"
    assert given["operation"] == "Create"
    assert given["shoot"] == {
        "namespace": "garden-dev", "name": "apollo", "uid": "u1", "technicalID": "shoot--dev--apollo",
    }  # fmt: skip
    assert given["spec"] == OBSERVED.spec
    assert given["kept"] == {"secrets": {"ca": "1"}}
    assert given["seed"] == {"name": "grove", "directory": str(tmp_path / "grove" / "exec")}
    assert "PASSED_ON" in kept["names"]
    assert "HELD_BACK" not in kept["names"]


async def test_without_an_answer_what_is_kept_stays(tmp_path: Path) -> None:
    maker = an_exec_maker(tmp_path, "")
    assert await maker.make(a_request("etcd", etcd={"volume": "v1"})) == {"volume": "v1"}


async def test_a_step_without_a_command_is_done_at_once(tmp_path: Path) -> None:
    maker = a_maker(tmp_path, {"commands": {"infrastructure": "no-such-program"}})
    assert await maker.make(a_request("etcd")) == {}
    assert "Not checked" in maker.healthy_message


async def test_exit_code_75_is_tried_again_whatever_codes_it_names(tmp_path: Path) -> None:
    response = {
        "message": "the volume is being made",
        "codes": ["ERR_CONFIGURATION_PROBLEM", "ERR_INFRA_RESOURCES_DEPLETED"],
    }
    error = await failure_of(
        an_exec_maker(tmp_path, f"print({json.dumps(json.dumps(response))})\nraise SystemExit(75)")
    )
    assert error.message == f"Step etcd: command {sys.executable} is not done yet: the volume is being made"
    assert error.codes == ("ERR_INFRA_RESOURCES_DEPLETED",)


async def test_another_exit_code_fails_with_the_codes_that_there_are(tmp_path: Path) -> None:
    response = {"message": "no such region", "codes": ["ERR_CONFIGURATION_PROBLEM", "ERR_MINE"]}
    error = await failure_of(an_exec_maker(tmp_path, f"print({json.dumps(json.dumps(response))})\nraise SystemExit(3)"))
    assert error.message.endswith("ended with 3: no such region (unknown codes: ERR_MINE)")
    assert error.codes == ("ERR_CONFIGURATION_PROBLEM",)


async def test_a_command_that_says_nothing_fails_with_the_end_of_its_standard_error(tmp_path: Path) -> None:
    error = await failure_of(an_exec_maker(tmp_path, "raise ValueError('out of volumes')"))
    assert error.message.endswith("ended with 1: ValueError: out of volumes")
    assert error.codes == ()


async def test_standard_error_goes_into_the_log_line_by_line(tmp_path: Path) -> None:
    maker = an_exec_maker(tmp_path, "import sys\nprint('one\\ntwo', file=sys.stderr)\nsys.stderr.write('x' * 5000)")
    with capture_logs() as logs:
        await maker.make(a_request())
    lines = [each["line"] for each in logs if each["event"] == "command.logged"]
    assert lines == ["one", "two", "x" * 4096, "x" * 904]
    assert {each["step"] for each in logs} == {"etcd"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print('done')", "has not returned the JSON that was requested"),
        ("print('[1]')", "has not returned the JSON that was requested"),
        ("import sys; sys.stdout.buffer.write(bytes([255, 254]))", "has not returned the JSON that was requested"),
        ("""print('{"kept": {"a": 1}, "kpet": 1}')""", "unknown field `kpet`"),
        ("""print('{"kept": {"at": 1}}')""", "must not keep at"),
        ("""print('{"problems": {"Sunny": "no"}}')""", "problems of unknown conditions: Sunny"),
        ("""print('{"problems": {"EveryNodeReady": "no"}}')""", "problems are for the response to `health`"),
        ("""print('{"kept": {"a": ' + '{"a":' * 5000 + '1' + '}' * 5002)""", "nested too deeply"),
        ("""print('{"kept": {"a": "' + 'x' * 900_000 + '"}}')""", " bytes would be kept of all steps, 800000 at most"),
        ("print('x' * 2_000_000)", "has written more than 1 MiB to its output"),
        ("import os; os.kill(os.getpid(), 11)", "ended by signal 11"),
    ],
)
async def test_garbage_is_a_failure_of_the_step_that_says_so(tmp_path: Path, text: str, reason: str) -> None:
    error = await failure_of(an_exec_maker(tmp_path, text))
    assert error.message.startswith("Step etcd")
    assert reason in error.message


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-program --now", "no-such-program is not on PATH"),
        ("./no/such/file", "there is no /"),
        ("./plain", "plain is not executable"),
    ],
)
async def test_a_command_that_is_missing_is_named_with_its_step_and_setting(
    tmp_path: Path, command: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").touch()
    maker = a_maker(tmp_path, {"commands": {"etcd": command}})
    error = await failure_of(maker)
    assert error.message.startswith(f"Step etcd: command {command.split(maxsplit=1)[0]} cannot be run: ")
    assert reason in error.message
    assert "backend.options.commands.etcd" in error.message
    assert error.codes == ("ERR_RETRYABLE_CONFIGURATION_PROBLEM",)
    assert reason in (await maker.seed_problem() or "")


async def test_a_command_whose_interpreter_is_missing_says_so(tmp_path: Path) -> None:
    command = tmp_path / "command"
    command.write_text("#!/no/such/interpreter\n")
    command.chmod(0o755)
    error = await failure_of(a_maker(tmp_path, {"commands": {"default": str(command)}}))
    assert error.message == (
        f"Step etcd: command {command} cannot be run: the interpreter in its first line does not exist "
        "(backend.options.commands.default)"
    )


async def test_a_command_that_leaves_its_output_to_a_child_is_told_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    text = IN_A_GROUP.format(is_deaf=False, file=str(file)).replace("time.sleep(60)\n", "")
    error = await failure_of(an_exec_maker(tmp_path, text, timeoutSeconds=2, killAfterSeconds=0.3))
    assert "has ended, and what it has started had its output for 2 s" in error.message
    pids = await pids_in(file)
    await eventually(lambda: have_ended(pids))


IN_A_GROUP = """
import os, pathlib, signal, subprocess, sys, time
if {is_deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
pathlib.Path({file!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def pids_in(file: Path) -> list[int]:
    """The command's process and its child's, once both are there."""
    pids = [int(each) for each in file.read_text().split()] if file.exists() else []
    assert len(pids) == 2
    return pids


async def have_ended(pids: list[int]) -> None:
    assert [pid for pid in pids if is_running(pid)] == []


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_has_started(
    tmp_path: Path, is_deaf: bool
) -> None:
    file = tmp_path / "pids"
    text = IN_A_GROUP.format(is_deaf=is_deaf, file=str(file))
    maker = an_exec_maker(tmp_path, text, timeoutSeconds=2, killAfterSeconds=0.3)
    error = await failure_of(maker)
    assert error.message.endswith("has not ended within 2 s, and was killed")
    pids = await pids_in(file)
    await eventually(lambda: have_ended(pids))


async def test_a_step_that_is_cancelled_ends_its_command_first(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    maker = an_exec_maker(tmp_path, IN_A_GROUP.format(is_deaf=False, file=str(file)), killAfterSeconds=2)
    step = asyncio.create_task(maker.make(a_request()))
    pids = await eventually(lambda: pids_in(file))
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    await eventually(lambda: have_ended(pids))


async def test_whoever_takes_the_seed_over_ends_what_its_predecessor_has_left_running(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    text = IN_A_GROUP.format(is_deaf=False, file=str(file))
    left = asyncio.create_task(an_exec_maker(tmp_path, text, killAfterSeconds=2).make(a_request()))
    pids = await eventually(lambda: pids_in(file))
    successor = an_exec_maker(tmp_path, text, killAfterSeconds=2)
    await successor.take_over({})
    with pytest.raises(StepFailed, match="ended by signal 15"):
        await left
    await eventually(lambda: have_ended(pids))
    assert is_running(os.getpid())


async def test_health_names_problems_and_is_one_when_it_fails(tmp_path: Path) -> None:
    responses = an_exec_maker(tmp_path / "a", """print('{"problems": {"EveryNodeReady": "Two nodes are gone."}}')""")
    assert await responses.problems(OBSERVED, {}) == {"EveryNodeReady": "Two nodes are gone."}
    assert await responses.problems(OBSERVED, {"control-plane": {"hibernated": True}}) == {}
    fails = an_exec_maker(tmp_path / "b", "raise SystemExit('no route')")
    problems = await fails.problems(OBSERVED, {})
    assert problems.pop("ControlPlaneHealthy").endswith("ended with 1: no route")
    assert set(map(type, problems.values())) == {CheckError}
    assert problems.keys() == {*CONDITIONS, *CONSTRAINTS} - {"ControlPlaneHealthy"}
    assert "/healthz" not in responses.healthy_message


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "missing required field `commands`"),
        ({"commands": {}}, "commands: must name a command"),
        ({"commands": {"etdc": "x"}}, "commands.etdc: there is no such step"),
        ({"commands": {"etcd": "x 'y"}}, "commands.etcd: No closing quotation"),
        ({"commands": {"etcd": []}}, "commands.etcd: must name a program"),
        ({"commands": {"etcd": 5}}, "Expected `str | array`"),
        ({"commands": {"etcd": "x"}, "timeoutSeconds": 0}, "timeoutSeconds: must be more than zero"),
        ({"commands": {"etcd": "x"}, "timeout": 3}, "unknown field `timeout`"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsInvalid) as error:
        a_maker(tmp_path, options)
    assert str(error.value).count("seed grove: backend.options of exec") == 1
    assert problem in str(error.value)
