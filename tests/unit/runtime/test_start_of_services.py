"""A landscape is a dozen processes: what one of them does not need, it shall not import."""

import subprocess
import sys
from pathlib import Path

SERVICES = {path.parent.name for path in Path(__file__).parents[3].glob("services/*/src/gardenbus/*/__main__.py")}
ON_THE_BUS_ONLY = {"gardenlet", "memberagent", "dashboard"}
NEEDLESS = {"hypothesis", "matplotlib", "numpy", "pydantic", "pytest", "requests", "typer"}


def imported_by(services: set[str]) -> set[str]:
    """The packages that are imported where these services are, all of them in one process."""
    wanted = ", ".join(f"gardenbus.{name}.__main__" for name in sorted(services))
    program = f"import sys, {wanted}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    reported = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(reported.stdout.split())


def test_services_import_nothing_that_they_do_not_need():
    imported = imported_by(SERVICES)

    assert len(SERVICES) == 13
    assert {"nats", "redis", "structlog"} <= imported
    assert imported.isdisjoint(NEEDLESS)


def test_who_speaks_to_the_bus_only_imports_no_client_of_redis():
    imported = imported_by(ON_THE_BUS_ONLY)

    assert "nats" in imported
    assert imported.isdisjoint({"redis", "hiredis", "opentelemetry", *NEEDLESS})
