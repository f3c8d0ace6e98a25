"""Table of the work queues: one row each, with its consumer, what its messages are about, and what enqueues it.

The permission table of NATS, the consumers of services, their dead letters and the reference are made of it. A row
names no reconciler: the service has one of the queue's name.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Source = Literal["store", "informer"]
"""Source of the work.

| source | enqueued by |
|---|---|
| `store` | the write that makes the work, in its own function call; the relay publishes it |
| `informer` | the consumer's own informer, when something changes that its reconciler depends on |
"""


class Queue(NamedTuple):
    """Row of the table."""

    name: str
    """Controller: in the subject `garden.queue.<name>.…`, of the durable consumer, and the metrics' label."""

    consumer: str
    """Service."""

    kind: str
    """Of the objects that messages are about, as in `ObjectKey.kind`; "": they are about no object."""

    task: str
    """Effect of its reconciler."""

    source: Source = "informer"
    namespaced_kind: str = ""
    """Of the objects in namespaces, where it differs."""

    is_per_scheduler: bool = False
    """True where each `spec.schedulerName` has a queue: the subject has it behind the name."""

    def kind_in(self, namespace: str) -> str:
        """Kind of the objects in a namespace ("": cluster-scoped)."""
        return self.namespaced_kind if namespace and self.namespaced_kind else self.kind

    def consumer_of(self, scheduler_name: str, band: str = "") -> str:
        """Name of a scheduler's durable consumer, in a band ("": the middle one)."""
        return f"{self.name}{band}-{scheduler_name}"


def _loop(name: str, kind: str, task: str) -> Queue:
    return Queue(name, "controllermanager", kind, task)


def _fleet(name: str, kind: str, task: str) -> Queue:
    """A queue of the placement service, for a kind that exists for clusters and for namespaces."""
    return Queue(name, "placement", f"cluster{kind}", task, namespaced_kind=kind)


_ROWS = (
    Queue("scheduling", "scheduler", "shoot", "binds shoots without a seed", "store", is_per_scheduler=True),
    Queue("waking", "scheduler", "", "enqueues unschedulable shoots again", "store", is_per_scheduler=True),
    Queue("migration", "lifecycle", "shoot", "follows shoots that move to another seed", "store"),
    Queue("garbage", "apiserver", "", "deletes dependents of an owner that is gone", "store"),
    Queue("managedseedset", "managedseedset", "managedseedset", "creates and deletes replicas"),
    Queue("autoscaler", "autoscaler", "seedautoscaler", "scales sets"),
    _loop("project", "project", "keeps a Project's namespace and roles"),
    _loop("projectactivity", "project", "records when a Project was last used"),
    _loop("staleproject", "project", "marks and deletes unused Projects"),
    _loop("cloudprofile", "cloudprofile", "protects CloudProfiles that are in use"),
    _loop("namespacedcloudprofile", "namespacedcloudprofile", "protects NamespacedCloudProfiles that are in use"),
    _loop("exposureclass", "exposureclass", "protects ExposureClasses that are in use"),
    _loop("quota", "quota", "protects Quotas that are in use"),
    _loop("secretbinding", "secretbinding", "protects SecretBindings that are in use"),
    _loop("credentialsbinding", "credentialsbinding", "protects CredentialsBindings that are in use"),
    _loop("secret", "secret", "protects Secrets that bindings name"),
    _loop("internalsecret", "internalsecret", "protects InternalSecrets that bindings name"),
    _loop("workloadidentity", "workloadidentity", "protects WorkloadIdentities that bindings name"),
    _loop("shoothibernation", "shoot", "hibernates and wakes up shoots by their schedules"),
    _loop("shootmaintenance", "shoot", "updates shoots in their maintenance windows"),
    _loop("shootquota", "shoot", "deletes shoots whose Quota limits their life"),
    _loop("shootretry", "shoot", "retries failed shoots"),
    _loop("shootreference", "shoot", "protects a Shoot and what it references"),
    _loop("seedreference", "seed", "protects a Seed and what it references"),
    _loop("shootreferencesecret", "secret", "releases Secrets that are no longer referenced"),
    _loop("shootreferenceconfigmap", "configmap", "releases ConfigMaps that are no longer referenced"),
    _loop(
        "shootreferenceworkloadidentity",
        "workloadidentity",
        "releases WorkloadIdentities that are no longer referenced",
    ),
    _loop("bastion", "bastion", "deletes Bastions that have expired"),
    _loop("controllerregistration", "controllerregistration", "protects ControllerRegistrations that are in use"),
    _loop("controllerinstallation", "seed", "installs the extensions that a Seed needs"),
    _loop("seedextensionscheck", "seed", "sets a Seed's condition ExtensionsReady"),
    _loop("seedsecrets", "seed", "copies the garden's Secrets for a Seed"),
    _loop("plant", "plant", "checks the clusters of Plants"),
    _loop("gardenerinfo", "configmap", "publishes the landscape's version and identity"),
    _fleet("placement", "resourceplacement", "takes snapshots of policy and resources"),
    _fleet("placementscheduling", "resourceplacement", "decides on clusters"),
    _fleet("placementstatus", "resourceplacement", "writes the status"),
    _fleet("placementrollout", "resourceplacement", "rolls out, within its budgets"),
    Queue("placementeviction", "placement", "clusterresourceplacementeviction", "evicts from clusters"),
    _fleet("placementwork", "resourcebinding", "makes Works"),
    _fleet("placementoverride", "resourceoverride", "takes snapshots of overrides"),
)

QUEUES: Mapping[str, Queue] = {row.name: row for row in _ROWS}
"""Rows by name, controllers of one service in the order in which it starts them."""


def queues_of(service: str) -> Sequence[Queue]:
    """The queues that a service consumes."""
    return [row for row in QUEUES.values() if row.consumer == service]
