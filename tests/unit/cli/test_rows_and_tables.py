import io
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from rich.console import Console

from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.commands.queue import unschedulable_table
from gardenbus.cli.local.directory import ServiceStatus
from gardenbus.cli.output.columns import TableContext, age_of
from gardenbus.cli.output.console import LEAST_LAST_WIDTH, rows_text
from gardenbus.cli.output.landscape_tables import used_of
from gardenbus.cli.output.tables import columns_of, objects_table
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import seed_row
from gardenbus.embedded.picture import (
    Scene,
    TerminalSize,
    picture,
    status_line,
    unplaced_lines,
    unplaced_table,
    usage_of,
)
from tests.support.builders import a_project, a_seed, a_shoot

NOW = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)


def drawn(renderable: object) -> str:
    console = Console(width=160, file=io.StringIO())
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def placed(name: str, seed: str, actual: str = "") -> Document:
    operation = {"type": "Create", "state": "Processing", "progress": 40, "description": "Waiting for machines"}
    return a_shoot(name, spec={"seedName": seed}, status={"seedName": actual or seed, "lastOperation": operation})


def test_a_moving_shoot_counts_on_both_seeds():
    rows = [summarize_shoot(placed("a", "s1")), summarize_shoot(placed("b", "s1", "s2")), summarize_shoot(a_shoot("c"))]

    assert usage_of(rows) == {"s1": 2, "s2": 1}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": None, "spec": [], "status": "x"},
        {"status": {"conditions": {}, "lastOperation": [], "allocatable": 1}},
    ],
)
def test_manifests_of_any_shape_have_rows(document: Document):
    assert summarize_shoot(document).state == "new"
    assert seed_row(document).capacity is None


def test_quantities_are_read_as_kubernetes_does():
    assert seed_row(a_seed(shoots="1500m")).capacity == Fraction(3, 2)
    assert seed_row(a_seed(shoots="1k")).capacity == 1000
    assert used_of(1, 1.5) == "1/1.5"
    assert used_of(1, 1000.0) == "1/1000"
    assert used_of(1, None) == "1"


def test_the_picture_shows_services_seeds_and_shoots():
    scene = Scene(
        title="Gardenbus",
        services=[ServiceStatus("nats", "ready", 1), ServiceStatus("relay", "waiting", None, restarts=2)],
        seeds=[seed_row(a_seed("s1", shoots=2)), seed_row(a_seed("s2", ready=False))],
        shoots=[summarize_shoot(placed("apollo", "s1")), summarize_shoot(a_shoot("far"))],
        messages=["relay was killed by SIGKILL"],
        is_converged=True,
    )

    text = drawn(picture(scene))

    for words in (
        "relay waiting ↻2",
        "1/2",
        "Not reported",
        "1 processing",
        "apollo",
        "Waiting for machines",
        "SIGKILL",
    ):
        assert words in text
    assert status_line(scene) == "seeds 1/2 ready; 2 shoots: 1 processing, 1 new; not ready: relay"


def test_unplaced_shoots_are_listed_with_the_reason():
    description = "Failed to schedule Shoot: none of the 3 seeds is ready"
    rejected = a_shoot(
        "far", status={"lastOperation": {"type": "Create", "state": "Pending", "description": description}}
    )
    rows = [summarize_shoot(rejected), summarize_shoot(placed("apollo", "s1"))]

    assert unplaced_lines(rows) == ["1 shoots without a seed:", "  garden-dev/far: none of the 3 seeds is ready"]
    assert "none of the 3 seeds is ready" in drawn(unplaced_table(rows))
    assert unplaced_table(rows[1:]) is None
    assert unplaced_lines(rows[1:]) == []


FULL = "Failed to schedule Shoot: 0/1 seeds are eligible: {aws-eu1 => seed has no capacity left for shoots}"


def test_lists_of_shoots_that_wait_have_the_essence_of_their_refusals():
    operation = {"type": "Create", "state": "Pending", "description": FULL}
    rows = [summarize_shoot(a_shoot("far", status={"lastOperation": operation}))]
    waiting: Document = {
        "namespace": "garden-dev",
        "name": "far",
        "schedulerName": "default-scheduler",
        "since": "2026-01-02T04:04:00Z",
        "attempts": 2,
        "message": FULL,
    }

    assert unplaced_lines(rows)[1] == "  garden-dev/far: 0/1 seeds: 1 full"
    assert "0/1 seeds: 1 full" in rows_text(unschedulable_table([waiting], is_wide=False), None)
    assert FULL.partition(": ")[2] in rows_text(unschedulable_table([waiting], is_wide=True), None)


@pytest.mark.parametrize(
    ("then", "age"),
    [
        ("2026-01-02T04:04:00Z", "5s"),
        ("2026-01-02T04:01:05Z", "3m"),
        ("2026-01-01T22:04:05Z", "6h"),
        ("2025-12-30T04:04:05Z", "3d"),
        ("2026-01-02T05:04:05Z", "0s"),
        (None, ""),
        ("yesterday", ""),
    ],
)
def test_ages_are_short(then: str | None, age: str):
    assert age_of(then, NOW) == age


def test_tables_have_the_columns_of_their_kind():
    context = TableContext(NOW, {"aws-eu1": 3})

    seeds = drawn(objects_table("seed", [a_seed(spec={"taints": [{"key": "lab"}]})], context, wide=True))
    shoots = drawn(objects_table("shoot", [placed("apollo", "s1")], context, wide=False))
    leaving = drawn(objects_table("project", [a_project(status={"phase": "Terminating"})], context, wide=False))
    unknown = drawn(objects_table("bastion", [{"metadata": {"name": "b", "namespace": "n"}}], context, wide=False))

    assert "3/250" in seeds
    assert "lab" in seeds
    assert "40%" in shoots
    assert "Terminating" in leaving
    assert "PURPOSE" not in shoots
    assert unknown.split()[:3] == ["NAMESPACE", "NAME", "AGE"]


LONG_REJECTION = "Failed to schedule Shoot: " + "none of the [9] seeds is ready\n" * 32 + "the end"


def a_long_rejection() -> Document:
    operation = {"type": "Create", "state": "Pending", "description": LONG_REJECTION}
    assert len(LONG_REJECTION) > 1000
    return a_shoot("far", status={"lastOperation": operation})


def an_event() -> Document:
    about = {"kind": "Shoot", "namespace": "garden-dev", "name": "far"}
    return {
        "involvedObject": about,
        "type": "Warning",
        "reason": "SchedulingFailed",
        "count": 3,
        "message": LONG_REJECTION,
        "lastTimestamp": "2026-01-02T04:04:00Z",
    }


@pytest.mark.parametrize(
    ("kind", "document", "names"),
    [
        ("shoot", a_long_rejection(), ["NAMESPACE", "PROVIDER", "garden-dev", "far", "eu-west-1", "<none>", "Create"]),
        ("event", an_event(), ["LAST SEEN", "MESSAGE", "Warning", "SchedulingFailed", "Shoot garden-dev/far"]),
    ],
)
@pytest.mark.parametrize("terminal_width", [None, 80, 120, 200])
def test_a_long_refusal_takes_nothing_from_the_other_columns(
    kind: str, document: Document, names: list[str], terminal_width: int | None
):
    table = objects_table(kind, [document], TableContext(NOW, {}), wide=True)

    lines = rows_text(table, terminal_width).splitlines()
    header, row = lines[0], lines[-1]

    for name in names:
        assert name in header + row
    if terminal_width is None:
        assert row.endswith(" ".join(LONG_REJECTION.split()))
    else:
        cut = row[header.rindex("DESCRIPTION" if kind == "shoot" else "MESSAGE") :]
        assert cut.endswith("…")
        assert len(cut) >= min(LEAST_LAST_WIDTH, len(row))
        assert len(row) <= terminal_width or len(cut) == LEAST_LAST_WIDTH


def test_short_rows_are_not_stretched():
    text = rows_text(objects_table("seed", [a_seed("s1")], TableContext(NOW, {}), wide=False))

    on_terminal = rows_text(objects_table("seed", [a_seed("s1")], TableContext(NOW, {}), wide=False), 80)

    assert max(map(len, text.splitlines())) < 80
    assert [line.split() for line in text.splitlines()] == [
        line.split() for line in on_terminal.splitlines() if "─" not in line
    ]


def a_full_scene(*, is_converged: bool = True) -> Scene:
    """Nine seeds, eight services and thirty refusals with a long reason."""
    reason = "none of the 9 seeds " + "fits " * 60
    operation = {"type": "Create", "state": "Pending", "description": reason}
    rejected = [
        a_shoot(f"a-shoot-with-a-long-name-{number:02}", status={"lastOperation": operation}) for number in range(30)
    ]
    return Scene(
        title="Gardenbus",
        services=[ServiceStatus(f"scheduler-{number}", "ready", number) for number in range(8)],
        seeds=[seed_row(a_seed(f"a-seed-in-a-far-region-{number}", shoots=12)) for number in range(9)],
        shoots=[summarize_shoot(each) for each in rejected],
        messages=[f"  {number}.0 s  news" for number in range(4)],
        is_converged=is_converged,
        more_hint="gardenbus get shoots --dir D",
    )


def seen(scene: Scene, columns: int, lines: int) -> list[str]:
    console = Console(width=columns, height=lines, file=io.StringIO())
    with console.capture() as capture:
        console.print(picture(scene, TerminalSize(columns, lines)))
    return capture.get().splitlines()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (120, 40), (200, 80)])
def test_the_picture_fits_the_terminal_and_cuts_no_name(columns: int, lines: int):
    picture_lines = seen(a_full_scene(), columns, lines)
    text = "\n".join(picture_lines)

    assert len(picture_lines) <= lines
    assert "30 shoots without a seed" in text
    assert "garden-dev/a-shoot-with-a-long-name-00 " in text
    assert "a-seed-in-a-far-region-8 " in text
    assert "0/12" in text
    rows = text.count("garden-dev/")
    if rows < 30:
        assert f"… and {30 - rows} more:" in text
        assert "gardenbus get shoots --dir D" in text
    assert sum(line.count("● scheduler-") for line in picture_lines) == 8


def test_a_busy_landscape_fits_a_small_terminal_too():
    busy = [summarize_shoot(placed(f"apollo-{number:02}", "a-seed-in-a-far-region-1")) for number in range(30)]

    picture_lines = seen(a_full_scene(is_converged=False)._replace(shoots=busy), 80, 24)

    assert len(picture_lines) <= 24
    assert any("garden-dev/apollo-00 " in line and "Create Processing" in line for line in picture_lines)


def test_nothing_is_shown_of_seeds_and_shoots_before_there_are_any():
    starting = Scene(title="Gardenbus · starting", services=[ServiceStatus("nats", "starting", 1)], seeds=[], shoots=[])

    text = "\n".join(seen(starting, 80, 24))

    assert "nats starting" in text
    assert "SEED" not in text
    assert "shoots" not in text


def test_a_shoot_that_no_scheduler_has_decided_on_is_pending():
    labels = {"shoot.gardener.cloud/status": "healthy"}
    shoot = a_shoot("far", metadata={"labels": labels}, spec={"schedulerName": "mine"})
    context = TableContext(NOW, {})
    shown = {column.title: column.cell(shoot, context) for column in columns_of("shoot")}
    assert (shown["OPERATION"], shown["STATUS"]) == ("waits for mine", "pending")
