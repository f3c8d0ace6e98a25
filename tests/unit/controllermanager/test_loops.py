"""What every loop has to have."""

from gardenbus.common.api.identity.permissions import CONTROLLER_MANAGERS_QUEUES
from gardenbus.controllermanager.app import LOOPS


def test_the_permission_table_names_the_queues_of_all_loops() -> None:
    assert tuple(loop.name for loop in LOOPS) == CONTROLLER_MANAGERS_QUEUES


def test_each_loop_follows_the_kind_that_it_reconciles() -> None:
    assert all(loop.kind in loop.follows for loop in LOOPS)
