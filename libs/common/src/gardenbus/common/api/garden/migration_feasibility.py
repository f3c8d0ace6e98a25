"""Feasibility of a control plane's migration between two seeds, besides that of the target for the shoot.

Source: Gardener's admission plugin ShootValidator, for a shoot that is rescheduled.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.confirmation import is_confirmed
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.seeds import GARDENLET_READY
from gardenbus.common.api.numbers import whole_number

READY_FOR_MIGRATION = "ReadyForMigration"
"""Constraint of a shoot that reports to the source seed that the target can host the control plane."""

STATE_GENERATION = "shootstate.gardenbus.io/generation"
"""Ours, on a ShootState: the generation of the shoot at which it was saved. A target seed restores no older one."""


def seeds_of(shoot: Document) -> tuple[str, str]:
    """Target and present seed of a shoot, those of its spec and status ("" for none)."""
    target: Any = section(shoot, "spec").get("seedName")
    present: Any = section(shoot, "status").get("seedName")
    return str(target or ""), str(present or "")


def state_generation(shoot_state: Document) -> int:
    """Generation of the shoot at which a ShootState was saved; 0 if it has none."""
    return whole_number(section(shoot_state, "metadata", "annotations").get(STATE_GENERATION))


def state_owners(shoot_state: Document) -> frozenset[str]:
    """Uids of the shoots that own a ShootState."""
    owners: Any = section(shoot_state, "metadata").get("ownerReferences") or []
    return frozenset(str(owner.get("uid")) for owner in owners if owner.get("kind") == "Shoot")


def is_older_state(given: Document, stored: Document) -> bool:
    """True when a ShootState of the same shoot is older than the stored one; one without its confirmation is."""
    same_shoot = bool(state_owners(given) & state_owners(stored))
    return same_shoot and _recency(given) < _recency(stored)


def _recency(shoot_state: Document) -> tuple[int, bool]:
    return state_generation(shoot_state), is_confirmed(shoot_state)


def hand_over_obstacle(seed: Document) -> str:
    """Reason for which a seed's gardenlet cannot hand its shoots over; "" when it can."""
    ready = get_condition(conditions_of(seed), GARDENLET_READY) or {}
    if ready.get("status") == "True":
        return ""
    return f"its condition {GARDENLET_READY} is {ready.get('status') or 'missing'}: {ready.get('message') or ''}".strip(
        ": "
    )


def migration_problems(shoot: Document, source_seed: Document, target_seed: Document) -> Sequence[str]:
    """Reasons that a shoot cannot migrate, each a part of a sentence; none when it can.

    Both seeds need a backup, which the control plane moves by. The internal domain must be the same, and the target
    must offer the source's default domain if the shoot's domain is below it: otherwise the cluster's domain names would
    change.
    """
    return [
        *(
            f"seed {name_of(seed)} has no spec.backup, and a control plane moves by its backup"
            for seed in (source_seed, target_seed)
            if seed.get("spec") is None or section(seed, "spec").get("backup") is None
        ),
        *_internal_domain_problems(source_seed, target_seed),
        *_default_domain_problems(shoot, source_seed, target_seed),
    ]


def _internal_domain_problems(source_seed: Document, target_seed: Document) -> Iterator[str]:
    here, there = _internal_domain(source_seed), _internal_domain(target_seed)
    if here != there:
        yield (
            f"its internal domain is {there or 'not set'}, "
            f"and that of seed {name_of(source_seed)} is {here or 'not set'}: they must be equal"
        )


def _default_domain_problems(shoot: Document, source_seed: Document, target_seed: Document) -> Iterator[str]:
    domain = section(shoot, "spec", "dns").get("domain")
    if not isinstance(domain, str) or not domain:
        return
    offered = _default_domains(target_seed)
    for default in _default_domains(source_seed):
        if domain.endswith(f".{default}") and default not in offered:
            yield f"it does not offer the default domain {default}, below which the shoot's domain {domain} lies"


def _internal_domain(seed: Document) -> str:
    return str(section(seed, "spec", "dns", "internal").get("domain") or "")


def _default_domains(seed: Document) -> Sequence[str]:
    defaults = section(seed, "spec", "dns").get("defaults")
    if not isinstance(defaults, list):
        return ()
    domains = [section({"default": default}, "default").get("domain") for default in defaults]  # pyright: ignore[reportUnknownVariableType]
    return [domain for domain in domains if isinstance(domain, str) and domain]
