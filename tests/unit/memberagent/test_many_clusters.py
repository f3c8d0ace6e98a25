"""Many clusters in one process: heartbeats that are spread over the period, and files enough."""

import resource
from collections import Counter
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from gardenbus.memberagent.backend.open_files import allow_open_files
from gardenbus.memberagent.domain.heartbeat_schedule import seconds_to_next

NOW = 1_767_323_045.25


def names(count: int) -> list[str]:
    return [f"member-{number:04}" for number in range(count)]


def test_heartbeats_of_many_clusters_are_spread_over_the_period() -> None:
    seconds = Counter(int(seconds_to_next(name, NOW, 60.0)) % 60 for name in names(2000))
    assert set(seconds) == set(range(60))
    assert max(seconds.values()) < 2 * 2000 / 60


@pytest.mark.parametrize("period", [1.0, 60.0, 600.0])
def test_a_cluster_beats_once_a_period_from_its_first_heartbeat_on(period: float) -> None:
    for name in names(50):
        now = NOW + seconds_to_next(name, NOW, period)
        for late in (0.0, 0.001, -0.001):
            left = seconds_to_next(name, now + late * period, period)
            assert left == pytest.approx(period, rel=0.002)


def test_no_heartbeat_waits_longer_than_the_period() -> None:
    for step in range(100):
        assert 0 < seconds_to_next("lisbon", NOW + step * 0.37, 60.0) <= 60.0


@pytest.fixture
def files() -> Iterator[tuple[int, int]]:
    """The limits, put back at the end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_open_files_is_raised_as_far_as_the_system_lets_it(files: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, files[1]))
    assert allow_open_files(200) > 256
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == files[1]


def test_a_limit_that_is_too_low_is_reported() -> None:
    with capture_logs() as logs:
        limit = allow_open_files(1 << 40)
    assert limit > 0
    assert [each["event"] for each in logs] == ["files.limited"]
