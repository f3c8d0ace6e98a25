"""Census of shoots: how many are in which state, and those that have been busy the longest; from the store's index."""

from typing import Any

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.garden.busy_shoots import SLOWEST, BusyShoot, busy_shoot, slowest
from gardenbus.common.ports.store import Store


async def shoot_census(store: Store) -> Any:
    """Count shoots: `{"states", "busy", "slowest", "uncounted"}`. Raises Unavailable.

    `uncounted` shoots were stored by an older version; the relay is putting them into the index.
    """
    counts = await store.shoot_state_counts(SLOWEST)
    found = await store.get_many_partial(counts.longest)
    return {
        "states": counts.states,
        "busy": counts.busy,
        "slowest": slowest(_row(shoot) for shoot in found if shoot),
        "uncounted": counts.uncounted,
    }


def _row(shoot: StoredObject) -> BusyShoot:
    return busy_shoot(
        shoot.key.namespace,
        shoot.key.name,
        seed=shoot.parts.seed_name,
        operation=section(shoot.document(), "status", "lastOperation"),
        created_at=shoot.created_at,
        deleting_at=shoot.deleting_at,
    )
