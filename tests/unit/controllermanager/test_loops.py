"""What every loop has to have."""

from gardenbus.common.api.queues import queues_of
from gardenbus.controllermanager.app import LOOPS


def test_each_loop_has_its_row_in_the_table_of_queues_and_each_row_its_loop() -> None:
    assert [loop.name for loop in LOOPS] == [queue.name for queue in queues_of("controllermanager")]


def test_each_loop_follows_the_kind_that_it_reconciles() -> None:
    assert all(loop.kind in loop.follows for loop in LOOPS)
