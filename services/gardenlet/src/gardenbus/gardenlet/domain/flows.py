"""Flows of a shoot's operations: creation, reconciliation, deletion, migration and restoration.

A shoot without worker pools skips the steps that concern machines.
A deletion that is forced leaves out what may fail for ever: what is in the shoot, and of its infrastructure.
A migration takes the control plane down and releases what the next one needs (machines, networks, infrastructure)
without destroying it. `Leave` is the same for a shoot that is another seed's already; it is never reported.
"""

from collections.abc import Mapping
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

BACKUP_ENTRY_STEP = "backup-entry"
"""Step that waits until there is a place for the backups of etcd; what is there lives on after the shoot."""

EXTENSION_STATES = "extension-states"
"""Step whose result is the state of all extension objects, which goes into the ShootState in Gardener's form."""

_EXTENSIONS_BUILD = (
    FlowStep(
        BACKUP_ENTRY_STEP,
        "Waiting until the backup entry has been reconciled",
        ("secrets", "cloud-provider-secret"),
    ),
    FlowStep(
        "extensions-before",
        "Waiting until extension resources handled before kube-apiserver are ready",
        ("infrastructure",),
    ),
    FlowStep(
        "control-plane-extension",
        "Waiting until shoot control plane has been reconciled",
        ("wait-for-api-server", "infrastructure"),
    ),
    FlowStep(
        "extensions-after",
        "Waiting until extension resources handled after kube-apiserver are ready",
        ("wait-for-api-server",),
    ),
    FlowStep(
        "operating-system-config",
        "Waiting until operating system configurations for worker nodes have been reconciled",
        ("wait-for-api-server",),
    ),
    FlowStep("container-runtimes", "Waiting until container runtime resources are ready", ("wait-for-api-server",)),
    FlowStep(
        "extensions-after-workers",
        "Waiting until extension resources handled after workers are ready",
        ("machines", "extensions-after"),
    ),
    FlowStep(
        EXTENSION_STATES,
        "Persisting the state of extension resources",
        ("control-plane-extension", "extensions-after-workers", "container-runtimes", "network"),
    ),
)
_EXTENSIONS_BUILD_ORDER = {
    "etcd": (BACKUP_ENTRY_STEP,),
    "control-plane": ("extensions-before",),
    "machines": ("control-plane-extension", "operating-system-config"),
    "system-components": ("extensions-after", "container-runtimes"),
}

_EXTENSIONS_TEAR_DOWN = (
    FlowStep(
        "delete-operating-system-config",
        "Waiting until all operating system configs have been deleted",
        ("delete-machines",),
    ),
    FlowStep(
        "delete-container-runtimes", "Waiting until container runtime resources are deleted", ("delete-machines",)
    ),
    FlowStep(
        "delete-extensions-before",
        "Waiting until extensions that should be handled before kube-apiserver have been deleted",
        ("delete-network", "delete-operating-system-config", "delete-container-runtimes"),
    ),
    FlowStep(
        "delete-control-plane-extension",
        "Waiting until shoot control plane has been destroyed",
        ("delete-extensions-before",),
    ),
    FlowStep(
        "delete-extensions-after",
        "Waiting until extensions that should be handled after kube-apiserver have been deleted",
        ("delete-control-plane",),
    ),
)
_EXTENSIONS_TEAR_DOWN_ORDER = {
    "delete-dns-record": ("delete-control-plane",),
    "delete-control-plane": ("delete-control-plane-extension",),
    "delete-infrastructure": ("delete-control-plane-extension",),
    "delete-namespace": ("delete-extensions-after",),
}

_EXTENSIONS_MIGRATE = (
    FlowStep("migrate-extensions", "Waiting until extension resources have been migrated"),
    FlowStep(
        "migrate-control-plane",
        "Waiting until shoot control plane has been prepared for migration",
        ("migrate-extensions",),
    ),
    FlowStep(
        "migrate-backup-entry",
        "Waiting until the backup entry has been migrated to the destination seed",
        ("stop-control-plane",),
    ),
)
_EXTENSIONS_MIGRATE_ORDER = {
    "stop-control-plane": ("migrate-control-plane",),
    "release-namespace": ("migrate-backup-entry",),
}

_FORCED_EXTENSIONS = (
    FlowStep("force-delete-extensions", "Waiting until extension resources have been deleted"),
    FlowStep(
        "delete-managed-resources",
        "Waiting until managed resources have been deleted",
        ("force-delete-extensions",),
    ),
    FlowStep("delete-cluster", "Deleting Cluster resource", ("delete-managed-resources", "delete-dns-record")),
    FlowStep("delete-kubernetes-resources", "Deleting Kubernetes resources", ("delete-cluster", "delete-etcd")),
)
_FORCED_EXTENSIONS_ORDER = {
    "delete-control-plane": ("delete-cluster",),
    "delete-namespace": ("delete-kubernetes-resources",),
}

_WITH_MACHINES: tuple[str, ...] = ("machines", "tunnel")

_CREATION = Flow("Shoot cluster creation", _BUILD)
_RECONCILIATION = Flow("Shoot cluster reconciliation", _BUILD)
_RESTORATION = Flow("Shoot cluster restoration", _BUILD)
_DELETION = Flow("Shoot cluster deletion", _TEAR_DOWN)
_FORCED_DELETION = Flow("Shoot cluster force deletion", _TEAR_DOWN).without(
    "clean-up-cluster", "delete-machines", "delete-network", "delete-infrastructure"
)
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
    "delete-operating-system-config": ("operating-system-config",),
    "delete-container-runtimes": ("container-runtimes",),
    "delete-extensions-before": ("extensions-before", "extensions-after", "extensions-after-workers"),
    "delete-control-plane-extension": ("control-plane-extension",),
    "delete-extensions-after": (EXTENSION_STATES, BACKUP_ENTRY_STEP),
    "migrate-extensions": (
        EXTENSION_STATES,
        "extensions-before",
        "extensions-after",
        "extensions-after-workers",
        "operating-system-config",
        "container-runtimes",
    ),
    "migrate-control-plane": ("control-plane-extension",),
    "migrate-backup-entry": (BACKUP_ENTRY_STEP,),
    "force-delete-extensions": (
        "infrastructure",
        "network",
        "machines",
        "control-plane-extension",
        "extensions-before",
        "extensions-after",
        "extensions-after-workers",
        "operating-system-config",
        "container-runtimes",
        EXTENSION_STATES,
        BACKUP_ENTRY_STEP,
    ),
    "delete-managed-resources": (),
    "delete-cluster": ("system-components", "tunnel"),
    "delete-kubernetes-resources": (),
}
"""Steps of a deletion or migration, with the steps whose results they remove."""

CONTROL_PLANE = "control-plane"
"""Step whose result is a running control plane."""


EXTENSION_STEPS = frozenset(
    step.name
    for steps in (_EXTENSIONS_BUILD, _EXTENSIONS_TEAR_DOWN, _EXTENSIONS_MIGRATE, _FORCED_EXTENSIONS)
    for step in steps
)
"""Steps that a flow has on seeds where extensions act on their objects, and nowhere else."""

SAVED_AS = {"migrate-extensions": EXTENSION_STATES}
"""Steps of a migration whose result takes the place of another step's in the ShootState."""

_EXTENSIONS: Mapping[OperationType, tuple[tuple[FlowStep, ...], Mapping[str, tuple[str, ...]]]] = {
    "Create": (_EXTENSIONS_BUILD, _EXTENSIONS_BUILD_ORDER),
    "Reconcile": (_EXTENSIONS_BUILD, _EXTENSIONS_BUILD_ORDER),
    "Restore": (_EXTENSIONS_BUILD, _EXTENSIONS_BUILD_ORDER),
    "Delete": (_EXTENSIONS_TEAR_DOWN, _EXTENSIONS_TEAR_DOWN_ORDER),
    "Migrate": (_EXTENSIONS_MIGRATE, _EXTENSIONS_MIGRATE_ORDER),
    "Leave": (_EXTENSIONS_MIGRATE, _EXTENSIONS_MIGRATE_ORDER),
}
_FULL: Mapping[OperationType, Flow] = {
    "Create": _CREATION,
    "Reconcile": _RECONCILIATION,
    "Restore": _RESTORATION,
    "Delete": _DELETION,
    "Migrate": _MIGRATION,
    "Leave": _LEAVING,
}


def _with_extensions(operation: OperationType, *, has_workers: bool) -> Flow:
    more, order = _EXTENSIONS[operation]
    flow = _FULL[operation].extended(more, order)
    if has_workers:
        return flow
    return flow.without(*(name for name in _FULL[operation].steps if name not in FLOWS[operation, False].steps))


FLOWS_WITH_EXTENSIONS = {
    (operation, has_workers): _with_extensions(operation, has_workers=has_workers)
    for operation in _FULL
    for has_workers in (True, False)
}
"""Flows on seeds where extensions act on their objects."""


def shoot_flow(operation: OperationType, *, has_workers: bool, has_extensions: bool = False) -> Flow:
    """The flow of an operation on a shoot."""
    return (FLOWS_WITH_EXTENSIONS if has_extensions else FLOWS)[operation, has_workers]


def forced_deletion(*, has_extensions: bool = False) -> Flow:
    """The flow of a deletion that leaves out what fails: nothing in the shoot or of its infrastructure is removed."""
    if has_extensions:
        return _FORCED_DELETION.extended(_FORCED_EXTENSIONS, _FORCED_EXTENSIONS_ORDER)
    return _FORCED_DELETION
