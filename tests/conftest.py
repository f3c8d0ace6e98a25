"""Fixtures that every tier may use: real servers, started once a session or anew for one test."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.support.dealing import dealt
from tests.support.orphans import end_children_with_this_process
from tests.support.rewriting import rewrite_once
from tests.support.servers import Server, start_nats, start_redis

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background deaf to Ctrl-C, and whoever that starts is deaf as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

end_children_with_this_process()

TESTS = Path(__file__).parent
MEMORY = Path("/dev/shm")
ROOM_NEEDED = 4 * 1024**3
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_NEEDED:
    # The servers sync each write, and no test cuts the power: on a disk that costs a third of the time.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    os.environ.setdefault("TMPDIR", str(MEMORY))

LONG_TEST_SECONDS = 1800
"""Ends a test that hangs, and says nothing of how long a proof under load takes on a small machine."""

# The contexts of whoever runs the tests name other landscapes than the one that a command is to find.
os.environ.pop("GARDENBUS_CONFIG", None)
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "gardenbus-tests-without-contexts")

# How long an example takes to be made says how busy the machine is, not that the test is wrong.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Rewrite assertions before the workers start."""
    folders = [config.invocation_params.dir / each.partition("::")[0] for each in config.args]
    rewrite_once([each for each in folders if each.is_dir()])


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Leave the garbage where it is while thousands of tests are collected: none of it is any."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, and look no more at what lives as long as the run."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bound the long tests, and deal out what was chosen where several workers run it."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_TEST_SECONDS))
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    if workers > 1:
        items[:] = dealt(items, path_of=lambda item: item.path.relative_to(TESTS), workers=workers)


@pytest.fixture(autouse=True)
def _logs_as_ever() -> Iterator[None]:
    """What a command of the test does to logging ends with it."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[Server]:
    """A nats-server of this test's own, to be killed and restarted as it likes."""
    server = start_nats(tmp_path / "nats")
    yield server
    server.stop()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Server]:
    """A redis-server of this test's own."""
    server = start_redis(tmp_path / "redis")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def shared_nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One nats-server for all tests that neither kill it nor need an empty one (use a prefix of your own)."""
    server = start_nats(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def shared_redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One redis-server for all tests that neither kill it nor need an empty one (flush it first)."""
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()
