"""A gardenlet reports the conditions of its seed's installations, and a shoot waits for those that it needs."""

from pathlib import Path
from typing import Any

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.installed_extensions import a_heartbeat, an_installation, hold
from tests.support.registrations import a_deployment, a_registration

EVERYTHING = [
    *[(kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")],
    ("Network", "calico"),
]


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


async def test_a_deployment_that_names_a_program_starts_nothing(garden: Garden, tmp_path: Path) -> None:
    proof = tmp_path / "started"
    command = ["/bin/sh", "-c", f"touch {proof}"]
    await garden.start(a_configuration())
    await garden.until_ready()
    deployment = a_deployment(
        "program",
        metadata={"annotations": {"gardenbus.io/process": " ".join(command)}},
        type="process",
        providerConfig={"command": command},
    )
    await garden.store.create(deployment)
    reference = {"deployment": {"deploymentRefs": [{"name": "program"}]}}
    await garden.store.create(a_registration("everything", *EVERYTHING, spec=reference))
    installation = an_installation("everything-1")
    installation["spec"]["deploymentRef"] = {"name": "program"}
    await garden.store.create(installation)
    await hold(garden, "one")

    async def is_reported() -> None:
        found = await conditions(garden, "everything-1")
        assert (found.get("Valid"), found.get("Installed")) == ("True", "False")

    await eventually(is_reported)
    assert not proof.exists(), "whoever writes to the garden starts nothing on a seed"


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
