"""Backend of one seed: the records of its shoots, and the maker that its configuration names.

A step's result and its completion are one write. A step that was cut may have taken effect without being recorded; it
is then repeated, which changes nothing (`port.Maker`).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.gardenlet.backend.extensions.maker import ExtensionsMaker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import (
    FencingToken,
    Kept,
    KubeconfigRequest,
    Maker,
    StaleFencingToken,
    StepFailed,
    StepRequest,
)
from gardenbus.gardenlet.domain.flows import DESTROYS, SAVED_AS
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord, with_step_done
from gardenbus.gardenlet.domain.shoot_state import lasting
from gardenbus.gardenlet.domain.shoot_status import technical_id

_ACQUIRE_RETRY_SECONDS = 0.05


class SeedBackend:
    """See the module."""

    def __init__(self, maker: Maker, files: LocalFiles, clock: Clock) -> None:
        self.maker = maker
        self._files = files
        self._clock = clock
        self.has_extensions = isinstance(maker, ExtensionsMaker)
        self._bastions = maker.bastions if isinstance(maker, ExtensionsMaker) else None
        self.backups = maker.backups if isinstance(maker, ExtensionsMaker) else None
        """Buckets in the seed's API; None where no extension makes them."""

    async def start(self) -> None:
        """Open the directory, and serve health probes."""
        self._files.open()
        await self.maker.start()

    async def stop(self) -> None:
        """Stop serving and close the directory."""
        await self.maker.stop()
        self._files.close()

    @property
    def health_url(self) -> str:
        """URL of the seed API server's `/healthz`."""
        return self.maker.health_url

    @property
    def kubernetes_version(self) -> str:
        """Kubernetes version of the seed."""
        return self.maker.kubernetes_version

    @property
    def healthy_message(self) -> str:
        """Message of conditions that are well; "" where the maker has looked, as Gardener's messages say."""
        return self.maker.healthy_message

    async def acquire(self, fencing_token: FencingToken) -> None:
        """Let only this token write from now on. Raises StaleFencingToken when a higher one was here before."""
        while not self._files.acquire(fencing_token):
            await self._clock.sleep(_ACQUIRE_RETRY_SECONDS)
        records = ((shoot, self._files.load(shoot)) for shoot in self._files.shoots())
        await self.maker.take_over({shoot: kept(record) for shoot, record in records if record is not None})

    def shoots(self) -> list[ShootName]:
        """Every shoot with a record."""
        return self._files.shoots()

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """The record of a shoot."""
        return self._files.load(shoot)

    def save(self, record: ShootRecord) -> None:
        """Save a record. Raises StaleFencingToken."""
        self._files.save(record)

    def forget(self, shoot: ShootName) -> None:
        """Remove the record of a shoot. Raises StaleFencingToken."""
        self._files.remove(shoot)

    async def perform(self, shoot: ShootName, step: str, observed: ObservedShoot | None) -> ShootRecord:
        """Perform a step of the current run, and record its completion with its result; returns the updated record.

        What a step that removes something leaves goes into `state`, for the seed that the shoot moves to.
        Raises StepFailed, StaleFencingToken.
        """
        before = self._required(shoot)
        assert before.run is not None
        request = StepRequest(
            shoot, before.uid, step, before.run.operation, observed, kept=kept(before), failures=before.failed
        )
        try:
            result = await self.maker.make(request)
        except StepFailed as error:
            if error.counted_as:
                self._count_failure(shoot, error.counted_as)
            raise
        record = self._required(shoot)
        if record.run is None or record.run.number != before.run.number:
            raise StaleFencingToken(f"{technical_id(*shoot)} is in another run by now")
        if step in record.run.done:
            return record
        resources, state = dict(record.resources), dict(record.state)
        if step not in DESTROYS:
            passing = {"operation": record.run.operation, "at": timestamp(self._clock.now())}
            resources[step] = {**passing, **result}
        elif result:
            state[SAVED_AS.get(step, step)] = result
        for removed in DESTROYS.get(step, ()):
            resources.pop(removed, None)
        record = msgspec.structs.replace(with_step_done(record, step), resources=resources, state=state)
        self._files.save(record)
        return record

    async def problems(self, observed: ObservedShoot) -> dict[str, str]:
        """Problems of a running shoot, by condition or constraint type; empty when healthy, or without a record."""
        record = self._files.load(observed.full_name)
        return await self.maker.problems(observed, {} if record is None else kept(record))

    async def admin_kubeconfig(self, record: ShootRecord, *, user: str, life: timedelta) -> Document:
        """Kubeconfig of a shoot for an administrator. Raises Conflict while there is nothing to be reached."""
        shoot = (record.namespace, record.name)
        return await self.maker.admin_kubeconfig(KubeconfigRequest(shoot, record.uid, kept(record), user, life))

    async def heartbeats(self) -> Mapping[str, Document]:
        """The Leases that extensions renew in the seed's API, by namespace; none without one. Raises Unavailable."""
        return await self.maker.heartbeats() if isinstance(self.maker, ExtensionsMaker) else {}

    @property
    def has_bastions(self) -> bool:
        """True if extensions make hosts of Bastions on this seed."""
        return self._bastions is not None

    async def reconcile_bastions(self, bastions: Sequence[Document]) -> Sequence[Document]:
        """Have the hosts of Bastions be there, or be gone; returns the patches of their status.

        Raises StaleFencingToken.
        """
        return await self._bastions.reconcile(bastions) if self._bastions is not None else [{} for _ in bastions]

    async def seed_problem(self) -> str | None:
        """Problem of the seed's own components, or None."""
        return await self.maker.seed_problem()

    async def ensure_bucket(self, name: str) -> None:
        """Make the backup bucket; idempotent. Raises StepFailed, StaleFencingToken."""
        await self.maker.ensure_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the backup bucket; idempotent. Raises StepFailed, StaleFencingToken."""
        await self.maker.delete_bucket(name)

    def _required(self, shoot: ShootName) -> ShootRecord:
        record = self._files.load(shoot)
        if record is None:
            raise StaleFencingToken(f"{technical_id(*shoot)} is gone")
        return record

    def _count_failure(self, shoot: ShootName, name: str) -> None:
        record = self._required(shoot)
        count = record.failed.get(name, 0) + 1
        self._files.save(msgspec.structs.replace(record, failed={**record.failed, name: count}))


def kept(record: ShootRecord) -> Kept:
    """The lasting part of a record: what it was restored from, and over it what was made here."""
    return {**record.state, **{step: lasting(result) for step, result in record.resources.items()}}
