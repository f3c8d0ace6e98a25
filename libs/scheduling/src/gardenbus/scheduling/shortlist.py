"""The seeds that meet a demand, worked out once for all shoots that share it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import msgspec

from gardenbus.common.resources.fitting import taint_problem
from gardenbus.common.resources.tolerations import counting
from gardenbus.scheduling.landscape import Landscape, SeedCandidate
from gardenbus.scheduling.outcome import Refusal, Rejection
from gardenbus.scheduling.request import Demand
from gardenbus.scheduling.rules import FILTERS, TAINTS
from gardenbus.scheduling.rules.filtering import Inquiry
from gardenbus.scheduling.strategies import Order, order_of

_REMEMBERED = 20_000


class Shortlist(msgspec.Struct, frozen=True, eq=False):
    """What a demand comes to before networks and capacity.

    `refusal` is set when a filter kept nothing. Otherwise `candidates` passed all filters, `objections` are those that
    a check on the demand alone has against some of them, and `order` ranks all candidates (a check may still object).
    """

    rejections: tuple[Rejection, ...] = ()
    refusal: Refusal | None = None
    candidates: Sequence[SeedCandidate] = ()
    objections: Mapping[str, Rejection] = msgspec.field(default_factory=dict[str, Rejection])
    order: Order | None = None


def shortlist_of(demand: Demand, landscape: Landscape) -> Shortlist:
    """Work the shortlist out, or take it from the landscape's memory."""
    known = cast("Shortlist | None", landscape.memory.get(demand))
    if known is None:
        if len(landscape.memory) >= _REMEMBERED:
            landscape.memory.clear()
        known = landscape.memory[demand] = _worked_out(demand, landscape)
    return known


def _worked_out(demand: Demand, landscape: Landscape) -> Shortlist:
    inquiry = inquiry_of(demand, landscape)
    if isinstance(inquiry, Refusal):
        return Shortlist(refusal=inquiry)
    rejections: list[Rejection] = []
    seeds: Sequence[SeedCandidate] = landscape.seeds
    for rule in FILTERS:
        filtered = rule.apply(inquiry, seeds)
        rejections += [Rejection(seed, rule.name, detail) for seed, detail in filtered.rejected.items()]
        seeds = filtered.kept
        if not seeds:
            message = filtered.sentence or "there are no seeds"
            return Shortlist(tuple(rejections), Refusal(rule.name, message, tuple(rejections)))
    objections = {
        seed.name: objection for seed in seeds if (objection := _objection(inquiry, seed, landscape)) is not None
    }
    return Shortlist(tuple(rejections), None, seeds, objections, order_of(demand, seeds, landscape))


def inquiry_of(demand: Demand, landscape: Landscape) -> Inquiry | Refusal:
    """The demand with the objects that it names, or the refusal when one is not there."""
    if not demand.profile:
        return Refusal("cloudprofile", "the shoot names no cloud profile")
    profile = landscape.profile(demand.profile_kind, demand.namespace, demand.profile)
    if profile is None:
        return Refusal("cloudprofile", f"{demand.profile_kind} {demand.profile!r} is not there")
    project = landscape.project_of(demand.namespace)
    if project is None:
        return Refusal("project", f"the namespace {demand.namespace!r} belongs to no Project")
    tolerations = counting(demand.tolerations, demand.unchecked, project.allowed_tolerations)
    return Inquiry(demand, profile, project.metadata.name, tolerations)


def _objection(inquiry: Inquiry, candidate: SeedCandidate, landscape: Landscape) -> Rejection | None:
    demand, taints = inquiry.demand, candidate.seed.spec.taints
    if detail := taint_problem(inquiry.tolerations, taints):
        if not taint_problem(demand.tolerations, taints):
            detail += f": it would, but project {inquiry.project} does not whitelist its tolerations"
        return Rejection(candidate.name, TAINTS, detail)
    return next(filter_objections(demand, candidate, landscape), None)


def filter_objections(demand: Demand, candidate: SeedCandidate, landscape: Landscape) -> Iterator[Rejection]:
    """What users' own filters have against a seed. Their exceptions are passed on."""
    wishes = dict(demand.wishes)
    for each in landscape.filters:
        wish = msgspec.json.decode(wishes[each.name]) if each.name in wishes else None
        if refused := each.refuse(wish, candidate.document):
            yield Rejection(candidate.name, each.name, refused)
