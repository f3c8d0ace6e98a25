"""Schemas of messages without a view elsewhere: kinds handled as documents, bodies of requests and responses.

They are the contract; the schemas of `docs/reference` are generated from them. Other fields pass unchanged.
"""

from typing import Any, Literal

import msgspec

from gardenbus.common.api.views import ConditionView, LastOperation, Metadata, TypedView


class OwnerReference(TypedView, frozen=True):
    """Reference to an object's owner."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class WireMetadata(Metadata, frozen=True):
    """metadata, as it is sent."""

    resource_version: str = ""
    creation_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class LeaseSpec(TypedView, frozen=True):
    """Holder of a Lease; without one it was released."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str | None = None


class Lease(TypedView, frozen=True):
    """A gardenlet's Lease."""

    metadata: WireMetadata = WireMetadata()
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(TypedView, frozen=True):
    """The object that an Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(TypedView, frozen=True):
    """Something that happened to an object; the same again within ten minutes raises its count."""

    metadata: WireMetadata = WireMetadata()
    involved_object: ObjectReference = ObjectReference()
    type: Literal["Normal", "Warning"] = "Normal"
    reason: str = ""
    action: str = ""
    message: str = ""
    reporting_component: str = ""
    count: int = 1
    first_timestamp: str | None = None
    last_timestamp: str | None = None


class SavedResource(TypedView, frozen=True):
    """Result of a flow's step that a migration must keep."""

    name: str = ""
    type: str = ""
    data: dict[str, Any] | None = None


class ShootStateSpec(TypedView, frozen=True):
    """Results that a migration must keep."""

    gardener: tuple[SavedResource, ...] = ()


class ShootState(TypedView, frozen=True):
    """State of a shoot that moves with it to another seed."""

    metadata: WireMetadata = WireMetadata()
    spec: ShootStateSpec = ShootStateSpec()


class TemplateMetadata(TypedView, frozen=True):
    """metadata of what has no name yet."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class SeedTemplate(TypedView, frozen=True):
    """Metadata and spec of a Seed."""

    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] | None = None


class GardenletConfig(TypedView, frozen=True):
    """Gardenlet of a ManagedSeed; its configuration has the seed's template at `seedConfig`."""

    config: dict[str, Any] | None = None


class ShootReference(TypedView, frozen=True):
    """The shoot that is to become a seed, in the ManagedSeed's namespace."""

    name: str = ""


class ManagedSeedSpec(TypedView, frozen=True):
    """Shoot of a ManagedSeed, and the template of its Seed."""

    shoot: ShootReference | None = None
    gardenlet: GardenletConfig | None = None
    seed_template: SeedTemplate | None = None
    seed: SeedTemplate | None = None


class ObservedStatus(TypedView, frozen=True):
    """Observed generation and conditions."""

    observed_generation: int = 0
    conditions: tuple[ConditionView, ...] = ()


class ManagedSeed(TypedView, frozen=True):
    """A shoot that is a seed."""

    metadata: WireMetadata = WireMetadata()
    spec: ManagedSeedSpec = ManagedSeedSpec()
    status: ObservedStatus | None = None


class Template(TypedView, frozen=True):
    """Template with labels, annotations and spec."""

    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] | None = None


class ManagedSeedSetSpec(TypedView, frozen=True):
    """Replicas of a ManagedSeedSet, and their templates."""

    replicas: int | None = None
    selector: dict[str, Any] | None = None
    template: Template = Template()
    shoot_template: Template = Template()
    update_strategy: dict[str, Any] | None = None
    revision_history_limit: int | None = None


class ManagedSeedSetStatus(TypedView, frozen=True):
    """Replicas of a ManagedSeedSet by state, and the progress of an update."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    next_replica_number: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[ConditionView, ...] = ()


class ManagedSeedSet(TypedView, frozen=True):
    """Seeds that are alike, made of shoots."""

    metadata: WireMetadata = WireMetadata()
    spec: ManagedSeedSetSpec = ManagedSeedSetSpec()
    status: ManagedSeedSetStatus | None = None


class Manifest(TypedView, frozen=True):
    """An object of a kind that has no schema of its own here; it is stored and announced as it was sent."""

    metadata: WireMetadata = WireMetadata()


class ReportedStatus(TypedView, frozen=True):
    """Status in a report: merged into the stored one, conditions by type."""

    seed_name: str | None = None
    observed_generation: int = 0
    last_operation: LastOperation | None = None
    conditions: tuple[ConditionView, ...] = ()
    constraints: tuple[ConditionView, ...] = ()


class StatusReport(TypedView, frozen=True):
    """A report with the verb `status`."""

    status: ReportedStatus


class EventReport(TypedView, frozen=True):
    """A report with the verb `event`."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Reference(TypedView, frozen=True):
    """Reference to an object."""

    kind: str
    name: str
    namespace: str = ""


class RunningObject(TypedView, frozen=True):
    """Something that runs on a seed."""

    kind: Literal["shoot", "managedseed"]
    namespace: str
    name: str
    uid: str


class SeedInventory(TypedView, frozen=True):
    """All that a seed runs."""

    items: tuple[RunningObject, ...]


class FieldErrorDetail(TypedView, frozen=True):
    """An invalid field."""

    field: str
    message: str


class ErrorValue(TypedView, frozen=True):
    """Error of a request."""

    code: Literal[400, 403, 404, 409, 422, 500, 503]
    reason: str
    message: str
    details: tuple[FieldErrorDetail, ...] = ()


class ResponseBody(TypedView, frozen=True):
    """Response to a request: `result` of a success, or `error`."""

    ok: bool
    result: Any = None
    outcome: Any = None
    admission: Any = None
    """Effects of each admission plug-in, where they were requested."""
    warnings: tuple[str, ...] = ()
    error: ErrorValue | None = None


class ObjectList(TypedView, frozen=True):
    """The result of a list; with `continue` there is more."""

    items: tuple[dict[str, Any], ...]
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")
