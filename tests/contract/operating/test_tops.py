"""`top`, `logs` on a landscape of real processes."""

import os
import signal

from tests.contract.operating.conftest import Operator
from tests.support.eventually import eventually


async def test_seeds_are_shown_with_their_use_and_heartbeat(operator: Operator) -> None:
    async def used() -> None:
        (earth,) = operator.call("top", "seeds", "-o", "json").output["items"]
        assert (earth["seed"], earth["ready"], earth["used"], earth["allocatable"]) == ("earth-1", "True", 1, 5.0)
        assert earth["heartbeatSeconds"] < 15

    await eventually(used)
    assert "earth-1" in operator.call("top", "seeds").stdout
    assert "1/5" in operator.call("top").stdout


def test_shoots_are_shown_by_state(operator: Operator) -> None:
    states, *slowest = operator.call("top", "shoots", "-o", "json").output["items"]
    assert sum(states["states"].values()) >= 2
    assert "garden-session/lost" in [row["shoot"] for row in slowest]


async def test_services_are_shown_with_what_they_take_and_how_often_they_were_started_again(operator: Operator) -> None:
    def services() -> dict[str, dict[str, int]]:
        return {row["service"]: row for row in operator.call("top", "services", "-o", "json").output["items"]}

    before = services()["managedseedset"]
    assert before["rssBytes"] > 10_000_000
    os.kill(before["pid"], signal.SIGKILL)

    async def started_again() -> None:
        now = services()["managedseedset"]
        assert (now["state"], now["restarts"]) == ("ready", before["restarts"] + 1)

    await eventually(started_again)


async def test_queues_are_shown_with_their_depth(operator: Operator) -> None:
    async def listening() -> None:  # not while it handles what it has fetched
        queues = {row["queue"]: row for row in operator.call("top", "queues", "-o", "json").output["items"]}
        assert queues["scheduling-default-scheduler"]["listening"] == 1
        assert queues["reports"]["perSecond"] >= 0

    await eventually(listening)


def test_one_shoot_is_followed_through_the_logs(operator: Operator) -> None:
    lines = operator.call("logs", "--shoot", "garden-session/apollo").stdout.splitlines()
    assert {line.split()[1] for line in lines} >= {"scheduler", "gardenlet"}
    assert operator.call("logs", "nobody").code == 2
