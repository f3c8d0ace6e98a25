"""A gardenlet reports the conditions of its seed's installations, and a shoot waits for those that it needs."""

from datetime import UTC, datetime
from typing import Any

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import CORE
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.registrations import a_registration

FINALIZER = "core.gardener.cloud/controllerregistration"
SEED = ObjectKey("seed", "", "aws-eu1")
EVERYTHING = [
    *[(kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")],
    ("Network", "calico"),
]


def an_installation(name: str, seed: str = "aws-eu1") -> Document:
    spec = {"registrationRef": {"name": "everything"}, "seedRef": {"name": seed}}
    return {"apiVersion": CORE, "kind": "ControllerInstallation", "metadata": {"name": name}, "spec": spec}


def a_heartbeat(installation: str) -> Document:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
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


async def conditions(garden: Garden, name: str) -> dict[str, str]:
    stored = await garden.store.get(ObjectKey("controllerinstallation", "", name))
    assert stored is not None
    return {each["type"]: each["status"] for each in conditions_of(stored.document())}


async def test_a_shoot_waits_for_the_heartbeat_of_what_it_needs(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.until_ready()
    await garden.store.create(a_registration("everything", *EVERYTHING))
    await garden.store.create(an_installation("everything-1"))
    await garden.store.create(an_installation("of-another", "elsewhere"))
    await hold(garden, "one")

    async def is_reported() -> None:
        assert (await conditions(garden, "everything-1")).get("Installed") == "False"

    await eventually(is_reported)
    await garden.place()

    async def waits() -> None:
        shoot = await garden.shoot("apollo")
        operation: Any = section(shoot, "status", "lastOperation")
        assert (operation.get("type"), operation.get("state")) == ("Create", "Error")
        assert operation["description"].startswith(
            "Extension controllers missing or unready: map[ControlPlane/aws:{} Infrastructure/aws:{} "
        )

    await eventually(waits)
    await garden.store.create(a_heartbeat("everything-1"))
    await hold(garden, "two")

    async def is_created() -> None:
        shoot = await garden.shoot("apollo")
        assert section(shoot, "status", "lastOperation").get("state") == "Succeeded"

    await eventually(is_created)
    await hold(garden, "three")

    async def is_required() -> None:
        found = await conditions(garden, "everything-1")
        assert found == {
            "Valid": "True",
            "Installed": "True",
            "Healthy": "True",
            "Progressing": "False",
            "Required": "True",
        }

    await eventually(is_required)
    assert await conditions(garden, "of-another") == {}


async def test_without_the_finalizer_on_its_seed_a_gardenlet_reads_nothing(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.until_ready()
    await garden.store.create(a_registration("everything", *EVERYTHING))
    await garden.store.create(an_installation("everything-1"))
    await garden.place()

    async def is_created() -> None:
        shoot = await garden.shoot("apollo")
        assert section(shoot, "status", "lastOperation").get("state") == "Succeeded"

    await eventually(is_created)
    assert await conditions(garden, "everything-1") == {}
    assert condition_status(conditions_of(await garden.seed()), "ExtensionsReady") == ""
