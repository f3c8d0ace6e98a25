"""What others do for extensions that are installed on a seed: their heartbeats, and controllermanager's part."""

from datetime import UTC, datetime

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import CORE
from tests.support.gardenlets import Garden

FINALIZER = "core.gardener.cloud/controllerregistration"
SEED = ObjectKey("seed", "", "aws-eu1")


def an_installation(name: str, seed: str = "aws-eu1") -> Document:
    """An installation of the registration `everything`."""
    spec = {"registrationRef": {"name": "everything"}, "seedRef": {"name": seed}}
    return {"apiVersion": CORE, "kind": "ControllerInstallation", "metadata": {"name": name}, "spec": spec}


def a_heartbeat(installation: str) -> Document:
    """The Lease of an installation's controller, renewed now."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    metadata = {"name": "gardener-extension-heartbeat", "namespace": f"extension-{installation}"}
    spec = {"holderIdentity": "everything", "leaseDurationSeconds": 30, "renewTime": now}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def hold(garden: Garden, ready: str) -> None:
    """Do controllermanager's part: the finalizer, and a condition that says that something has changed."""
    stored = await garden.store.get(SEED)
    assert stored is not None
    seed = stored.document()
    seed["metadata"]["finalizers"] = sorted({*seed["metadata"]["finalizers"], FINALIZER})
    others = [each for each in conditions_of(seed) if each["type"] != "ExtensionsReady"]
    seed["status"]["conditions"] = [*others, {"type": "ExtensionsReady", "status": "False", "message": ready}]
    await garden.store.update(stored, seed)
