"""The flows of a shoot: what is built, in which order, and how it is taken down again.

What each flow does is a graph below. A shoot without worker pools skips the steps that concern machines.

A migration takes the control plane down and leaves what the next one needs (machines, networks, infrastructure) alone:
it is released, not destroyed. `Leave` is the same for a shoot that is another seed's already; it is never reported.
"""

from typing import Literal

from gardenbus.gardenlet.decide.graph import Flow, Step

OperationType = Literal["Create", "Reconcile", "Delete", "Migrate", "Restore", "Leave"]

SAVE_STATE = "save-state"
"""The step that is done only once the garden has what the next seed needs."""

_BUILD = (
    Step("namespace", "Deploying Shoot namespace in Seed"),
    Step("secrets", "Deploying Shoot certificates and keys", ("namespace",)),
    Step("cloud-provider-secret", "Deploying cloud provider account secret", ("namespace",)),
    Step(
        "infrastructure", "Waiting until shoot infrastructure has been reconciled", ("secrets", "cloud-provider-secret")
    ),
    Step("dns-record", "Deploying DNS records of the API server", ("secrets",)),
    Step("etcd", "Waiting until main and event etcd report readiness", ("secrets",)),
    Step("control-plane", "Deploying Kubernetes API server and controllers", ("etcd", "infrastructure")),
    Step("wait-for-api-server", "Waiting until Kubernetes API server rolled out", ("control-plane", "dns-record")),
    Step("network", "Waiting until shoot network plugin has been reconciled", ("wait-for-api-server",)),
    Step(
        "machines", "Waiting until shoot worker nodes have been reconciled", ("wait-for-api-server", "infrastructure")
    ),
    Step("system-components", "Deploying system components", ("network", "machines")),
    Step("tunnel", "Waiting until the Kubernetes API server can connect to the Shoot workers", ("system-components",)),
)

_TEAR_DOWN = (
    Step("clean-up-cluster", "Cleaning kubernetes resources"),
    Step("delete-machines", "Waiting until shoot worker nodes have been terminated", ("clean-up-cluster",)),
    Step("delete-network", "Waiting until shoot network plugin has been destroyed", ("delete-machines",)),
    Step("delete-control-plane", "Deleting Kubernetes API server and controllers", ("delete-network",)),
    Step("delete-etcd", "Waiting until main and event etcd have been destroyed", ("delete-control-plane",)),
    Step("delete-infrastructure", "Waiting until shoot infrastructure has been destroyed", ("delete-machines",)),
    Step("delete-dns-record", "Destroying DNS records of the API server", ("clean-up-cluster",)),
    Step(
        "delete-namespace",
        "Deleting Shoot namespace in Seed",
        ("delete-etcd", "delete-infrastructure", "delete-dns-record"),
    ),
)

_MIGRATE = (
    Step("stop-control-plane", "Stopping Kubernetes API server and controllers"),
    Step(SAVE_STATE, "Persisting the state of the control plane", ("stop-control-plane",)),
    Step("release-infrastructure", "Releasing shoot infrastructure, network and worker nodes", (SAVE_STATE,)),
    Step("release-etcd", "Deleting main and event etcd", (SAVE_STATE,)),
    Step("release-namespace", "Deleting Shoot namespace in Seed", ("release-infrastructure", "release-etcd")),
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
"""By operation and whether the shoot has worker pools."""

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
"""Which steps' results a step of a deletion or migration takes away."""

CONTROL_PLANE = "control-plane"
"""The step whose result is a control plane that runs."""


def shoot_flow(operation: OperationType, *, has_workers: bool) -> Flow:
    """The flow of an operation on a shoot."""
    return FLOWS[operation, has_workers]
