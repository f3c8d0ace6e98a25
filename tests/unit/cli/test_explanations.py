"""What `explain` prints, from what a scheduler on a store in memory answers."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from gardenbus.cli.commands.explain import show_seed, show_shoot
from gardenbus.cli.explain import explanation
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Bus, Message, Request
from gardenbus.scheduler.requests.explain_seeds import SeedExplainHandler
from gardenbus.scheduler.requests.explain_shoots import ShootExplainHandler
from tests.support.builders import a_cloudprofile, a_project, a_region_configmap, a_seed, a_shoot
from tests.support.memory.bus import MemoryBus
from tests.support.scheduling import SCHEDULER, SchedulerUnderTest, stocked

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BASE = (a_cloudprofile(), a_project())


class Explained:
    """A scheduler that has settled some shoots, and what the API says of them."""

    def __init__(self, scheduler: SchedulerUnderTest) -> None:
        self.scheduler = scheduler
        store, cache = scheduler.store, scheduler.cache
        self.bus = MemoryBus(scheduler.clock)
        self._shoots = ShootExplainHandler(
            store=store, bus=self.bus, subjects=scheduler.subjects, cache=cache, scheduler_name=SCHEDULER
        )
        self._seeds = SeedExplainHandler(store=store, cache=cache, scheduler_name=SCHEDULER)

    async def shoot(self, name: str = "apollo") -> Document:
        key = ObjectKey("shoot", "garden-dev", name)
        considered = await self._requested(self._shoots, self.scheduler.subjects.explain(SCHEDULER, key))
        stored = await self.scheduler.store.get(key)
        assert stored is not None
        rejection: Document = json.loads(b"{" + stored.pending + b"}")
        return {
            "shoot": f"garden-dev/{name}",
            "seed": considered["placed"],
            "schedulerName": SCHEDULER,
            "message": rejection.get("description"),
            "since": rejection.get("lastUpdateTime"),
            **{field: considered[field] for field in ("nextAttempt", "wakesOn", "recorded")},
            "considered": considered,
        }

    async def seed(self, name: str) -> Document:
        return await self._requested(self._seeds, self.scheduler.subjects.explain_seed(SCHEDULER, name))

    async def _requested(self, handler: Any, subject: str) -> Document:
        response: Document = json.loads(await handler(Request(subject, b"", {})))
        assert response["ok"], response
        return response["result"]


async def explained(*documents: Document, strategy: str = "SameRegion") -> Explained:
    scheduler = SchedulerUnderTest(await stocked(*documents), strategy=strategy)
    with capture_logs():
        await scheduler.handle_batch(*(each["metadata"]["name"] for each in documents if each["kind"] == "Shoot"))
    return Explained(scheduler)


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


async def test_a_shoot_that_waits_is_explained_from_all_seeds_to_what_would_wake_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    far = {"provider": {"type": "gcp"}}
    seeds = [a_seed(f"gcp-{number}", spec=far) for number in range(6)]
    found = await explained(*BASE, *seeds, a_seed("full", shoots="0"), a_seed("new", ready=False), a_shoot())
    response = await found.shoot()
    response["nextAttempt"] = (NOW + timedelta(seconds=32)).isoformat()
    show_shoot(response, NOW, show_all=False)
    lines = printed(capsys)
    assert lines[0] == "shoot garden-dev/apollo waits for a seed (scheduler: default-scheduler)"
    assert lines[1] == "since 2026-01-02T03:04:05Z: 0/1 seeds: 1 full"
    assert lines[3:9] == [
        "SEEDS LEFT (strategy SameRegion)",
        "LEFT AFTER RULE REMOVED WHY",
        "8 (all seeds)",
        "7 usable new it is not ready: no gardenlet has reported yet",
        "1 provider gcp-0, gcp-1, gcp-2 and 3 more its provider is 'gcp', not 'aws'",
        "0 capacity full seed has no capacity left for shoots",
    ]
    assert lines[10:12] == [
        "DECISION",
        "no seed fits, see above",
    ]
    assert lines[12].endswith("(in 32s)")
    assert lines[13:16] == [
        "retried earlier if",
        "- a shoot leaves seed full, or status.allocatable.shoots is raised there",
        "- seed new becomes usable (it is not ready: no gardenlet has reported yet)",
    ]
    assert lines[-1].startswith("- a seed is added of provider 'aws', in or near region 'eu-west-1'")


async def test_a_refusal_is_shown_in_full_where_no_scheduler_lists_the_seeds() -> None:
    found = await explained(*BASE, a_seed("full", shoots="0"), a_shoot())
    response = await found.shoot()
    reason = "full => seed has no capacity left for shoots"
    assert reason not in list(explanation.headline(response))[1]
    assert reason in list(explanation.headline({**response, "considered": None}))[1]


async def test_all_seeds_are_named_when_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"s{number:02}" for number in range(30)]
    found = await explained(
        *BASE, *(a_seed(name, ready=False) for name in names), *(a_seed(f"t{name}") for name in names)
    )
    await found.scheduler.store.create(a_shoot())
    response = await found.shoot()
    show_shoot(response, NOW, show_all=False)
    few = capsys.readouterr().out
    show_shoot(response, NOW, show_all=True)
    every = capsys.readouterr().out
    assert "s00, s01, s02 and 27 more" in few
    assert "and 20 more (--all shows them)" in few
    assert all(name in every for name in [*names, *(f"t{name}" for name in names)])


def test_a_reason_that_was_found_later_than_the_wait_began_carries_its_time() -> None:
    waits: Document = {
        "shoot": "garden-dev/apollo",
        "message": "full",
        "since": "T0",
        "considered": {},
        "schedulerName": "x",
    }

    assert list(explanation.headline({**waits, "messageTime": "T0"}))[1] == "  since T0: full"
    assert list(explanation.headline({**waits, "messageTime": "T1"}))[1] == "  since T0, found at T1: full"


async def test_a_shoot_that_is_farther_away_than_a_ready_seed_is_explained_with_what_moves_it() -> None:
    far = a_seed("far", spec={"provider": {"region": "us-east-1"}})
    found = await explained(*BASE, a_region_configmap(), far, a_shoot(), strategy="MinimalDistance")
    await found.scheduler.store.create(a_seed("near"))
    await found.scheduler.informer.refresh()

    response = await found.shoot()

    assert list(explanation.decision(response, response["considered"], NOW))[1:] == [
        "farther away than it could be: far is at distance 200, near at 0 is ready and has room",
        "`gardenbus bind garden-dev/apollo near` moves it there",
    ]


async def test_a_shoot_that_only_the_domain_of_its_seed_keeps_far_away_is_explained_with_that_domain() -> None:
    defaults: Document = {"dns": {"defaults": [{"type": "aws-route53", "domain": "us.example.org"}]}}
    far = a_seed("far", spec={"provider": {"region": "us-east-1"}, **defaults})
    own = a_shoot(spec={"dns": {"domain": "apollo.dev.us.example.org"}})
    found = await explained(*BASE, a_region_configmap(), far, own, strategy="MinimalDistance")
    await found.scheduler.store.create(a_seed("near"))
    await found.scheduler.informer.refresh()

    response = await found.shoot()

    assert list(explanation.decision(response, response["considered"], NOW))[1:] == [
        "farther away than it could be: far is at distance 200, near at 0 is ready and has room",
        "its domain is made of far's default domain, and keeps it there: only ordered anew it goes to near",
    ]


async def test_a_placed_shoot_is_explained_as_it_was_decided_then_and_as_it_would_be_now(
    capsys: pytest.CaptureFixture[str],
) -> None:
    near, far = a_seed("near", shoots="1"), a_seed("far", spec={"provider": {"region": "eu-central-1"}})
    found = await explained(*BASE, near, a_seed("next", shoots="9"), far, a_shoot())
    show_shoot(await found.shoot(), NOW, show_all=False)
    assert printed(capsys) == [
        "shoot garden-dev/apollo is on near (scheduler: default-scheduler)",
        "",
        "THEN",
        "2026-01-02T03:04:05Z: 3 seeds: 2 after strategy, strategy SameRegion",
        "near had 0 shoots (of 1), the fewest of the 2 as near",
        "next would have been next with 0 shoots and a name that comes later",
        "",
        "NOW: SEEDS LEFT (strategy SameRegion)",
        "LEFT AFTER RULE REMOVED WHY",
        "3 (all seeds)",
        "2 strategy far its region 'eu-central-1' is not the shoot's",
        "",
        "RANKING",
        "RANK SEED DISTANCE USED ALLOCATABLE",
        "1 near 0 1",
        "2 next 0 9",
        "USED leaves this shoot itself out: on near it is one more",
        "",
        "DECISION",
        "now it would be placed on near again: the first by name of the least used, 2 seeds fit",
    ]


async def test_a_placed_shoot_that_would_go_elsewhere_now_is_told_so() -> None:
    found = await explained(*BASE, a_seed("b"), a_shoot())
    await found.scheduler.store.create(a_seed("a"))
    await found.scheduler.informer.refresh()
    response = await found.shoot()
    (line,) = explanation.decision(response, response["considered"], NOW)
    assert line.startswith("now it would be placed on a (the first by name of the least used, 2 seeds fit)")
    response["seed"] = "c"
    assert list(explanation.history(response["recorded"], "c"))[-1] == "since then it was moved from b to c"


async def test_when_a_shoot_is_tried_next_is_read_from_its_timer() -> None:
    found = await explained(*BASE, a_seed(shoots="0"), a_shoot())
    subjects = found.scheduler.subjects
    assert (await found.shoot())["nextAttempt"] is None
    await found.bus.ensure_streams()
    timer = {"Nats-Schedule": "@at 2126-01-02T03:04:07.000Z", "Nats-Schedule-Target": found.scheduler.subject("apollo")}
    await cast("Bus", found.bus).publish(Message(subjects.later(found.scheduler.subject("apollo")), b"", timer))
    assert (await found.shoot())["nextAttempt"] == "2126-01-02T03:04:07.000Z"


async def test_a_seed_is_explained_by_rule_with_the_shoots_that_it_could_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cordoned = a_seed("a", spec={"settings": {"scheduling": {"visible": False}}, "taints": [{"key": "gpu"}]})
    tolerant = a_shoot("tolerant", spec={"tolerations": [{"key": "gpu"}]})
    project = a_project("dev", spec={"tolerations": {"whitelist": [{"key": "gpu"}]}})
    found = await explained(a_cloudprofile(), project, cordoned, tolerant, a_shoot("other"))
    show_seed(await found.seed("a"), show_all=False)
    assert printed(capsys) == [
        "seed a (aws, eu-west-1) unschedulable; 0/250 shoots",
        "",
        "OK RULE READ",
        "yes not deleting no deletionTimestamp",
        "yes not marked for removal no removal annotation",
        "NO not cordoned spec.settings.scheduling.visible is false: `gardenbus uncordon` makes it schedulable",
        "yes reported a gardenlet has reported",
        "yes GardenletReady True (Tested: All is well.)",
        "yes emergency-stop the annotation shoot.gardener.cloud/emergency-stop-reconciliations is not set",
        "yes capacity 0 shoots, 250 allocatable",
        "yes taints only for shoots that tolerate gpu",
        "",
        "1 pending shoots would fit it if it were schedulable:",
        "garden-dev/tolerant",
    ]
