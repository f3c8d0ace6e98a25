"""Record of one shoot: the run of its flow and the status last reported.

The backend stores it together with the results of the steps, so that a step and its completion are one write.
"""

from datetime import datetime
from typing import Any

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode, section
from gardenbus.gardenlet.domain.flow_graph import Flow
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE, OperationType, forced_deletion, shoot_flow

_decode = json_decoder(dict[str, Any])

HIBERNATED = "hibernated"
"""Field of the control plane's result, from a maker that has put it to sleep."""

NETWORKING = "networking"
"""Field of the infrastructure's result, from a maker that reports networks: the Shoot's `status.networking`."""

ShootName = tuple[str, str]
"""Namespace and name of a shoot."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a flow: `number` counts the runs of this shoot, `done` are the completed steps.

    `is_forced`: a deletion that leaves out what fails.
    """

    operation: OperationType
    generation: int
    number: int
    done: tuple[str, ...] = ()
    is_forced: bool = False


class ShootRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that is stored of a shoot.

    `resources` are the results of the steps (step → result and time), `applied` counts how often each step took
    effect, `failed` how often each injected failure occurred. `retry_at` is when a failed run may continue, `attempts`
    how often it failed. `state` is what a migration takes along (on the source) or brings (on the destination), by
    step. `state_of_generation`: a restoration needs a state saved at this generation or later. `manifest`: the Shoot
    as last observed, without status, as JSON. `has_extensions`: extensions take part in the current run.
    """

    namespace: str
    name: str
    uid: str
    has_workers: bool = True
    has_extensions: bool = False
    run: Run | None = None
    status: Document = {}
    attempts: int = 0
    retry_at: datetime | None = None
    resources: dict[str, dict[str, Any]] = {}
    applied: dict[str, int] = {}
    failed: dict[str, int] = {}
    state: dict[str, Document] = {}
    state_of_generation: int = 0
    manifest: str = ""

    @property
    def last_operation(self) -> Document:
        """status.lastOperation as last reported; empty before the first."""
        operation: Document = self.status.get("lastOperation") or {}
        return operation

    @property
    def is_hibernated(self) -> bool:
        """True if the last operation put the control plane to sleep: nobody can look into it."""
        return self.resources.get(CONTROL_PLANE, {}).get(HIBERNATED) is True

    @property
    def flow(self) -> Flow:
        """The flow of the current run."""
        assert self.run is not None
        return self.flow_of(self.run)

    def flow_of(self, run: Run) -> Flow:
        """The flow of a run on this shoot."""
        if run.is_forced:
            return forced_deletion(has_extensions=self.has_extensions)
        return shoot_flow(run.operation, has_workers=self.has_workers, has_extensions=self.has_extensions)

    @property
    def networking(self) -> Document | None:
        """`status.networking`; None where nothing reports it."""
        return self.resources.get("infrastructure", {}).get(NETWORKING)

    @property
    def is_torn_down(self) -> bool:
        """True if nothing of the shoot is left but this record."""
        return self.last_operation.get("type") == "Delete" and self.last_operation.get("state") == "Succeeded"

    @property
    def has_left(self) -> bool:
        """True if the migration to another seed is complete here: no control plane runs any more."""
        return self.last_operation.get("type") == "Migrate" and self.last_operation.get("state") == "Succeeded"

    @property
    def is_leaving(self) -> bool:
        """True if a migration to another seed has begun here: it is completed, whatever changes since."""
        return self.run is not None and self.run.operation == "Migrate" and not self.has_left

    @property
    def is_half_gone(self) -> bool:
        """True if an unreported teardown has begun: the shoot seemed deleted or another seed's."""
        return self.run is not None and (
            self.run.operation == "Leave" or (self.run.operation == "Delete" and not self.run.generation)
        )

    @property
    def is_reconciled(self) -> bool:
        """True if the last operation built the shoot and succeeded."""
        built = self.last_operation.get("type") not in {"Delete", "Migrate"}
        return built and self.last_operation.get("state") == "Succeeded"

    @property
    def was_created(self) -> bool:
        """True if the creation (or the restoration on this seed) succeeded once."""
        return bool(self.last_operation) and (
            self.last_operation.get("type") not in {"Create", "Restore"}
            or self.last_operation.get("state") == "Succeeded"
        )


def manifest_text(manifest: Document) -> str:
    """A Shoot as records keep it: without its status and the version of the store."""
    metadata = {name: value for name, value in section(manifest, "metadata").items() if name != "resourceVersion"}
    kept = {name: value for name, value in manifest.items() if name != "status"}
    return encode({**kept, "metadata": metadata}).decode()


def held_manifest(record: ShootRecord) -> Document:
    """The Shoot as this record holds it, with its status; empty unless its control plane runs here."""
    if not record.manifest or record.is_half_gone or record.is_torn_down or record.has_left:
        return {}
    return {**_decode(record.manifest), "status": record.status}


def spec_of(record: ShootRecord) -> Document:
    """The spec of a Shoot as this record holds it; empty when it holds none."""
    return section(_decode(record.manifest), "spec") if record.manifest else {}


def with_status(record: ShootRecord, patch: Document) -> ShootRecord:
    """The record with a status patch merged: fields are replaced, None removes one."""
    status = {name: value for name, value in (record.status | patch).items() if value is not None}
    return msgspec.structs.replace(record, status=status)


def with_step_done(record: ShootRecord, step: str) -> ShootRecord:
    """The record with a step of the current run completed."""
    assert record.run is not None
    run = msgspec.structs.replace(record.run, done=(*record.run.done, step))
    return msgspec.structs.replace(record, run=run, applied={**record.applied, step: record.applied.get(step, 0) + 1})
