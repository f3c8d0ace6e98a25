from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from gardenbus.cli.migrations.improvements import PROTECT_FROM_REBALANCING
from gardenbus.cli.migrations.rebalancing import RebalancingPlan, plan_rebalancing
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.scheduling.descheduling.relocation import HostedSeeds
from tests.support.builders import (
    a_cloudprofile,
    a_condition,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
    resolved_as,
)

BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}


def seed(name: str, shoots: int | None = 10, **changes: Any) -> Document:
    return merged(a_seed(name, shoots=shoots), merged(BACKUP, changes))


def shoots_on(place: str, number: int, **changes: Any) -> list[Document]:
    placed = {
        "spec": {"seedName": place},
        "status": {"seedName": place, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    }
    return [a_shoot(f"{place}-{shoot}", **merged(placed, changes)) for shoot in range(number)]


def planned(
    *documents: Document, band: str = "1/10", forbidden: HostedSeeds | None = None, strategy: str = "SameRegion"
) -> RebalancingPlan:
    landscape = [a_project(), a_cloudprofile(), *documents]
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    return plan_rebalancing(shoots, snapshot_of(landscape, strategy), band=Fraction(band), forbidden=forbidden or {})


def ways(plan: RebalancingPlan) -> Sequence[tuple[str, str]]:
    return [(move.source, move.target) for move in plan.moves]


def after(plan: RebalancingPlan) -> dict[str, int]:
    return {share.seed: share.planned for share in plan.seeds}


def test_the_full_gives_to_the_empty_until_both_lie_in_the_band():
    plan = planned(seed("a"), seed("b"), *shoots_on("a", 9))

    assert ways(plan) == [("a", "b")] * 4
    assert plan.lower_bound == 4
    assert plan.is_complete
    assert after(plan) == {"a": 5, "b": 4}
    assert not all(share.is_within for share in plan.seeds)


def test_what_lies_in_the_band_is_left_alone():
    assert planned(seed("a"), seed("b"), *shoots_on("a", 4), *shoots_on("b", 3)).moves == []
    assert planned(seed("a"), seed("b"), *shoots_on("a", 9), band="9/10").moves == []


def test_share_counts_not_number():
    plan = planned(seed("a", 100), seed("b", 10), *shoots_on("a", 22))

    assert after(plan) == {"a": 20, "b": 2}


def test_seeds_that_no_shoot_can_move_between_are_not_compared():
    elsewhere: Any = {"spec": {"provider": {"region": "eu-central-1"}}}

    plan = planned(seed("a"), seed("b", **elsewhere), *shoots_on("a", 9))

    assert plan.moves == []
    assert plan.seeds == []
    assert plan.is_complete


def test_shoots_opt_out_by_annotation():
    kept: Any = {"metadata": {"annotations": {PROTECT_FROM_REBALANCING: "true"}}}
    free: Any = {"metadata": {"annotations": {PROTECT_FROM_REBALANCING: "no"}}}

    assert planned(seed("a"), seed("b"), *shoots_on("a", 9, **kept)).moves == []
    assert len(planned(seed("a"), seed("b"), *shoots_on("a", 9, **free)).moves) == 4


def test_what_cannot_be_reached_is_approached_and_said():
    kept: Any = {"metadata": {"annotations": {PROTECT_FROM_REBALANCING: "true"}}}
    extra = [a_shoot("free", spec={"seedName": "a"}, status={"seedName": "a"})]

    plan = planned(seed("a"), seed("b"), *shoots_on("a", 8, **kept), *extra)

    assert [move.name for move in plan.moves] == ["free"]
    assert not plan.is_complete
    assert plan.lower_bound == 4


def test_shoots_that_host_seeds_stay():
    hosts = {ObjectKey("shoot", "garden-dev", f"a-{number}"): frozenset({"z"}) for number in range(9)}

    assert planned(seed("a"), seed("b"), *shoots_on("a", 9), forbidden=hosts).moves == []


def test_a_seed_that_takes_nothing_or_has_no_limit_takes_no_part():
    hidden: Any = {"spec": {"settings": {"scheduling": {"visible": False}}}}
    stopped: Any = {"metadata": {"annotations": {"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}}}
    documents = [seed("a"), seed("b", **hidden), seed("c", **stopped), seed("d", None), seed("e", 0)]

    plan = planned(*documents, *shoots_on("a", 9))

    assert plan.moves == []
    assert sorted(plan.left_out) == ["b", "c", "d", "e"]


def test_no_shoot_moves_farther_away_than_it_is():
    def far(region: str) -> Any:
        return {"spec": {"provider": {"region": region}}}

    near_and_far = [seed("a"), seed("b", **far("eu-central-1")), a_region_configmap()]

    assert planned(*near_and_far, *shoots_on("a", 9), strategy="MinimalDistance").moves == []
    assert len(planned(*near_and_far, *shoots_on("b", 9), strategy="MinimalDistance").moves) == 4


def test_moves_come_in_an_order_in_which_each_finds_room():
    def only(*tiers: str) -> Any:
        return {"spec": {"seedSelector": {"matchExpressions": [{"key": "t", "operator": "In", "values": tiers}]}}}

    documents = [
        seed("a", 4, metadata={"labels": {"t": "a"}}),
        seed("b", 4, metadata={"labels": {"t": "b"}}),
        seed("c", 4, metadata={"labels": {"t": "c"}}),
        *shoots_on("a", 4, **only("a", "b")),
        *shoots_on("b", 4, **only("b", "c")),
    ]

    plan = planned(*documents, band="1/4")

    assert plan.is_complete
    used = {"a": 4, "b": 4, "c": 0}
    for move in plan.moves:
        assert used[move.target] < 4
        used[move.target] += 1
        used[move.source] -= 1
    assert used == after(plan)
    assert ways(plan)[0] == ("b", "c")


def test_a_seed_without_a_real_limit_is_planned_like_any_other():
    plan = planned(seed("a", 10**12), seed("b", 10), *shoots_on("b", 4))

    assert ways(plan) == [("b", "a")] * 3  # 1 of 10 is in the band
    assert plan.is_complete


APART = {"groups": ["p"], "affinity": {"shootAntiAffinity": {"required": [{"group": "p", "topologyKey": "seed"}]}}}


def test_moves_break_no_rule_between_shoots():
    kept = [merged(each, {"metadata": resolved_as(APART)}) for each in [*shoots_on("a", 1), *shoots_on("b", 1)]]
    plan = planned(seed("a", 2), seed("b", 4), seed("c", 4), *kept, band="1/10")

    assert ("a", "b") not in ways(plan)
    assert [move.target for move in plan.moves].count("c") <= 1, "the second would meet the first"
