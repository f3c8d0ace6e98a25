"""Whether a control plane may be moved between two seeds, beyond what any seed must be to take it. Pure.

Source: Gardener's admission plugin ShootValidator, for a shoot that is rescheduled.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gardenbus.common.resources.document import Document, section

READY_FOR_MIGRATION = "ReadyForMigration"
"""The constraint on a shoot by which its source learns that the destination can take the control plane."""

STATE_GENERATION = "shootstate.gardenbus.io/generation"
"""Ours, on a ShootState: the generation of the shoot at which it was saved. A destination takes no older one."""


def state_generation(shoot_state: Document) -> int:
    """The generation at which a ShootState was saved; 0 when it does not say."""
    written = section(shoot_state, "metadata", "annotations").get(STATE_GENERATION)
    return int(written) if isinstance(written, str) and written.isascii() and written.isdecimal() else 0


def state_owners(shoot_state: Document) -> frozenset[str]:
    """The uids of the shoots that a ShootState says it was saved of."""
    owners: Any = section(shoot_state, "metadata").get("ownerReferences") or []
    return frozenset(str(owner.get("uid")) for owner in owners if owner.get("kind") == "Shoot")


def is_older_state(given: Document, stored: Document) -> bool:
    """Whether a ShootState was saved of the same shoot before the one that is stored."""
    same_shoot = bool(state_owners(given) & state_owners(stored))
    return same_shoot and state_generation(given) < state_generation(stored)


def migration_problems(shoot: Document, source_seed: Document, target_seed: Document) -> Sequence[str]:
    """Why the shoot cannot move from one seed to the other, each a part of a sentence; none when it can.

    Both need a backup, since it is what the control plane moves by. The internal domain must be the same, and where the
    shoot's domain lies below a default domain of the source, the target must offer that one too: otherwise the names
    under which the cluster is known would change.
    """
    return [
        *(
            f"seed {_name(seed)} has no spec.backup, and a control plane moves by its backup"
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
            f"and that of seed {_name(source_seed)} is {here or 'not set'}: they must be equal"
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


def _name(seed: Document) -> str:
    return str(section(seed, "metadata").get("name") or "")
