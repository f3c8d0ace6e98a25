"""A Redis that hangs: it takes connections and says nothing. What `status` and `doctor` make of it, and how soon."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.contract.operating.conftest import Operator
from tests.support.eventually import eventually

STATUS_SECONDS, DOCTOR_SECONDS = 8.0, 25.0


def services(operator: Operator) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in operator.call("status", "-o", "json").output["services"]}


@contextmanager
def a_redis_that_hangs(operator: Operator) -> Generator[None]:
    (pid,) = [each["pid"] for each in operator.describe()["services"] if each["name"] == "redis"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.long
async def test_status_and_doctor_name_it(operator: Operator) -> None:
    with a_redis_that_hangs(operator):

        async def is_noticed() -> None:
            assert services(operator)["apiserver"]["state"] != "ready"

        await eventually(is_noticed)
        status = operator.call("status")
        assert status.code == 1
        (line,) = [line for line in status.stdout.splitlines() if line.split()[:1] == ["redis"]]
        assert "not ready" in line
        assert "does not respond within 2 s" in line
        assert {each["state"] for each in services(operator).values()} == {"ready", "not ready"}
        doctor = operator.call("doctor")
        assert doctor.code == 1
        assert "process redis" in doctor.stdout
        assert "Traceback" not in status.stderr + doctor.stderr

    async def is_well() -> None:
        assert {each["state"] for each in services(operator).values()} == {"ready"}

    await eventually(is_well)
