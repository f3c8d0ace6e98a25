"""Final reports of shoots that are deleted or migrated away, repeated until they take effect."""

from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.clients.reporter import SeedReporter
from gardenbus.gardenlet.domain.operations import REPEAT_AFTER, ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord
from gardenbus.gardenlet.domain.shoot_status import handed_over, without_times


class _SentResult(NamedTuple):
    """A sent result: uid, fencing token, patch, and monotonic time."""

    uid: str
    fencing_token: FencingToken | None
    patch: Document
    at: float


class FinalReports:
    """Final reports of one seed's shoots."""

    def __init__(self, reporter: SeedReporter, clock: Clock) -> None:
        self._reporter = reporter
        self._clock = clock
        self._sent: dict[ShootName, _SentResult] = {}

    def report(self, observed: ObservedShoot, patch: Document, result: Document) -> None:
        """Report a patch that includes a result, and remember the result."""
        self._reporter.enqueue_status(observed.key, observed.uid, patch)
        now = self._clock.monotonic()
        self._sent[observed.full_name] = _SentResult(
            observed.uid, self._reporter.fencing_token, without_times(result), now
        )

    def repeat(self, observed: ObservedShoot, result: Document) -> float:
        """Report a result again when it differs or its repeat interval is over.

        Returns the seconds left of that interval; 0 when it was reported.
        """
        sent = self._sent.get(observed.full_name)
        if sent is not None and sent[:3] == (observed.uid, self._reporter.fencing_token, without_times(result)):
            left = sent.at + REPEAT_AFTER.total_seconds() - self._clock.monotonic()
            if left > 0:
                return left
        self.report(observed, result, result)
        return 0.0

    def forget(self, shoot: ShootName) -> None:
        """Drop the result of a shoot whose deletion is confirmed."""
        self._sent.pop(shoot, None)


def result_of(observed: ObservedShoot, record: ShootRecord) -> Document:
    """Status patch of a shoot without a control plane here: deleted, or handed over to the next seed."""
    if not record.has_left or record.run is None:
        return {"lastOperation": record.last_operation, "lastErrors": None}
    return handed_over(record.last_operation, seed_name=observed.spec_seed, generation=record.run.generation)
