"""A set does nothing while the store recovers, says so, and goes on by itself."""

from tests.support.memory.recovering import begin_recovery
from tests.support.seed_sets import SeedGarden, a_managed_seed_set
from tests.unit.managedseedset.test_scale_in import scale


def test_a_set_neither_grows_nor_shrinks_while_the_store_recovers() -> None:
    garden = SeedGarden()
    garden.applied(a_managed_seed_set(replicas=2))
    garden.run_until_stable()
    before = garden.managed_seeds()
    outbox = garden.drive(begin_recovery(garden.store))
    scale(garden, 0)
    garden.reconcile_once()
    assert garden.managed_seeds() == before
    assert garden.condition("StoreRecovering")["status"] == "True"
    assert "StoreRecovering" in garden.reasons()

    recovery = garden.drive(garden.store.recovery())
    assert recovery is not None
    for seed in garden.seed_names():
        garden.drive(garden.store.take_inventory(seed, recovery.recovery_id, []))
    assert garden.drive(outbox.advance_recovery(recovery.recovery_id, announces=False)).has_ended
    garden.run_until_stable()
    assert garden.managed_seeds() == []
    assert garden.condition("StoreRecovering")["status"] == "False"
