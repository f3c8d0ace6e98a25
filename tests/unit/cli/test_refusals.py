"""What lists say of a refusal."""

import pytest

from gardenbus.cli.refusals import essence
from gardenbus.common.resources.fitting import taint_problem
from gardenbus.common.resources.seeds import Taint
from gardenbus.scheduler.reconcilers.hosting import naming
from gardenbus.scheduling.outcome import Refusal, Rejection, listed
from gardenbus.scheduling.rules import CAPACITY, NETWORKS, TAINTS, capacity

OVERLAP = (
    "invalid networks: the shoot's pods 10.0.0.0/9 overlap with the seed's nodes 10.12.0.0/17, pods 10.12.128.0/18"
)


def refused(*rejections: Rejection) -> str:
    return f"Failed to schedule Shoot: 0/{len(rejections)} seeds are eligible: {listed(rejections)}"


def test_seeds_are_counted_by_what_speaks_against_them():
    message = refused(
        Rejection("aws-b", NETWORKS, OVERLAP),
        Rejection("aws-a", NETWORKS, OVERLAP.replace("10.12", "10.13")),
        Rejection("aws-c", CAPACITY, capacity.problem(3, 3)),
        Rejection("aws-lab", TAINTS, taint_problem((), (Taint(key="a"), Taint(key="b", value="c")))),
    )

    assert essence(message) == "0/4 seeds: 2 with overlapping networks, 1 full, 1 with taints that it does not tolerate"


def test_many_seeds_are_counted_as_well_with_the_reasons_that_are_not_named():
    full = [Rejection(f"s{number:03}", CAPACITY, capacity.problem(3, 3)) for number in range(40)]
    own = [Rejection(f"t{number:03}", "mine", f"is of cost centre {number}, not mine") for number in range(30)]

    text = essence(refused(*full, *own))

    assert text.startswith("0/70 seeds: 40 full, ")
    assert text.endswith(" for other reasons") or "for other reasons," in text


def test_what_a_filter_of_ones_own_says_is_kept_up_to_its_details():
    assert (
        essence(refused(Rejection("s", "mine", "it is too dear (12 > 9): ask finance")))
        == "0/1 seeds: 1 it is too dear"
    )


def test_seeds_that_the_shoot_hosts_itself_are_counted_apart():
    rejections = (Rejection("a", CAPACITY, capacity.problem(3, 3)),)
    refusal = Refusal(CAPACITY, f"0/1 seeds are eligible: {listed(rejections)}", rejections)
    outcome = naming(frozenset({"b", "c"}), refusal)
    assert isinstance(outcome, Refusal)

    assert essence(outcome.message) == "0/1 seeds: 1 full; left out: 2 that it hosts"


@pytest.mark.parametrize("text", ["", "none of the 3 seeds is ready", "0/3 seeds are eligible, said somebody else"])
def test_any_other_refusal_only_loses_its_beginning(text: str):
    assert essence(f"Failed to schedule Shoot: {text}") == text
    assert essence(text) == text
