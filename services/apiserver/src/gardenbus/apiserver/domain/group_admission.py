"""Admission of a bind by name under the rules between shoots: the scheduler's checks, on the groups as read."""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.domain.bind_admission import UNFEASIBLE, is_eligible
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.seeds import Seed, shoot_capacity
from gardenbus.common.api.garden.shoot_groups import SEED_KEY, GroupChecks, GroupCounts, domain_of, without_shoot
from gardenbus.common.errors import Forbidden, InvalidResource


def admit_groups(  # noqa: PLR0913  all that the rules read
    shoot: Document,
    target: str,
    seeds: Sequence[Document],
    *,
    counts: Mapping[str, GroupCounts],
    usage: Mapping[str, int],
    project: Document | None,
    profile_spec: Document | None,
) -> None:
    """Check that no required rule keeps a shoot off a seed. Raises Forbidden with each that does.

    `seeds` are all there are, `counts` those of the shoot's groups, in which it does not stand in its own way.
    """
    views = _views(seeds)
    own = {str(section(shoot, part).get("seedName") or "") for part in ("spec", "status")} - {""}
    eligible = {
        name_of(seed): seed
        for seed in seeds
        if name_of(seed) in views and is_eligible(shoot, seed, project=project, profile_spec=profile_spec)
    }

    def domain(seed: str, key: str) -> str | None:
        if key == SEED_KEY:
            return seed
        return domain_of(views[seed], key) if seed in views else None

    rules = resolved_of(shoot).group_rules
    checks = GroupChecks(
        rules,
        without_shoot(counts, rules, own),
        domain,
        eligible=list(eligible),
        open_seeds={name for name, seed in eligible.items() if _has_place(seed, usage.get(name, 0))},
    )
    if reasons := [f"{each.rule}: {each.detail}" for each in checks.problems(target)]:
        raise Forbidden(UNFEASIBLE(seed=target, reasons="; ".join(reasons)))


def _views(seeds: Sequence[Document]) -> dict[str, Seed]:
    views: dict[str, Seed] = {}
    for seed in seeds:
        try:
            views[name_of(seed)] = Seed.from_document(seed)
        except InvalidResource:
            continue
    return views


def _has_place(seed: Document, usage: int) -> bool:
    try:
        capacity = shoot_capacity(seed)
    except ValueError:
        return False
    return capacity is None or usage < capacity
