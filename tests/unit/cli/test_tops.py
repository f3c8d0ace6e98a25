"""What `top` shows, from rows."""

import io
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.top import ShootSampler, landscape_view, seeds_view, shoots_view, size_of, users_view
from gardenbus.cli.diagnostics.process_usage import ProcessUsage, cpu_share, process_usage
from gardenbus.cli.output.console import rows_text
from gardenbus.common.api.budgets import LimitUse
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.busy_shoots import BusyShoot, began_at, busy_shoot, is_busy
from gardenbus.common.api.garden.rows import SeedRow, seed_row
from gardenbus.common.errors import Unavailable

NOW = datetime(2026, 1, 2, 4, 0, tzinfo=UTC)


def a_seed(name: str, allocatable: int | None = 10, ready: str = "True") -> SeedRow:
    provider = {"type": "aws", "region": "eu"}
    conditions = [{"type": "GardenletReady", "status": ready}]
    limit = {} if allocatable is None else {"shoots": allocatable}
    status = {"conditions": conditions, "allocatable": limit}
    return seed_row({"metadata": {"name": name}, "spec": {"provider": provider}, "status": status})


def on(seed: str, name: str = "apollo", created_at: str = "2026-01-02T03:50:00Z") -> BusyShoot:
    operation = {
        "type": "Create",
        "state": "Processing",
        "progress": 40,
        "description": "step 2",
        "lastUpdateTime": "x",
    }
    return busy_shoot("garden-dev", name, seed=seed, operation=operation, created_at=created_at, deleting_at="")


def test_the_fullest_seed_comes_first_with_its_heartbeat() -> None:
    seeds = [a_seed("empty"), a_seed("boundless", allocatable=None), a_seed("full", allocatable=2)]

    view = seeds_view(seeds, {"full": 2, "boundless": 1}, {"full": 1.4, "empty": 55.0})

    assert [row["seed"] for row in view.rows] == ["full", "boundless", "empty"]
    assert view.rows[0] == {"seed": "full", "ready": "True", "heartbeatSeconds": 1.4, "used": 2, "allocatable": 2.0}
    lines = rows_text(view.picture).splitlines()  # pyright: ignore[reportArgumentType]
    assert lines[1].split()[:7] == ["full", "aws", "eu", "Ready", "1s", "2/2", "100%"]
    assert lines[2].split()[4] == "none"


def test_a_landscape_is_counted_without_its_shoots() -> None:
    census = {"objects.shoot": 1_000_000, "shoots.pending": 30, "shoots.waiting": 12}

    view = landscape_view([a_seed("full", allocatable=2), a_seed("empty")], {"full": 2}, census)

    assert view.rows == [
        {"seed": "full", "ready": "True", "used": 2},
        {"seed": "empty", "ready": "True", "used": 0},
    ]
    console = Console(width=120, file=io.StringIO())
    console.print(view.picture)
    text = cast("io.StringIO", console.file).getvalue()
    assert "1000000 shoots   12 unschedulable   18 not decided yet" in text


def test_shoots_are_counted_by_state_and_the_longest_operations_shown_first() -> None:
    settled = replace(on("full"), operation_state="Succeeded", state="succeeded")
    longer = replace(on("full", "longer"), began_at="2026-01-02T03:00:00Z")
    waiting = replace(on("", "waiting"), operation_state="Pending", state="pending")

    view = shoots_view(
        {"processing": 2, "succeeded": 1, "pending": 1, "new": 0}, [on("full", "busy"), longer, waiting], NOW, busy=3
    )

    assert [is_busy(shoot.state, shoot.seed) for shoot in (settled, longer, waiting, replace(settled, seed=""))] == [
        False,
        *[True] * 3,
    ]
    states, *slowest = view.rows
    assert states == {"states": {"processing": 2, "succeeded": 1, "pending": 1}}
    assert [row["shoot"] for row in slowest] == ["garden-dev/longer", "garden-dev/busy", "garden-dev/waiting"]


def test_the_picture_of_thousands_of_seeds_has_the_fullest_and_programs_get_all() -> None:
    seeds = [a_seed(f"s{number:04}") for number in range(1_000)]

    view = seeds_view(seeds, {"s0500": 10}, {})

    assert len(view.rows) == 1_000
    console = Console(width=120, file=io.StringIO())
    console.print(view.picture)
    lines = cast("io.StringIO", console.file).getvalue().rstrip().splitlines()
    assert "s0500" in lines[1] + lines[2]
    assert lines[-1].strip() == "… 960 more"
    assert len(lines) < 60


class Counting:
    """An apiserver that counts shoots."""

    def __init__(self, **census: object) -> None:
        self.census: dict[str, object] = {"states": {}, "busy": 0, "slowest": [], "uncounted": 0, **census}

    async def call(self, tail: str) -> Document:
        assert tail == "census.shoot"
        return msgspec.to_builtins(self.census)


async def shown_of(**census: object) -> tuple[str, list[Any]]:
    """The picture as text, and the rows."""
    view = await ShootSampler(cast("ApiClient", Counting(**census))).sample()
    console = Console(width=120, file=io.StringIO())
    console.print(view.picture)
    return cast("io.StringIO", console.file).getvalue(), [*view.rows]


async def test_shoots_are_shown_as_the_store_counts_them() -> None:
    slow = [on("aws", "late"), on("aws", "early", created_at="2026-01-01T00:00:00Z")]

    text, rows = await shown_of(states={"processing": 60, "succeeded": 10}, busy=60, slowest=slow)

    assert rows[0] == {"states": {"processing": 60, "succeeded": 10}}
    assert [row["shoot"] for row in rows[1:]] == ["garden-dev/early", "garden-dev/late"]
    assert "70 shoots" in text
    assert "… 58 more" in text
    assert "not counted yet" not in text


async def test_shoots_that_are_in_no_index_yet_are_said() -> None:
    text, _ = await shown_of(states={"succeeded": 10}, uncounted=7)
    assert "7 shoots are not counted yet" in text


async def test_an_apiserver_that_counts_no_shoots_is_named() -> None:
    class Older:
        async def call(self, *_: object) -> Document:
            return {"objects.shoot": 3}

    with pytest.raises(Unavailable, match="older than this client"):
        await ShootSampler(cast("ApiClient", Older())).sample()


def test_a_creation_began_with_its_shoot_and_another_operation_when_it_was_heard_of() -> None:
    assert on("full").began_at == "2026-01-02T03:50:00Z"
    assert began_at({"type": "Reconcile", "lastUpdateTime": "2026-01-02T03:55:00Z"}, NOW, "") == "2026-01-02T03:55:00Z"


def test_processor_time_is_measured_between_two_looks() -> None:
    before, now = ProcessUsage(10.0, 1, 100.0, 50.0), ProcessUsage(11.0, 1, 102.0, 52.0)
    assert cpu_share(before, now) == pytest.approx(0.5)
    assert cpu_share(None, now) == pytest.approx(11 / 102)
    assert cpu_share(before, None) is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")
def test_this_process_can_be_looked_at_and_one_that_is_gone_cannot() -> None:
    seen = process_usage(os.getpid())
    assert seen is not None
    assert seen.rss_bytes > 1_000_000
    assert seen.cpu_seconds > 0
    assert process_usage(2**22 + 1) is None


def test_sizes_are_told_in_units_that_can_be_read() -> None:
    assert [size_of(count) for count in (2048, 80 * 1024**2, 3 * 1024**3 // 2)] == ["2 KiB", "80 MiB", "1.5 GiB"]


def test_users_are_shown_with_what_they_hold_and_programs_get_all() -> None:
    uses = [LimitUse("ann", "bytesInFlight", 2**24, 2**25), LimitUse("", "watches", 1, 16)]
    uses += [LimitUse(f"u{number}", "watches", 1, 16) for number in range(60)]
    view = users_view(uses)
    lines = rows_text(view.picture).splitlines()  # pyright: ignore[reportArgumentType]
    assert lines[2].split() == ["ann", "bytesInFlight", "16Mi", "32Mi", "50%"]
    assert lines[3].split()[0] == "nobody"
    assert lines[-1] == "… 22 more"
    assert view.rows[0] == {"user": "ann", "limit": "bytesInFlight", "held": 2**24, "most": 2**25, "share": 0.5}
    assert len(view.rows) == 62
    assert str(users_view([]).picture) == "no usage"
