"""The condition ExtensionsReady, by Gardener's cases of its check."""

import pytest

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done
from gardenbus.controllermanager.controllers import extensions_check
from gardenbus.controllermanager.domain.extensions_check import with_extensions_ready, without_extensions_ready
from tests.support.builders import CORE, a_condition, a_seed
from tests.support.loops import Garden, request_of

NOW = "2026-08-01T12:00:00Z"
GOOD = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}


def an_installation(name: str, conditions: dict[str, str]) -> Document:
    listed = [a_condition(kind, status, message=f"{kind} is {status}") for kind, status in conditions.items()]
    spec = {"registrationRef": {"name": "r"}, "seedRef": {"name": "aws-eu1"}}
    status = {"conditions": listed} if listed else {}
    metadata = {"name": name}
    return {"apiVersion": CORE, "kind": "ControllerInstallation", "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("installations", "expected"),
    [
        (
            [],
            ("True", "AllExtensionsReady", "All extensions installed into the seed cluster are ready and healthy."),
        ),
        (
            [GOOD],
            ("True", "AllExtensionsReady", "All extensions installed into the seed cluster are ready and healthy."),
        ),
        (
            [GOOD | {"Valid": "False"}, GOOD | {"Valid": "Unknown", "Installed": "False"}],
            (
                "False",
                "NotAllExtensionsValid",
                "Some extensions are not valid: map[i0:Valid is False i1:Valid is Unknown]",
            ),
        ),
        (
            [{}, GOOD],
            (
                "False",
                "NotAllExtensionsInstalled",
                "Some extensions are not installed: map[i0:extension was not yet installed]",
            ),
        ),
        (
            [GOOD | {"Healthy": "False"}],
            ("False", "NotAllExtensionsHealthy", "Some extensions are not healthy: map[i0:Healthy is False]"),
        ),
        (
            [{"Valid": "True", "Installed": "True", "Healthy": "True"}],
            (
                "False",
                "NotAllExtensionsHealthy",
                "Some extensions are not healthy: map[i0:not all required conditions found in ControllerInstallation]",
            ),
        ),
        (
            [GOOD | {"Progressing": "True"}],
            ("False", "SomeExtensionsProgressing", "Some extensions are progressing: map[i0:Progressing is True]"),
        ),
    ],
)
def test_the_first_condition_that_is_not_met_is_the_seeds(
    installations: list[dict[str, str]], expected: tuple[str, str, str]
) -> None:
    documents = [an_installation(f"i{number}", each) for number, each in enumerate(installations)]
    seed = with_extensions_ready(a_seed(), documents, NOW)
    condition = get_condition(conditions_of(seed), "ExtensionsReady") or {}
    assert (condition["status"], condition["reason"], condition["message"]) == expected
    assert with_extensions_ready(seed, documents, "2026-08-01T12:01:00Z") is seed
    assert without_extensions_ready(seed) == a_seed()


async def test_a_seed_has_the_condition_only_while_something_may_be_installed_on_it() -> None:
    garden, key, loop = Garden(), ObjectKey("seed", "", "aws-eu1"), extensions_check.LOOP
    before = await garden.add(a_seed())
    assert await garden.reconcile(loop, key) == Done()
    assert await garden.store.get(key) == before

    def hold(seed: Document) -> None:
        seed["metadata"]["finalizers"] = ["core.gardener.cloud/controllerregistration"]

    await garden.change(key, hold)
    installation = await garden.add(an_installation("i0", {}))
    built = loop.build(garden.context(loop.name))
    built.changed(installation.key, None, installation)
    assert garden.enqueued == [(loop.name, key)]
    await built.reconcile(request_of(loop, key))
    seed = await garden.now("seed", "aws-eu1") or {}
    assert (get_condition(conditions_of(seed), "ExtensionsReady") or {})["reason"] == "NotAllExtensionsInstalled"

    await garden.change(key, lambda document: document["metadata"].pop("finalizers"))
    await built.reconcile(request_of(loop, key))
    after = await garden.store.get(key)
    assert after is not None
    assert after.parts == before.parts
