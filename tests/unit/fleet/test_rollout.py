"""The steps of a rollout: who is handed out, brought up to date and removed, within which budgets."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.common.errors import InvalidResource
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.rollout import RolloutStep, plan
from tests.support.fleets import NOW, a_placement
from tests.support.rolling import (
    EARLIER,
    FAILED,
    LATEST,
    PENDING,
    UNTRACKABLE,
    on_its_way,
    scheduled,
    unscheduled,
)

CLUSTERS = ("a", "b", "c", "d", "e", "f", "g", "h")


def step(
    *bindings: ResourceBinding,
    policy: Document | None = None,
    latest: str = LATEST,
    gone: tuple[str, ...] = (),
    strategy: Document | None = None,
    lacking: bool = False,
    **rolling: Any,
) -> RolloutStep:
    names = {"unavailable": "maxUnavailable", "surge": "maxSurge", "period": "unavailablePeriodSeconds"}
    update = {names[name]: value for name, value in rolling.items()}
    placement = a_placement(policy, spec={"strategy": {"rollingUpdate": update, **(strategy or {})}})
    return plan(placement, latest, bindings, NOW, gone=gone, lacks_clusters=lacking)


def pick_n(number: int) -> Document:
    return {"placementType": "PickN", "numberOfClusters": number}


def test_what_was_scheduled_is_bound_up_to_target_and_surge() -> None:
    rollout = step(*(scheduled(name) for name in CLUSTERS), policy=pick_n(4), surge=1)
    assert rollout.bind == ("web-a", "web-b", "web-c", "web-d", "web-e")
    assert rollout.waiting == ("web-f", "web-g", "web-h")
    assert not rollout.update
    assert not rollout.delete


def test_of_a_placement_everywhere_the_target_is_what_was_chosen() -> None:
    assert len(step(*(scheduled(name) for name in CLUSTERS), surge=0).bind) == 8


def test_of_fixed_clusters_the_target_is_how_many_are_named() -> None:
    policy = {"placementType": "PickFixed", "clusterNames": ["a", "b"]}
    assert len(step(*(scheduled(name) for name in CLUSTERS), policy=policy, surge=0).bind) == 2


def test_percent_are_rounded_up() -> None:
    """25% of 5 are 2 unavailable."""
    bindings = [on_its_way(name, resources=EARLIER) for name in CLUSTERS[:5]]
    rollout = step(*bindings, policy=pick_n(5))
    assert rollout.update == ("web-a", "web-b")
    assert rollout.waiting == ("web-c", "web-d", "web-e")
    assert rollout.recheck_after == 60


def test_who_failed_and_is_outdated_is_updated_whatever_the_budget() -> None:
    bindings = [on_its_way(name, available=FAILED, resources=EARLIER) for name in "abc"]
    assert step(*bindings, policy=pick_n(3), unavailable=1).update == ("web-a", "web-b", "web-c")


def test_who_is_under_way_has_not_failed() -> None:
    bindings = [on_its_way(name, available=PENDING, resources=EARLIER) for name in "abc"]
    assert step(*bindings, policy=pick_n(3), unavailable=1).update == ()


def test_what_a_condition_said_of_an_earlier_generation_counts_for_nothing() -> None:
    bindings = [on_its_way(name, resources=EARLIER, generation=2, observed=1) for name in "abc"]
    assert step(*bindings, policy=pick_n(3), unavailable=2).update == ()
    failed = on_its_way("a", available=FAILED, resources=EARLIER, generation=2, observed=1)
    assert step(failed, policy=pick_n(1), unavailable=1).update == ()


def test_the_budget_goes_to_those_given_up_first() -> None:
    bindings = [unscheduled("x"), *(on_its_way(name, resources=EARLIER) for name in "abc")]
    rollout = step(*bindings, policy=pick_n(3), unavailable=1)
    assert rollout.delete == ("web-x",)
    assert rollout.update == ("web-a",)
    assert rollout.waiting == ("web-b", "web-c")


def test_who_is_replaced_stays_until_the_new_one_is_ready() -> None:
    waiting = [unscheduled("x"), on_its_way("a", available=PENDING)]
    assert step(*waiting, policy=pick_n(1), unavailable=0, surge=1).delete == ()
    ready = [unscheduled("x"), on_its_way("a")]
    assert step(*ready, policy=pick_n(1), unavailable=0, surge=1).delete == ("web-x",)


def test_who_is_on_the_way_out_may_stop_to_serve_at_any_time() -> None:
    """Both leave a budget of one, whether the one that goes still serves or not."""
    bindings = [unscheduled("x", deleting=-1), *(on_its_way(name, resources=EARLIER) for name in "abc")]
    assert step(*bindings, policy=pick_n(3), unavailable=1).update == ("web-a",)


def test_a_placement_that_is_on_its_way_out_of_a_cluster_still_takes_part_of_the_surge() -> None:
    rollout = step(unscheduled("x", deleting=-1), on_its_way("a"), scheduled("b"), policy=pick_n(2), surge=0)
    assert rollout.bind == ()
    assert rollout.waiting == ("web-b",)


def test_failed_ones_leave_room_for_others() -> None:
    rollout = step(on_its_way("a", available=FAILED), scheduled("b"), policy=pick_n(1), surge=0)
    assert rollout.bind == ("web-b",)


def test_failed_ones_that_get_another_try_are_part_of_the_surge() -> None:
    bindings = [
        unscheduled("x"),
        unscheduled("y"),
        on_its_way("a", available=FAILED, resources=EARLIER),
        scheduled("b"),
    ]
    rollout = step(*bindings, policy=pick_n(2), unavailable=0, surge=1)
    assert rollout.update == ("web-a",)
    assert rollout.bind == ()


def test_what_cannot_be_observed_is_ready_after_its_period() -> None:
    young = on_its_way("a", available=UNTRACKABLE, since=-20)
    bindings = [young, on_its_way("b", resources=EARLIER)]
    rollout = step(*bindings, policy=pick_n(2), unavailable=1, period=60)
    assert rollout.update == ()
    assert rollout.recheck_after == pytest.approx(40)
    old = on_its_way("a", available=UNTRACKABLE, since=-60)
    assert step(old, bindings[1], policy=pick_n(2), unavailable=1, period=60).update == ("web-b",)


def test_a_finished_rollout_is_left_alone() -> None:
    rollout = step(*(on_its_way(name) for name in "abc"), policy=pick_n(3))
    assert rollout == RolloutStep(reason="all bindings are up to date")


def test_who_is_up_to_date_and_does_not_say_so_is_made_to() -> None:
    assert step(on_its_way("a", started=None), policy=pick_n(1)).started == ("web-a",)
    assert step(on_its_way("a", started="False"), policy=pick_n(1)).started == ("web-a",)


def test_ways_of_applying_go_first_and_to_all_but_the_leaving() -> None:
    apply = {"type": "ServerSideApply"}
    bindings = [unscheduled("x"), on_its_way("a"), scheduled("b"), unscheduled("y", deleting=-1)]
    rollout = step(*bindings, policy=pick_n(2), strategy={"applyStrategy": apply})
    assert rollout == RolloutStep(strategies=("web-a", "web-b", "web-x"))
    same = on_its_way("a", applyStrategy=apply)
    assert step(same, policy=pick_n(1), strategy={"applyStrategy": apply}).strategies == ()


def test_a_cluster_is_left_before_it_gets_another_binding() -> None:
    bindings = [unscheduled("a", deleting=-2, name="web-a-old"), scheduled("a"), scheduled("b")]
    rollout = step(*bindings, policy=pick_n(2))
    assert not rollout.spends
    assert rollout.recheck_after == 5


def test_one_cluster_that_is_not_left_holds_the_others_up_for_a_while_only() -> None:
    bindings = [unscheduled("a", deleting=-61, name="web-a-old"), scheduled("a"), scheduled("b")]
    rollout = step(*bindings, policy=pick_n(2), surge=1)
    assert rollout.bind == ("web-b",)
    assert rollout.waiting == ("web-a",)
    assert rollout.recheck_after == 5


def test_two_living_bindings_of_one_cluster_are_no_state_to_go_on_from() -> None:
    with pytest.raises(UnexpectedState, match="both of cluster a"):
        step(on_its_way("a"), on_its_way("a", name="web-a2"))


@pytest.mark.parametrize("binding", [on_its_way("a"), unscheduled("a")])
def test_nobody_is_handed_out_while_an_earlier_binding_is_leaving(binding: ResourceBinding) -> None:
    with pytest.raises(UnexpectedState, match="was handed out"):
        step(binding, unscheduled("a", deleting=-1, name="web-a-old"))


def test_without_resources_nothing_begins() -> None:
    assert not step(scheduled("a"), latest="").spends


def test_others_roll_out_what_is_theirs() -> None:
    assert step(scheduled("a"), strategy={"type": "External"}) == RolloutStep(reason="others roll it out")


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidResource, match="neither a number nor percent"):
        step(on_its_way("a", resources=EARLIER), policy=pick_n(1), unavailable="some")


def test_who_was_never_placed_goes_when_the_budgets_allow_nothing() -> None:
    """Two that were given up before they were Bound, one ready and one to come: KubeFleet stops here for good."""
    given_up = [on_its_way(name, "Unscheduled", None, resources="", previous="Scheduled") for name in "xy"]
    rollout = step(*given_up, on_its_way("a"), scheduled("b"), policy=pick_n(2))
    assert rollout.bind == ()
    assert rollout.delete == ("web-x", "web-y")


def test_who_failed_goes_when_the_budgets_allow_nothing() -> None:
    rollout = step(
        unscheduled("x", FAILED), on_its_way("a", available=PENDING), policy=pick_n(1), unavailable=0, surge=0
    )
    assert rollout.delete == ("web-x",)


def test_who_is_on_a_cluster_that_is_gone_goes_when_the_budgets_allow_nothing() -> None:
    bindings = [unscheduled("x", PENDING), *(on_its_way(name) for name in "ab")]
    assert step(*bindings, policy=pick_n(3), unavailable=1).delete == ()
    assert step(*bindings, policy=pick_n(3), unavailable=1, gone=("x",)).delete == ("web-x",)


def test_a_placement_shrinks_to_zero_though_not_all_are_ready() -> None:
    assert step(unscheduled("x", PENDING), policy=pick_n(0)).delete == ("web-x",)


def test_new_resources_reach_a_placement_that_lacks_clusters() -> None:
    """Four of ten were found: a quarter of these at a time."""
    bindings = [on_its_way(name, resources=EARLIER) for name in "abcd"]
    assert step(*bindings, policy=pick_n(10)).update == ()
    rollout = step(*bindings, policy=pick_n(10), lacking=True)
    assert rollout.update == ("web-a",)
    assert rollout.waiting == ("web-b", "web-c", "web-d")
    assert step(*bindings, policy=pick_n(10), unavailable=0, lacking=True).update == ()


def test_a_placement_that_has_found_all_its_clusters_goes_by_the_number_wanted() -> None:
    """As KubeFleet does: what was said of clusters that were wanting is of no account once they are there."""
    bindings = [on_its_way(name, resources=EARLIER) for name in "abcdefgh"]
    assert step(*bindings, policy=pick_n(8), lacking=True) == step(*bindings, policy=pick_n(8))
    assert step(*bindings, policy=pick_n(8)).update == ("web-a", "web-b")


def test_few_clusters_are_wanting_and_the_budget_of_the_number_wanted_is_enough() -> None:
    """Nine of ten: the number wanted lets two go (three may be missing), and so it stays with that."""
    bindings = [on_its_way(name, resources=EARLIER) for name in "abcdefghi"]
    assert step(*bindings, policy=pick_n(10), lacking=True) == step(*bindings, policy=pick_n(10))
    assert len(step(*bindings, policy=pick_n(10)).update) == 2


def test_new_resources_reach_fixed_clusters_of_which_some_are_wanting() -> None:
    policy = {"placementType": "PickFixed", "clusterNames": list("abcdefgh")}
    bindings = [on_its_way(name, resources=EARLIER) for name in "ab"]
    assert step(*bindings, policy=policy).update == ()
    assert step(*bindings, policy=policy, lacking=True).update == ("web-a",)


def test_a_cluster_that_was_given_up_serves_on_while_clusters_are_wanting() -> None:
    """What is lost with it comes back nowhere; fewer clusters wanted, or an eviction, let it go."""
    bindings = [on_its_way("a"), unscheduled("x")]
    assert step(*bindings, policy=pick_n(4), lacking=True).delete == ()
    assert step(*bindings, policy=pick_n(2), unavailable=1, lacking=True).delete == ("web-x",)


def test_new_resources_wait_for_a_cluster_that_does_not_serve_whether_clusters_are_wanting_or_not() -> None:
    """The budget of those found is a budget: one of three is missing already."""
    bindings = [*(on_its_way(name, resources=EARLIER) for name in "ab"), on_its_way("c", available=PENDING)]
    assert step(*bindings, policy=pick_n(9), lacking=True).update == ()
    assert step(*bindings, policy=pick_n(9), lacking=True, unavailable=2).update == ("web-a",)


def test_the_order_of_bindings_is_of_no_account() -> None:
    bindings = [*(on_its_way(name, resources=EARLIER) for name in "abcd"), scheduled("e"), unscheduled("x")]
    assert step(*bindings, policy=pick_n(5)) == step(*reversed(bindings), policy=pick_n(5))
