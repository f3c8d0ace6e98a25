"""Maker of the backend `exec`: a command of the operator for each step, or one for all.

A command gets a step's request as JSON and responds in JSON (`responses`). It may be cut at any point, and is then
called again. Two never run at once for one step: whoever acquires the seed ends what is left of its predecessor's
commands on this machine. On another machine they end with the gardenlet that runs them, or with their time.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import structlog

from gardenbus.agent.files import make_directory
from gardenbus.common.api.document import Document, encode
from gardenbus.gardenlet.backend.exec.command import (
    MOST_OUTPUT_BYTES,
    OWNER_VARIABLE,
    CommandLimits,
    OutputHeld,
    OutputTooLarge,
    end_survivors,
    run_command,
)
from gardenbus.gardenlet.backend.exec.responses import read_response
from gardenbus.gardenlet.backend.exec.settings import DEFAULT, read_settings
from gardenbus.gardenlet.backend.outside_maker import HEALTH, OutsideMaker
from gardenbus.gardenlet.backend.port import Kept, MakerContext, StepFailed
from gardenbus.gardenlet.backend.step_responses import StepResponse
from gardenbus.gardenlet.domain.shoot_record import ShootName

_log = structlog.stdlib.get_logger()
_RETRYABLE_CONFIGURATION = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"


class ExecMaker(OutsideMaker):
    """The backend `exec`. Implements `backend.port.Maker`."""

    def __init__(self, context: MakerContext) -> None:
        super().__init__(context)
        self._settings = read_settings(
            context.settings.options, where=f"seed {context.seed_name}: backend.options of exec"
        )
        self._directory = self.directory / "exec"
        self._seed = {"name": context.seed_name, "directory": str(self._directory)}
        self._slots = asyncio.Semaphore(self._settings.concurrent_commands)
        self._limits = CommandLimits(self._settings.timeout_seconds, self._settings.kill_after_seconds)
        self.checks_health = bool(self._settings.command(HEALTH))
        self.kubernetes_version = self._settings.kubernetes_version
        if not self.checks_health:
            self.healthy_message = "Not checked: the backend has no command for `health`."

    async def take_over(self, shoots: Mapping[ShootName, Kept]) -> None:
        """End commands that the former owner has left running on this machine."""
        del shoots
        ended = await end_survivors(self._directory, self._settings.kill_after_seconds)
        if ended:
            _log.warning("command.survivors_ended", seed=self._seed["name"], count=ended)

    def prepare(self) -> None:
        """Make the directory that commands get in their input."""
        make_directory(self._directory)

    async def seed_problem(self) -> str | None:
        """Programs that are not there."""
        gone = [
            f"{name}: {problem}"
            for name in sorted(self._settings.commands)
            if (problem := _program_problem(self._settings.command(name)[0])) is not None
        ]
        return f"Commands cannot be run: {'; '.join(gone[:3])}." if gone else None

    async def request_step(self, step: str, given: Document) -> StepResponse:
        """Run the command of the step; a step without one is done at once."""
        arguments = self._settings.command(step)
        if not arguments:
            return StepResponse(None, {})
        what = f"Step {step}: command {arguments[0]}"
        shoot = given["shoot"]["technicalID"]
        environment = {name: os.environ[name] for name in self._settings.environment if name in os.environ}
        try:
            async with self._slots:
                ended = await run_command(
                    arguments,
                    encode({**given, "seed": self._seed}),
                    environment={**environment, OWNER_VARIABLE: str(self._directory)},
                    limits=self._limits,
                    log_line=lambda line: _log.info("command.logged", shoot=shoot, step=step, line=line),
                )
        except OutputHeld as error:
            raise StepFailed(
                f"{what} has ended, and what it has started had its output for {self._limits.timeout_seconds:g} s, "
                "and was killed: what is to outlive a command needs a session and an output of its own"
            ) from error
        except TimeoutError as error:
            raise StepFailed(
                f"{what} has not ended within {self._limits.timeout_seconds:g} s, and was killed"
            ) from error
        except OutputTooLarge as error:
            raise StepFailed(f"{what} has written more than {MOST_OUTPUT_BYTES >> 20} MiB to its output") from error
        except (OSError, ValueError) as error:  # ValueError: a zero byte in an argument
            raise StepFailed(
                f"{what} cannot be run: {_program_problem(arguments[0]) or _start_problem(error)} "
                f"(backend.options.commands.{self._name_of(step)})",
                (_RETRYABLE_CONFIGURATION,),
            ) from error
        return read_response(ended, what=what)

    def _name_of(self, step: str) -> str:
        return step if step in self._settings.commands else DEFAULT


def _start_problem(error: OSError | ValueError) -> str:
    """Reason why a program that is there could not be started."""
    return "the interpreter in its first line does not exist" if isinstance(error, FileNotFoundError) else str(error)


def _program_problem(program: str) -> str | None:
    """Reason why a program cannot be run; None if it can, as far as one can see."""
    if shutil.which(program) is not None:
        return None
    if os.sep in program:
        file = Path(program).absolute()
        return f"{file} is not executable" if file.exists() else f"there is no {file}"
    return f"{program} is not on PATH"
