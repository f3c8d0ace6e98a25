"""Kinds of extension objects, and how long a gardenlet waits for each.

Source: Gardener's `pkg/apis/extensions/v1alpha1` and the waits in `pkg/component/extensions`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.api.document import Document

GROUP = "extensions.gardener.cloud"
API_VERSION = f"{GROUP}/v1alpha1"
CLUSTERS = f"/apis/{API_VERSION}/clusters"


class WaitLimits(NamedTuple):
    """Limits of a wait, in seconds."""

    interval: float
    """Longest time between two requests."""

    severe: float
    """Time that an object may have a `status.lastError`."""

    timeout: float


class ExtensionObject(NamedTuple):
    """An extension object as the gardenlet wants it to be."""

    kind: str
    namespace: str
    name: str
    spec: Document
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    timeout_seconds: float = 0.0
    """Limit of the wait, where it is not that of the kind."""


PLURALS: Mapping[str, str] = {
    "BackupBucket": "backupbuckets",
    "BackupEntry": "backupentries",
    "Bastion": "bastions",
    "DNSRecord": "dnsrecords",
    "Infrastructure": "infrastructures",
    "ControlPlane": "controlplanes",
    "Network": "networks",
    "OperatingSystemConfig": "operatingsystemconfigs",
    "Worker": "workers",
    "ContainerRuntime": "containerruntimes",
    "Extension": "extensions",
}
"""Kinds that the gardenlet acts on, with their collections; all but the first two are in namespaces of shoots."""

WORKERLESS = frozenset({"DNSRecord", "Extension"})
"""Kinds that a shoot without workers has, too."""

WAITS: Mapping[str, WaitLimits] = {
    "DNSRecord": WaitLimits(5, 15, 120),
    "Infrastructure": WaitLimits(10, 180, 600),
    "ControlPlane": WaitLimits(5, 30, 180),
    "Network": WaitLimits(5, 30, 180),
    "OperatingSystemConfig": WaitLimits(5, 30, 180),
    "Worker": WaitLimits(5, 30, 600),
    "ContainerRuntime": WaitLimits(5, 30, 180),
    "Extension": WaitLimits(5, 30, 180),
}
"""Kinds that are parts of shoots, with the limits of their waits. Bastions and what backups are in are none."""

BACKUP_ENTRY_WAIT = WaitLimits(5, 30, 600)
"""Limits of the wait for a BackupEntry."""

FORCED_WAIT = WaitLimits(5, 300, 300)
"""Limits of a deletion that is forced: errors of what came before it are no matter."""


def collection(kind: str, namespace: str) -> str:
    """Path of all objects of a kind in a namespace; "" for those of kinds without namespaces."""
    return f"/apis/{API_VERSION}/{f'namespaces/{namespace}/' if namespace else ''}{PLURALS[kind]}"


def path_of(kind: str, namespace: str, name: str) -> str:
    """Path of an object."""
    return f"{collection(kind, namespace)}/{name}"
