"""Flows of a shoot's operations: creation, reconciliation, deletion, migration and restoration.

A shoot without worker pools skips the steps that concern machines.
A migration takes the control plane down and releases what the next one needs (machines, networks, infrastructure)
without destroying it. `Leave` is the same for a shoot that is another seed's already; it is never reported.
"""

from typing import Literal

from gardenbus.gardenlet.domain.flow_graph import Flow, FlowStep

OperationType = Literal["Create", "Reconcile", "Delete", "Migrate", "Restore", "Leave"]

SAVE_STATE = "save-state"
"""Step that is done only once the garden has the state that the next seed needs."""

_BUILD = (
    FlowStep("namespace", "Deploying Shoot namespace in Seed"),
    FlowStep("secrets", "Deploying Shoot certificates and keys", ("namespace",)),
    FlowStep("cloud-provider-secret", "Deploying cloud provider account secret", ("namespace",)),
    FlowStep(
        "infrastructure", "Waiting until shoot infrastructure has been reconciled", ("secrets", "cloud-provider-secret")
    ),
    FlowStep("dns-record", "Deploying DNS records of the API server", ("secrets",)),
    FlowStep("etcd", "Waiting until main and event etcd report readiness", ("secrets",)),
    FlowStep("control-plane", "Deploying Kubernetes API server and controllers", ("etcd", "infrastructure")),
    FlowStep("wait-for-api-server", "Waiting until Kubernetes API server rolled out", ("control-plane", "dns-record")),
    FlowStep("network", "Waiting until shoot network plugin has been reconciled", ("wait-for-api-server",)),
    FlowStep(
        "machines", "Waiting until shoot worker nodes have been reconciled", ("wait-for-api-server", "infrastructure")
    ),
    FlowStep("system-components", "Deploying system components", ("network", "machines")),
    FlowStep(
        "tunnel", "Waiting until the Kubernetes API server can connect to the Shoot workers", ("system-components",)
    ),
)

_TEAR_DOWN = (
    FlowStep("clean-up-cluster", "Cleaning kubernetes resources"),
    FlowStep("delete-machines", "Waiting until shoot worker nodes have been terminated", ("clean-up-cluster",)),
    FlowStep("delete-network", "Waiting until shoot network plugin has been destroyed", ("delete-machines",)),
    FlowStep("delete-control-plane", "Deleting Kubernetes API server and controllers", ("delete-network",)),
    FlowStep("delete-etcd", "Waiting until main and event etcd have been destroyed", ("delete-control-plane",)),
    FlowStep("delete-infrastructure", "Waiting until shoot infrastructure has been destroyed", ("delete-machines",)),
    FlowStep("delete-dns-record", "Destroying DNS records of the API server", ("clean-up-cluster",)),
    FlowStep(
        "delete-namespace",
        "Deleting Shoot namespace in Seed",
        ("delete-etcd", "delete-infrastructure", "delete-dns-record"),
    ),
)

_MIGRATE = (
    FlowStep("stop-control-plane", "Stopping Kubernetes API server and controllers"),
    FlowStep(SAVE_STATE, "Persisting the state of the control plane", ("stop-control-plane",)),
    FlowStep("release-infrastructure", "Releasing shoot infrastructure, network and worker nodes", (SAVE_STATE,)),
    FlowStep("release-etcd", "Deleting main and event etcd", (SAVE_STATE,)),
    FlowStep("release-namespace", "Deleting Shoot namespace in Seed", ("release-infrastructure", "release-etcd")),
)

_WITH_MACHINES: tuple[str, ...] = ("machines", "tunnel")

_CREATION = Flow("Shoot cluster creation", _BUILD)
_RECONCILIATION = Flow("Shoot cluster reconciliation", _BUILD)
_RESTORATION = Flow("Shoot cluster restoration", _BUILD)
_DELETION = Flow("Shoot cluster deletion", _TEAR_DOWN)
_MIGRATION = Flow("Shoot cluster preparation for migration", _MIGRATE)
_LEAVING = Flow("Shoot cluster release", _MIGRATE).without(SAVE_STATE)

FLOWS = {
    ("Create", True): _CREATION,
    ("Create", False): _CREATION.without(*_WITH_MACHINES),
    ("Reconcile", True): _RECONCILIATION,
    ("Reconcile", False): _RECONCILIATION.without(*_WITH_MACHINES),
    ("Restore", True): _RESTORATION,
    ("Restore", False): _RESTORATION.without(*_WITH_MACHINES),
    ("Migrate", True): _MIGRATION,
    ("Migrate", False): _MIGRATION,
    ("Leave", True): _LEAVING,
    ("Leave", False): _LEAVING,
    ("Delete", True): _DELETION,
    ("Delete", False): _DELETION.without("delete-machines"),
}
"""Flows by operation and whether the shoot has worker pools."""

DESTROYS = {
    "clean-up-cluster": ("system-components", "tunnel"),
    "delete-machines": ("machines",),
    "delete-network": ("network",),
    "delete-control-plane": ("control-plane", "wait-for-api-server"),
    "delete-etcd": ("etcd",),
    "delete-infrastructure": ("infrastructure",),
    "delete-dns-record": ("dns-record",),
    "delete-namespace": ("namespace", "secrets", "cloud-provider-secret"),
    "stop-control-plane": ("control-plane", "wait-for-api-server", "system-components", "tunnel"),
    SAVE_STATE: (),
    "release-infrastructure": ("infrastructure", "network", "machines", "dns-record"),
    "release-etcd": ("etcd",),
    "release-namespace": ("namespace", "secrets", "cloud-provider-secret"),
}
"""Steps of a deletion or migration, with the steps whose results they remove."""

CONTROL_PLANE = "control-plane"
"""Step whose result is a running control plane."""


def shoot_flow(operation: OperationType, *, has_workers: bool) -> Flow:
    """The flow of an operation on a shoot."""
    return FLOWS[operation, has_workers]
