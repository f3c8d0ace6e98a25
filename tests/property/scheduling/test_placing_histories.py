"""Whoever places shoots breaks no rule between them and overfills nothing; a precaution that is taken out is missed."""

import logging
from collections.abc import Mapping, Sequence

import pytest
import structlog

from gardenbus.apiserver.domain import group_admission
from tests.support.mutants import Mutant, changed_functions
from tests.support.placing_histories import History, Violation

HISTORIES = range(60)
DEEPER = range(60, 400)
MUTANT_HISTORIES = range(1_000)
PHASES = 4


@pytest.fixture(autouse=True)
def _silent() -> None:  # pyright: ignore[reportUnusedFunction]
    """A line for each decision would take half of the time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def _run(seeds: Sequence[int]) -> tuple[int, int]:
    """Run histories; returns how many placements were checked, and how many calls lost to others."""
    checked = superseded = 0
    for seed in seeds:
        history = History(seed)
        try:
            await history.run(PHASES)
        except Violation as violation:
            violation.add_note(f"History({seed})")
            raise
        checked += history.store.checked
        superseded += history.store.superseded
    return checked, superseded


async def test_whoever_places_shoots_breaks_no_rule_overfills_nothing_and_forgets_no_shoot() -> None:
    checked, superseded = await _run(HISTORIES)
    assert checked > 10 * len(HISTORIES)
    assert superseded > len(HISTORIES)


@pytest.mark.long
async def test_no_rule_is_broken_in_many_more_histories() -> None:
    await _run(DEEPER)


def _admit(*_arguments: object, **_counts: object) -> None:
    return


def _without(*lines: str) -> Mutant:
    """The store's functions without some lines."""
    return Mutant([changed_functions(*((line, "") for line in lines))])


MUTANTS: Mapping[str, Mutant] = {
    "a bind is not fenced by groups": _without(
        "  if object.grp ~= '' and groups.have_changed(P, item.ns, object.grp, item.groups) then"
        " return 'group-changed' end\n"
    ),
    "a move is not fenced by groups": _without(
        "      if groups.have_changed(P, op.ns, op.set.grp or object.grp, guard.groups) then"
        " return {'regrouped', i} end\n"
    ),
    "only members are fenced": Mutant(
        [
            changed_functions(
                (
                    "    for group in each_group(lines) do\n      local stated, version = seen and",
                    "    for group in string.gmatch(lines, '(%S+) 1') do\n      local stated, version = seen and",
                )
            )
        ]
    ),
    "shoots of a call that were not placed are counted upon": Mutant(
        [
            changed_functions(
                (
                    "not made or made.from ~= stated[1] or made.count ~= stated[2] or made.version ~= version then",
                    "not made then",
                )
            )
        ]
    ),
    "a group that comes again begins anew": Mutant(
        [changed_functions(("before > 0 and before + 1 or usage_version", "before + 1"))]
    ),
    "who keeps others off is not counted": _without(
        "      for key in string.gmatch(keys, '[^,]+') do fields[#fields + 1] = key .. '!' .. seed end\n"
    ),
    "groups that change on a seed are not counted anew": _without(
        "      if was.grp ~= now.grp then groups.recount(P, ns, seed, was.grp, now.grp) end\n"
    ),
    "a bind reserves nothing": _without("    requests.add(P, item.seed, object.rq, '', usage_version)\n"),
    "requests are compared with an empty seed": Mutant(
        [changed_functions(("if taken + more > (stated[resource] or 0)", "if more > (stated[resource] or 0)"))]
    ),
    "more is requested where there is no room": _without(
        "      if requests.are_lacking(P, on, op.ns .. '/' .. op.name, allocatable, requested, object.rq) then"
        " return 'short' end\n"
    ),
    "requests that change on a seed are not counted anew": _without(
        "      if was.rq ~= now.rq and requests.replace(P, seed, was.rq, now.rq) then freed = true end\n"
    ),
    "a full seed takes one more": Mutant(
        [changed_functions(("    if taken >= tonumber(stored.cap) and", "    if false and"))]
    ),
    "who waits for a group is not woken by it": _without("  groups.await(P, member, object.grp, 'SADD')\n"),
    "a member that came before the mark is missed": _without(
        "\n     or item.groups and groups.have_changed(P, item.ns, object.grp, item.groups)"
    ),
    "a person's bind is under no rule": Mutant([(group_admission, "admit_groups", _admit)]),
}
"""The product without one of its precautions each."""


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
async def test_a_precaution_that_is_taken_out_is_missed(name: str) -> None:
    with MUTANTS[name].applied(), pytest.raises(Violation):
        await _run(MUTANT_HISTORIES)
