"""`queue`, `retry` on a landscape of real processes."""

from tests.contract.operating.conftest import Called, Operator, a_session_shoot
from tests.support.eventually import eventually


async def test_the_queue_shows_who_waits_why_and_when_it_is_tried_again(operator: Operator) -> None:
    async def refused() -> Called:
        shown = operator.call("queue", "-n", "garden-session", "--work")
        assert shown.code == 0, shown.stderr
        assert shown.stdout.startswith("1 shoot waits for a seed\n")
        return shown

    shown = await eventually(refused, within=30)

    (row,) = (line for line in shown.stdout.splitlines() if " lost " in line)
    assert row.startswith("garden-session")
    assert "planet=pluto" in row
    assert "scheduling-default-scheduler" in shown.stdout
    assert operator.call("queue", "-n", "elsewhere").stdout.startswith(
        "1 shoot waits for a seed, none of them is shown"
    )
    assert operator.call("queue", "-o", "name").stdout == "garden-session/lost\n"
    work = {row["queue"]: row for row in operator.call("queue", "--work", "-o", "json").told["work"]}
    assert work["scheduling-default-scheduler"]["listening"] == 1
    assert {"requests", "reports", "migration", "autoscaler"} <= work.keys()


async def test_a_shoot_that_still_fits_nowhere_is_tried_and_said_so(operator: Operator) -> None:
    async def refused() -> None:
        assert operator.call("queue", "-o", "json").told["total"] == 1

    await eventually(refused, within=30)
    before = operator.call("queue", "-o", "json").told["items"][0]["attempts"]

    tried = operator.call("retry", "shoot", "lost", "-n", "garden-session")

    assert tried.code == 1
    assert "still fits nowhere: " in tried.stderr
    assert "planet=pluto" in tried.stderr
    assert operator.call("queue", "-o", "json").told["items"][0]["attempts"] > before


async def test_only_what_went_wrong_is_tried_again(operator: Operator) -> None:
    async def succeeded() -> None:
        assert "Succeeded" in operator.call("get", "shoot", "apollo").stdout

    await eventually(succeeded, within=30)

    assert (
        "nothing to retry, its last operation is Create Succeeded" in operator.call("retry", "shoot", "apollo").stderr
    )
    assert operator.call("retry", "seed", "earth-1").code == 2
    assert operator.call("retry", "shoot", "nobody").code == 1


async def test_nobody_deciding_is_told_apart_from_a_refusal(operator: Operator) -> None:
    assert operator.apply(a_session_shoot("foreign", schedulerName="nobody-runs-this")).code == 0

    tried = operator.call("retry", "shoot", "foreign", "--timeout", "1")

    assert tried.code == 3
    assert "is a scheduler of the name nobody-runs-this up?" in tried.stderr
    assert ", 1 more is not decided yet\n" in operator.call("queue").stdout
    operator.remove("foreign")
