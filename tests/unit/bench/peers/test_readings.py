"""Readings of turns beside a peer."""

from gardenbus.bench.comparison import MEASURER, Measurement
from gardenbus.bench.peers.readings import costs


def test_the_cost_of_a_turn_has_no_part_of_the_process_that_measures() -> None:
    measurement = Measurement(100)
    measurement.seconds = 2.0
    measurement.cpu_s = {"redis": 0.5, "scheduler": 0.25, MEASURER: 3.0}
    assert costs(measurement) == {"units": 100, "seconds": 2.0, "redis": 0.5, "scheduler": 0.25}
