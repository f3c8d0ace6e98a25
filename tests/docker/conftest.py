"""What the services of a deployment logged last, where one of its tests has failed."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from tests.docker.deployment import Deployment

LINES = 12
"""Lines of each service that are shown."""

CALM = ("debug", "info")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs to the report of a failure."""
    report = yield
    deployment = getattr(item, "funcargs", {}).get("deployment")
    if report.failed and isinstance(deployment, Deployment):
        try:
            logs = deployment.run("logs", "--no-color", "--timestamps", "--tail", "2000")
        except Exception as error:  # noqa: BLE001  the failure of the test is what counts
            logs = str(error)
        report.sections.append(("services of the deployment, warnings and the last lines", last_of_each(logs)))
    return report


def last_of_each(logs: str) -> str:
    """Warnings and the last lines of each container, as `docker compose logs` prints them."""
    containers: dict[str, list[str]] = {}
    for line in logs.splitlines():
        containers.setdefault(line.partition("|")[0], []).append(line)
    chosen: list[str] = []
    for lines in containers.values():
        warnings = [line for line in lines[:-LINES] if not is_calm(line)]
        chosen += [*warnings[-LINES:], *lines[-LINES:]]
    return "\n".join(line[:400] for line in chosen)


def is_calm(line: str) -> bool:
    """True for a line of a log that says nothing of a problem."""
    _, brace, rest = line.partition("{")
    try:
        return not brace or json.loads(brace + rest).get("level") in CALM
    except ValueError:
        return True
