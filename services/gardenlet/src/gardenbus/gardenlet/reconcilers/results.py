"""What was said last of shoots of which nothing is left here: said again until it has had its effect."""

from typing import NamedTuple

from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.gardenlet.backend.port import Fence, ShootName
from gardenbus.gardenlet.decide.operations import REPEAT_AFTER, ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord
from gardenbus.gardenlet.decide.status import handed_over, without_times
from gardenbus.gardenlet.reconcilers.reports import Reporter


class _Said(NamedTuple):
    """About which uid, under which fence, what, and when (monotonic)."""

    uid: str
    fence: Fence | None
    patch: Document
    at: float


class Results:
    """The results of one seed's shoots."""

    def __init__(self, reporter: Reporter, clock: Clock) -> None:
        self._reporter = reporter
        self._clock = clock
        self._said: dict[ShootName, _Said] = {}

    def say(self, told: ShootTold, patch: Document, result: Document) -> None:
        """Report a patch that holds a result, and note the result."""
        self._reporter.status(ObjectKey("shoot", told.namespace, told.name), told.uid, patch)
        now = self._clock.monotonic()
        self._said[told.namespace, told.name] = _Said(told.uid, self._reporter.fence, without_times(result), now)

    def say_again(self, told: ShootTold, result: Document) -> float:
        """Report a result that has had no effect yet: when it is another one, or was said a while ago.

        Answers how many seconds are left until then; 0: it was reported.
        """
        said = self._said.get((told.namespace, told.name))
        if said is not None and said[:3] == (told.uid, self._reporter.fence, without_times(result)):
            left = said.at + REPEAT_AFTER.total_seconds() - self._clock.monotonic()
            if left > 0:
                return left
        self.say(told, result, result)
        return 0.0

    def forget(self, shoot: ShootName) -> None:
        """The garden knows that it is gone."""
        self._said.pop(shoot, None)


def result_of(told: ShootTold, record: ShootRecord) -> Document:
    """What is said of a shoot of which nothing is left here: it is gone, or the next seed's."""
    if not record.has_left or record.run is None:
        return {"lastOperation": record.last_operation, "lastErrors": None}
    return handed_over(record.last_operation, seed_name=told.spec_seed, generation=record.run.generation)
