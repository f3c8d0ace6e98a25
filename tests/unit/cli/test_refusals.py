"""What lists say of a refusal."""

import pytest

from gardenbus.common.api.garden.feasibility import taint_problem
from gardenbus.common.api.garden.seeds import SeedTaint
from gardenbus.common.api.garden.unschedulable import brief_reason
from gardenbus.scheduler.domain.hosted_seeds import with_hosted_rejections
from gardenbus.scheduling.filters.capacity import CAPACITY, full_because
from gardenbus.scheduling.filters.networks import NETWORKS
from gardenbus.scheduling.filters.taints import TAINTS
from gardenbus.scheduling.results import SeedRejection, Unschedulable, format_rejections

OVERLAP = (
    "invalid networks: the shoot's pods 10.0.0.0/9 overlap with the seed's nodes 10.12.0.0/17, pods 10.12.128.0/18"
)


def refused(*rejections: SeedRejection) -> str:
    return f"Failed to schedule Shoot: 0/{len(rejections)} seeds are eligible: {format_rejections(rejections)}"


def test_seeds_are_counted_by_what_speaks_against_them():
    message = refused(
        SeedRejection("aws-b", NETWORKS.name, OVERLAP),
        SeedRejection("aws-a", NETWORKS.name, OVERLAP.replace("10.12", "10.13")),
        SeedRejection("aws-c", CAPACITY.name, full_because(3, 3)),
        SeedRejection("aws-lab", TAINTS.name, taint_problem((), (SeedTaint(key="a"), SeedTaint(key="b", value="c")))),
    )

    assert (
        brief_reason(message)
        == "0/4 seeds: 2 with overlapping networks, 1 full, 1 with taints that it does not tolerate"
    )


def test_many_seeds_are_counted_as_well_with_the_reasons_that_are_not_named():
    full = [SeedRejection(f"s{number:03}", CAPACITY.name, full_because(3, 3)) for number in range(40)]
    own = [SeedRejection(f"t{number:03}", "mine", f"is of cost centre {number}, not mine") for number in range(30)]

    text = brief_reason(refused(*full, *own))

    assert text.startswith("0/70 seeds: 40 full, ")
    assert text.endswith(" for other reasons") or "for other reasons," in text


def test_what_a_filter_of_ones_own_says_is_kept_up_to_its_details():
    assert (
        brief_reason(refused(SeedRejection("s", "mine", "it is too dear (12 > 9): ask finance")))
        == "0/1 seeds: 1 it is too dear"
    )


def test_seeds_that_the_shoot_hosts_itself_are_counted_apart():
    rejections = (SeedRejection("a", CAPACITY.name, full_because(3, 3)),)
    refusal = Unschedulable(
        CAPACITY.name, f"0/1 seeds are eligible: {format_rejections(rejections)}", {CAPACITY.name: 1}
    )
    outcome = with_hosted_rejections(frozenset({"b", "c"}), refusal)
    assert isinstance(outcome, Unschedulable)

    assert brief_reason(outcome.message) == "0/1 seeds: 1 full; left out: 2 that it hosts"
    assert outcome.rejected == {CAPACITY.name: 1, "circular": 2}


@pytest.mark.parametrize("text", ["", "none of the 3 seeds is ready", "0/3 seeds are eligible, said somebody else"])
def test_any_other_refusal_only_loses_its_beginning(text: str):
    assert brief_reason(f"Failed to schedule Shoot: {text}") == text
    assert brief_reason(text) == text
