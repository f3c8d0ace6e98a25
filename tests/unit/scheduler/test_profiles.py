"""A scheduler with a profile: what it binds, records, counts, and what explain shows of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from gardenbus.cli.commands.explain import show_shoot
from gardenbus.cli.explain import explanation
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Request
from gardenbus.scheduler.domain.explain.decision_record import decode_record
from gardenbus.scheduler.requests.explain_shoots import ShootExplainHandler
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.memory.bus import MemoryBus
from tests.support.scheduling import SCHEDULER, SchedulerUnderTest, shoot_in, stocked

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BASE = (a_cloudprofile(), a_project())
MOST = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "shoots"}]}}
COST = {"annotation": "cost", "min": 0, "max": 1, "reverse": True}


Score = tuple[str, int, dict[str, Any]]
"""Name, weight, arguments."""


def profile(*scores: Score, **fields: Any) -> SchedulingProfile:
    head = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration"}
    enabled = [{"name": name, "weight": weight} for name, weight, _ in scores]
    given = {
        "plugins": {"score": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "args": args} for name, _, args in scores if args],
        **fields,
    }
    (found,) = parse_configuration(yaml.safe_dump({**head, "profiles": [given]})).profiles
    return found


async def scheduler_of(given: SchedulingProfile, *documents: Document) -> SchedulerUnderTest:
    scheduler = SchedulerUnderTest(await stocked(*BASE, *documents), profiles=[given])
    with capture_logs():
        await scheduler.handle_batch(*(each["metadata"]["name"] for each in documents if each["kind"] == "Shoot"))
    return scheduler


async def seed_of(scheduler: SchedulerUnderTest, name: str) -> str:
    return (await shoot_in(scheduler.store, name)).parts.seed_name


async def considered_by(scheduler: SchedulerUnderTest, name: str) -> Document:
    handler = ShootExplainHandler(
        store=scheduler.store,
        bus=MemoryBus(scheduler.clock),
        subjects=scheduler.subjects,
        cache=scheduler.cache,
        scheduler_name=SCHEDULER,
    )
    subject = scheduler.subjects.explain(SCHEDULER, ObjectKey("shoot", "garden-dev", name))
    return json.loads(await handler(Request(subject, b"", {})))["result"]


async def test_a_batch_is_packed_by_scores_each_assignment_counting_for_the_next() -> None:
    shoots = [a_shoot(f"s{number}") for number in range(4)]
    seeds = [a_seed("a", shoots="9"), a_seed("b", shoots="3"), a_seed("c", shoots="2")]
    scheduler = await scheduler_of(profile(("SeedResourcesFit", 1, MOST)), *seeds, *shoots)
    assert [await seed_of(scheduler, f"s{number}") for number in range(4)] == ["c", "c", "b", "b"]
    assert scheduler.counted("decisions", profile=SCHEDULER) == 4
    assert scheduler.counted("score_points", profile=SCHEDULER, plugin="SeedResourcesFit") == 50 + 100 + 33 + 66


async def test_a_hint_is_followed_by_the_profile() -> None:
    scheduler = await scheduler_of(profile(("SeedResourcesFit", 1, MOST)), a_seed("a"), a_seed("b", shoots="3"))
    await scheduler.store.create(a_shoot("apollo"))
    await scheduler.informer.refresh()
    with capture_logs():
        assert await scheduler.bind_early("apollo") == 1
    assert await seed_of(scheduler, "apollo") == "b"


async def test_the_record_of_a_decision_has_its_scores_with_their_weights_and_the_sum_of_the_next() -> None:
    scores: list[Score] = [("SeedZoneFit", 3, {}), ("SeedResourcesFit", 2, MOST)]
    scheduler = await scheduler_of(
        profile(*scores), a_seed("a", shoots="4"), a_seed("b", shoots="2"), a_shoot("apollo")
    )
    record = await scheduler.store.bind_record(ObjectKey("shoot", "garden-dev", "apollo"))
    assert record is not None
    decoded = decode_record(record.decision_record, record.at)
    assert decoded is not None
    assert {name: decoded[name] for name in ("seed", "profile", "sum", "scores", "runnerUp")} == {
        "seed": "b",
        "profile": SCHEDULER,
        "sum": 100,
        "scores": [
            {"name": "SeedZoneFit", "weight": 3, "score": 0},
            {"name": "SeedResourcesFit", "weight": 2, "score": 50},
        ],
        "runnerUp": {"seed": "a", "used": 0, "sum": 50},
    }
    lines = list(explanation.history(decoded, "b"))
    assert "b had 0 shoots (of 2), the greatest sum of scores of the 2 as near" in lines
    assert f"sum 100 = 3·0 SeedZoneFit + 2·50 SeedResourcesFit (profile {SCHEDULER})" in lines
    assert "next would have been a with 50" in lines


async def test_without_scores_a_record_is_byte_for_byte_what_it_was() -> None:
    scheduler = await scheduler_of(profile(), a_seed("a"), a_seed("b"), a_shoot("apollo"))
    record = await scheduler.store.bind_record(ObjectKey("shoot", "garden-dev", "apollo"))
    assert record is not None
    assert record.decision_record == b'["a","SameRegion",2,{},2,0,2,null,0,250,"b",0]'
    assert "sum" not in (decode_record(record.decision_record, record.at) or {})
    considered = await considered_by(scheduler, "apollo")
    assert "scores" not in considered
    assert set(considered["ranking"][0]) == {
        "seed", "place", "rank", "distance", "usage", "used", "capacity", "allocatable"
    }  # fmt: skip


async def test_explain_ranks_by_sums_and_says_what_put_the_first_before_the_second(
    capsys: pytest.CaptureFixture[str],
) -> None:
    narrow: Document = {"spec": {"provider": {"type": "aws", "region": "eu-west-1", "zones": ["a"]}}}
    given = profile(("SeedZoneFit", 1, {}), ("SeedResourcesFit", 2, {}), ("MinimalDistance", 1, {}))
    far: Document = {"spec": {"provider": {"type": "aws", "region": "us-1", "zones": ["a"]}}}
    seeds = (a_seed("a", shoots="10"), a_seed("b", shoots="4", **narrow), a_seed("c", **far))
    scheduler = await scheduler_of(given, *seeds, a_shoot("apollo"))
    considered = await considered_by(scheduler, "apollo")
    assert [(each["seed"], each["sum"], each["scores"]) for each in considered["ranking"]] == [
        ("b", 350, [100, 75, 100]),
        ("a", 280, [0, 90, 100]),
    ]
    response = {"shoot": "garden-dev/apollo", "seed": "b", "schedulerName": SCHEDULER, "considered": considered}
    show_shoot({**response, "recorded": considered["recorded"]}, NOW, show_all=False)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "RANK SEED SUM ZONES*1 FIT*2 DISTANCE*1 USED ALLOCATABLE" in shown
    assert "1 b 350 100 75 100 0 4" in shown
    assert "b before a: SeedZoneFit +100, SeedResourcesFit -30" in shown
    assert "now it would be placed on b again: the greatest sum 350 of the nearest, 2 seeds fit" in shown
    assert list(explanation.about_seed(considered, "a")) == [
        "a fits, at place 2 of 2",
        "b before a: SeedZoneFit +100, SeedResourcesFit -30",
    ]
    assert list(explanation.about_seed(considered, "c")) == [
        "c is not possible: strategy: its region 'us-1' is not the shoot's"
    ]
    assert list(explanation.about_seed(considered, "d")) == ["there is no seed d"]
    assert next(iter(explanation.about_seed(considered, "b"))).startswith("b is the first of 2 seeds that fit")


async def test_scores_that_a_shoot_has_no_requests_for_are_named() -> None:
    added = {
        "addedAffinity": [
            {"purposes": ["production"], "preferred": [{"weight": 1, "preference": {"matchLabels": {"tier": "gold"}}}]}
        ]
    }
    given = profile(("SeedAffinity", 1, added), ("SeedResourcesFit", 1, {}))
    scheduler = await scheduler_of(given, a_seed("a"), a_shoot("apollo", spec={"purpose": "evaluation"}))
    considered = await considered_by(scheduler, "apollo")
    assert [(each["name"], each["requested"]) for each in considered["scores"]] == [
        ("SeedAffinity", False), ("SeedResourcesFit", True)
    ]  # fmt: skip
    assert list(explanation.below_scores(considered)) == [
        "not requested by this shoot, the same everywhere: SeedAffinity"
    ]


async def test_required_added_affinity_is_a_filter_by_purpose() -> None:
    gold: Document = {"metadata": {"labels": {"tier": "gold"}}}
    added = {"addedAffinity": [{"purposes": ["production"], "required": [{"matchLabels": {"tier": "gold"}}]}]}
    given = profile(("SeedAffinity", 1, added), ("SeedResourcesFit", 1, {}))
    shoots = [a_shoot(name, spec={"purpose": name}) for name in ("production", "evaluation")]
    scheduler = await scheduler_of(given, a_seed("a"), a_seed("b", shoots="9", **gold), *shoots)
    assert [await seed_of(scheduler, each) for each in ("production", "evaluation")] == ["b", "a"]
    considered = await considered_by(scheduler, "production")
    assert [(each["seed"], each["rule"]) for each in considered["rejections"]] == [("a", "seed-affinity")]
    assert "of purpose production: tier=gold" in considered["rejections"][0]["detail"]


async def test_an_annotation_counts_while_it_is_valid_and_a_new_value_at_once() -> None:
    def cost(value: str, until: datetime) -> Document:
        return {"metadata": {"annotations": {"cost": value, "cost-valid-until": until.isoformat()}}}

    soon = NOW + timedelta(minutes=1)
    given = profile(("SeedAnnotation/cost", 1, {**COST}), ("SeedResourcesFit", 1, {}))
    cheap = a_seed("cheap", shoots="9", **cost("0.1", soon))
    scheduler = await scheduler_of(given, cheap, a_seed("plain", shoots="90"))
    scheduler.cache.expire_annotations(NOW)

    async def chosen(name: str) -> str:
        await scheduler.store.create(a_shoot(name))
        with capture_logs():
            await scheduler.handle_batch(name)
        return await seed_of(scheduler, name)

    assert await chosen("one") == "cheap"
    scheduler.cache.expire_annotations(soon + timedelta(seconds=1))
    assert await chosen("two") == "plain"
    key = ObjectKey("seed", "", "cheap")
    stored = await scheduler.store.get(key)
    assert stored is not None
    document = stored.document()
    document["metadata"]["annotations"] = {"cost": "0.0"}
    await scheduler.store.update(stored, document)
    assert await chosen("three") == "cheap"


async def test_profiles_of_one_cache_differ_and_share_the_usage() -> None:
    most = profile(("SeedResourcesFit", 1, MOST))
    plain = SchedulingProfile(scheduler_name="plain")
    store = await stocked(*BASE, a_seed("a", shoots="9"), a_seed("b", shoots="3"), a_shoot("one"))
    scheduler = SchedulerUnderTest(store, profiles=[most, plain])
    with capture_logs():
        await scheduler.handle_batch("one")
    snapshots = [scheduler.cache.snapshot(name) for name in (SCHEDULER, "plain", "other")]
    assert [bool(each.landscape.scores) for each in snapshots] == [True, False, False]
    assert len({id(each.landscape.index) for each in snapshots}) == 1
    assert [each.usage for each in snapshots] == [{"b": 1}] * 3
