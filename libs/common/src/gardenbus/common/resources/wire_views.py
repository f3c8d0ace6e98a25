"""What travels on the bus and has no view elsewhere: kinds that are handled as documents, and the bodies of requests.

These structs say what may be relied on; the schemas of `docs/reference` are made of them. Nothing is lost by reading
less: fields that are not named here pass untouched.
"""

from typing import Any, Literal

import msgspec

from gardenbus.common.resources.views import ConditionView, LastOperation, Metadata, View


class OwnerReference(View, frozen=True):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class WireMetadata(Metadata, frozen=True):
    """metadata, as it is sent."""

    resource_version: str = ""
    creation_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class LeaseSpec(View, frozen=True):
    """Who holds a Lease; no holder means that it was released."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str | None = None


class Lease(View, frozen=True):
    """A gardenlet's heartbeat."""

    metadata: WireMetadata = WireMetadata()
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(View, frozen=True):
    """The object that an Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(View, frozen=True):
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


class SavedResource(View, frozen=True):
    """What one step of a flow left that must survive a move."""

    name: str = ""
    type: str = ""
    data: dict[str, Any] | None = None


class ShootStateSpec(View, frozen=True):
    """What of a shoot must survive a move."""

    gardener: tuple[SavedResource, ...] = ()


class ShootState(View, frozen=True):
    """What a shoot takes along to another seed."""

    metadata: WireMetadata = WireMetadata()
    spec: ShootStateSpec = ShootStateSpec()


class TemplateMetadata(View, frozen=True):
    """metadata of what has no name yet."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class SeedTemplate(View, frozen=True):
    """What a seed shall be like."""

    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] | None = None


class GardenletSettings(View, frozen=True):
    """The gardenlet to be started; its configuration has the seed's template at `seedConfig`."""

    config: dict[str, Any] | None = None


class ShootReference(View, frozen=True):
    """The shoot that is to become a seed, in the ManagedSeed's namespace."""

    name: str = ""


class ManagedSeedSpec(View, frozen=True):
    """Which shoot becomes a seed, and of what kind."""

    shoot: ShootReference | None = None
    gardenlet: GardenletSettings | None = None
    seed_template: SeedTemplate | None = None
    seed: SeedTemplate | None = None


class ObservedStatus(View, frozen=True):
    """Which generation was looked at, and what was found."""

    observed_generation: int = 0
    conditions: tuple[ConditionView, ...] = ()


class ManagedSeed(View, frozen=True):
    """A shoot that is a seed."""

    metadata: WireMetadata = WireMetadata()
    spec: ManagedSeedSpec = ManagedSeedSpec()
    status: ObservedStatus | None = None


class Template(View, frozen=True):
    """Labels, annotations and spec of what is made."""

    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] | None = None


class ManagedSeedSetSpec(View, frozen=True):
    """How many seeds there shall be, and what each is made of."""

    replicas: int | None = None
    selector: dict[str, Any] | None = None
    template: Template = Template()
    shoot_template: Template = Template()
    update_strategy: dict[str, Any] | None = None
    revision_history_limit: int | None = None


class ManagedSeedSetStatus(View, frozen=True):
    """How many there are, and how far an update has come."""

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


class ManagedSeedSet(View, frozen=True):
    """Seeds that are alike, made of shoots."""

    metadata: WireMetadata = WireMetadata()
    spec: ManagedSeedSetSpec = ManagedSeedSetSpec()
    status: ManagedSeedSetStatus | None = None


class Manifest(View, frozen=True):
    """An object of a kind that has no schema of its own here; it is stored and announced as it was sent."""

    metadata: WireMetadata = WireMetadata()


class ReportedStatus(View, frozen=True):
    """What is read of a status that is reported: merged into the stored one, conditions by their type."""

    seed_name: str | None = None
    observed_generation: int = 0
    last_operation: LastOperation | None = None
    conditions: tuple[ConditionView, ...] = ()
    constraints: tuple[ConditionView, ...] = ()


class StatusReport(View, frozen=True):
    """A report with the verb `status`."""

    status: ReportedStatus


class EventReport(View, frozen=True):
    """A report with the verb `event`."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Reference(View, frozen=True):
    """Which object is meant."""

    kind: str
    name: str
    namespace: str = ""


class ListRequest(View, frozen=True):
    """What to list; an empty body asks for everything."""

    limit: int = 500
    continue_token: str | None = msgspec.field(default=None, name="continue")
    label_selector: str = ""
    field_selector: str = ""


class MergePatch(View, frozen=True):
    """A JSON merge patch for an object that the subject does not name."""

    kind: str
    name: str
    patch: dict[str, Any]
    namespace: str = ""


class BindRequest(View, frozen=True):
    """Where a shoot shall be. `force` moves it without the seed that it is on, which is lost for good."""

    namespace: str
    name: str
    seed: str
    resource_version: str = ""
    force: bool = False


class ScaleRequest(View, frozen=True):
    """How many replicas a ManagedSeedSet shall have; without `replicas` it only asks."""

    name: str
    namespace: str = "garden"
    replicas: int | None = None
    resource_version: str = ""


class FieldFault(View, frozen=True):
    """What is wrong with one field."""

    field: str
    message: str


class ErrorValue(View, frozen=True):
    """Why a request was not carried out."""

    code: Literal[400, 403, 404, 409, 422, 500, 503]
    reason: str
    message: str
    details: tuple[FieldFault, ...] = ()


class Answer(View, frozen=True):
    """The answer to a request: `result` when it was carried out, `error` when not."""

    ok: bool
    result: Any = None
    outcome: Any = None
    warnings: tuple[str, ...] = ()
    error: ErrorValue | None = None


class ObjectList(View, frozen=True):
    """The result of a list; with `continue` there is more."""

    items: tuple[dict[str, Any], ...]
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")
