"""`queue`, `retry` on a landscape of real processes."""

from tests.contract.operating.conftest import Operator, a_session_shoot


def test_the_queue_shows_who_waits_why_and_when_it_is_tried_again(operator: Operator) -> None:
    shown = operator.call("queue", "-n", "garden-session", "--work")

    assert shown.code == 0, shown.stderr
    assert shown.stdout.startswith("1 shoot waits for a seed\n")
    (row,) = (line for line in shown.stdout.splitlines() if " lost " in line)
    assert row.startswith("garden-session")
    assert "planet=pluto" in row
    assert "scheduling-default-scheduler" in shown.stdout
    assert operator.call("queue", "-n", "elsewhere").stdout.startswith(
        "1 shoot waits for a seed, none of them is shown"
    )
    assert operator.call("queue", "-o", "name").stdout == "garden-session/lost\n"
    work = {row["queue"]: row for row in operator.call("queue", "--work", "-o", "json").output["work"]}
    assert work["scheduling-default-scheduler"]["listening"] == 1
    assert {"requests", "reports", "migration", "autoscaler"} <= work.keys()


def test_a_shoot_that_still_fits_nowhere_is_tried_and_said_so(operator: Operator) -> None:
    before = operator.call("queue", "-o", "json").output["items"][0]["attempts"]

    tried = operator.call("retry", "shoot", "lost", "-n", "garden-session")

    assert tried.code == 1
    assert "still fits nowhere: " in tried.stderr
    assert "planet=pluto" in tried.stderr
    assert operator.call("queue", "-o", "json").output["items"][0]["attempts"] > before


def test_only_what_went_wrong_is_tried_again(operator: Operator) -> None:
    assert (
        "nothing to retry, its last operation is Create Succeeded" in operator.call("retry", "shoot", "apollo").stderr
    )
    assert operator.call("retry", "seed", "earth-1").code == 2
    assert operator.call("retry", "shoot", "nobody").code == 1


def test_nobody_deciding_is_told_apart_from_a_refusal(operator: Operator) -> None:
    assert operator.apply(a_session_shoot("foreign", schedulerName="nobody-runs-this")).code == 0

    tried = operator.call("retry", "shoot", "foreign", "--timeout", "1")

    assert tried.code == 3
    assert "is a scheduler of the name nobody-runs-this up?" in tried.stderr
    assert ", 1 more is not decided yet\n" in operator.call("queue").stdout
    operator.remove("foreign")
