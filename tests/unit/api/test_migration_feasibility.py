"""Which seeds a control plane can be moved between."""

from typing import Any

import pytest

from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.migration_feasibility import (
    is_older_state,
    migration_problems,
    state_generation,
    state_owners,
)
from tests.support.builders import a_seed, a_shoot

BACKUP = {"provider": "aws"}


def a_safe_seed(name: str, **spec: Any) -> Document:
    return a_seed(name, spec={"backup": BACKUP, **spec})


def test_seeds_with_backups_and_the_same_domains_will_do() -> None:
    dns = {"internal": {"domain": "internal.example"}, "defaults": [{"domain": "gardens.example"}]}
    shoot = a_shoot(spec={"dns": {"domain": "apollo.dev.gardens.example"}})
    assert not migration_problems(shoot, a_safe_seed("a", dns=dns), a_safe_seed("b", dns=dns))
    assert not migration_problems(a_shoot(), a_safe_seed("a"), a_safe_seed("b"))


@pytest.mark.parametrize(("source", "target"), [(a_seed("a"), a_safe_seed("b")), (a_safe_seed("b"), a_seed("a"))])
def test_both_need_a_backup(source: Document, target: Document) -> None:
    (problem,) = migration_problems(a_shoot(), source, target)
    assert problem.startswith("seed a has no spec.backup")


def test_the_internal_domain_must_stay() -> None:
    here = a_safe_seed("a", dns={"internal": {"domain": "one.example"}})
    (problem,) = migration_problems(a_shoot(), here, a_safe_seed("b"))
    assert "internal domain is not set" in problem
    assert "seed a is one.example" in problem


def test_the_default_domain_in_use_must_be_offered() -> None:
    here = a_safe_seed("a", dns={"defaults": [{"domain": "old.example"}, {"domain": "used.example"}]})
    there = a_safe_seed("b", dns={"defaults": [{"domain": "other.example"}]})
    assert not migration_problems(a_shoot(), here, there)
    assert not migration_problems(a_shoot(spec={"dns": {"domain": "my.own"}}), here, there)
    (problem,) = migration_problems(a_shoot(spec={"dns": {"domain": "apollo.dev.used.example"}}), here, there)
    assert "used.example" in problem


def test_what_is_malformed_is_read_as_missing() -> None:
    seed: Document = {"metadata": {"name": "x"}, "spec": {"backup": {}, "dns": {"defaults": ["a", {"domain": 5}]}}}
    assert not migration_problems(a_shoot(spec={"dns": {"domain": "a.b"}}), seed, seed)


def a_state(generation: str | None, uid: str = "u1", **more: str) -> Document:
    annotations = more if generation is None else {"shootstate.gardenbus.io/generation": generation, **more}
    return {
        "kind": "ShootState",
        "metadata": {"annotations": annotations, "ownerReferences": [{"kind": "Shoot", "uid": uid}]},
    }


def test_a_state_says_when_it_was_saved_and_of_whom() -> None:
    assert state_generation(a_state("12")) == 12
    assert state_generation(a_state("soon")) == state_generation(a_state(None)) == 0
    assert state_owners(a_state("1")) == {"u1"}


def test_only_a_state_of_the_same_shoot_can_be_older() -> None:
    assert is_older_state(a_state("3"), a_state("4"))
    assert not is_older_state(a_state("4"), a_state("4"))
    assert not is_older_state(a_state("3", "u2"), a_state("4"))


def test_a_state_whose_deletion_is_confirmed_is_newer_than_the_same_without() -> None:
    confirmed = a_state("4", **{CONFIRMATION: "true"})
    assert is_older_state(a_state("4"), confirmed)
    assert not is_older_state(confirmed, a_state("4"))
    assert not is_older_state(confirmed, confirmed)
    assert not is_older_state(a_state("5"), confirmed)
