"""Convergence of a landscape: all that is wanted is done. Pure.

A shoot is done when its gardenlet has reconciled it at its generation, or when it was rejected and nothing that might
let it fit has happened since. The landscape is settled when every shoot is done, every set of seeds has what its
autoscaler and its manifest want, every gardenlet that belongs to it has reported its seed, and no change waits to be
announced.
"""

from collections.abc import Collection, Mapping

from gardenbus.cli.client.summaries import SetSummary, ShootSummary
from gardenbus.common.api.garden.rows import AutoscalerRow, SeedRow


def not_converged_reason(
    *,
    census: Mapping[str, int],
    shoots: Collection[ShootSummary],
    seeds: Collection[SeedRow],
    sets: Collection[SetSummary] = (),
    autoscalers: Collection[AutoscalerRow] = (),
    expected_seeds: Collection[str],
) -> str:
    """Reason why the landscape is not settled, or "" when it is. `census` is the response of `garden.api.census`."""
    reported = {seed.name for seed in seeds if seed.ready}
    if missing := sorted(set(expected_seeds) - reported):
        return f"{len(missing)} seeds have not reported yet ({missing[0]}, …)"
    if (stored := census.get("objects.shoot", 0)) != len(shoots):
        return f"{stored} shoots are stored, {len(shoots)} have been announced"
    if unfinished := _unfinished_set(sets, autoscalers):
        return unfinished
    undone = [shoot for shoot in shoots if not (shoot.is_reconciled or (shoot.is_rejected and not shoot.is_deleting))]
    if undone:
        return f"{len(undone)} shoots are not done ({undone[0].namespace}/{undone[0].name}, …)"
    if undecided := census.get("shoots.pending", 0) - census.get("shoots.waiting", 0):
        return f"{undecided} shoots are being decided"
    if unseen := census.get("shoots.waiting_unseen", 0):
        return f"{unseen} shoots were unschedulable before the landscape changed"
    if outbox := census.get("outbox", 0):
        return f"{outbox} changes are not announced yet"
    return ""


def _unfinished_set(sets: Collection[SetSummary], autoscalers: Collection[AutoscalerRow]) -> str:
    """The set of seeds that still grows or shrinks; "" when none does."""
    wanted = {each.name: each.wanted for each in sets}
    for each in sets:
        if not each.is_converged:
            pending = each.pending_replica or "looking"
            return f"the set {each.name} has {each.ready} of {each.wanted} seeds ready ({pending})"
    for each in autoscalers:
        if each.target in wanted and each.desired != wanted[each.target]:
            return f"the autoscaler {each.name} has not settled"
    return ""
