"""Unknown fields and what nothing acts on, over the bus: refused with a response, warned of without one."""

from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
MISSPELT = a_shoot(spec={"purpos": "testing"})


async def test_an_answered_request_refuses_an_unknown_field(apiserver: Apiserver) -> None:
    error = await apiserver.rejection("apply", MISSPELT)

    assert error["code"] == 422
    (detail,) = error["details"]
    assert detail == {"field": "spec.purpos", "message": "is no field of a Shoot; did you mean `purpose`?"}
    assert await apiserver.kit.store.get(APOLLO) is None


@pytest.mark.parametrize(("validate", "warned"), [("warn", 1), ("ignore", 0)])
async def test_a_header_says_what_becomes_of_it(apiserver: Apiserver, validate: str, warned: int) -> None:
    response = await apiserver.response("apply", MISSPELT, validate=validate)

    assert (response["ok"], response["outcome"]) == (True, "created")
    assert response["result"]["spec"]["purpos"] == "testing"
    assert [warning for warning in response["warnings"] if "purpos" in warning] == [
        "shoot garden-dev/apollo: spec.purpos: is no field of a Shoot; did you mean `purpose`?"
    ][:warned]


async def test_a_header_of_another_word_is_refused(apiserver: Apiserver) -> None:
    response = await apiserver.response("apply", MISSPELT, validate="loosely")
    assert response["error"]["message"] == "Gardenbus-Validate: must be strict, warn or ignore, not 'loosely'"


@pytest.mark.parametrize("is_stored_before", [False, True])
async def test_a_durable_request_takes_it_and_warns_with_an_event(
    apiserver: Apiserver, capsys: pytest.CaptureFixture[str], *, is_stored_before: bool
) -> None:
    if is_stored_before:
        await apiserver.request("apply", a_shoot())
    await apiserver.publish("apply", MISSPELT)
    await apiserver.until_handled()

    stored = await apiserver.now(APOLLO)
    (warning,) = await apiserver.warnings()
    event = warning.event
    assert stored.document()["spec"]["purpos"] == "testing"
    assert (event.about, event.uid, event.reason, event.action) == (APOLLO, stored.uid, "ManifestWarning", "Apply")
    assert event.message == "spec.purpos: is no field of a Shoot; did you mean `purpose`?"
    assert await apiserver.rejected() == []
    assert "manifest.questioned" in capsys.readouterr().out


async def test_a_durable_request_may_ask_to_be_refused_or_left_alone(apiserver: Apiserver) -> None:
    await apiserver.publish("apply", a_shoot("artemis", spec={"purpos": "x"}), {"Gardenbus-Validate": "ignore"})
    await apiserver.until_handled()
    assert await apiserver.warnings() == []
    await apiserver.publish("apply", MISSPELT, {"Gardenbus-Validate": "strict"})

    assert "spec.purpos" in await apiserver.reason()
    assert await apiserver.kit.store.get(APOLLO) is None


async def test_a_stored_unknown_field_locks_nobody_out(apiserver: Apiserver) -> None:
    await apiserver.response(
        "apply", a_shoot(spec={"purpos": "x"}, metadata={"finalizers": ["a/b"]}), validate="ignore"
    )
    stored = await apiserver.request("get.shoot.garden-dev.apollo")

    response = await apiserver.response("apply", stored)
    assert response["ok"], response
    confirmed: dict[str, Any] = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
    await apiserver.request("patch.shoot.garden-dev.apollo", confirmed)
    assert (await apiserver.response("delete.shoot.garden-dev.apollo"))["outcome"] == "deleting"
    await apiserver.request("patch.shoot.garden-dev.apollo", {"metadata": {"finalizers": None}})
    patched = await apiserver.response("patch.shoot.garden-dev.apollo", {"spec": {"purpos": None}})
    assert patched["ok"] or patched["error"]["code"] == 404


async def test_a_patch_with_an_unknown_field_is_refused(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    error = await apiserver.rejection("patch.shoot.garden-dev.apollo", {"spec": {"purpos": "x"}})
    assert error["details"][0]["field"] == "spec.purpos"


async def test_every_warning_names_its_object(apiserver: Apiserver) -> None:
    shoots = [a_shoot(name, spec={"monitoring": {"alerting": {}}}) for name in ("apollo", "artemis")]
    response = await apiserver.response("apply", {"kind": "List", "items": shoots})

    named = [warning.split(": ")[0] for warning in response["warnings"] if "monitoring" in warning]
    assert named == ["shoot garden-dev/apollo", "shoot garden-dev/artemis"]


async def test_what_was_read_is_applied_again_in_silence(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot(spec={"monitoring": {"alerting": {}}, "maintenance": {}}))
    await apiserver.request("apply", a_seed(ready=False))
    await apiserver.report("aws-eu1", ObjectKey("seed", "", "aws-eu1"), {"status": a_seed()["status"]}, verb="status")
    await apiserver.until_handled()
    read = [
        await apiserver.request("get.shoot.garden-dev.apollo"),
        await apiserver.request("get.seed._.aws-eu1"),
    ]
    assert read[1]["status"]

    response = await apiserver.response("apply", {"kind": "List", "items": read}, dry_run="true")

    assert (response["outcome"], response["warnings"]) == (["unchanged", "unchanged"], [])


async def test_a_kind_that_nothing_acts_on_is_answered_with_that(apiserver: Apiserver) -> None:
    garden = {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Garden",
        "metadata": {"name": "trial"},
        "spec": {"virtualCluster": "v"},
    }
    for _ in range(2):
        response = await apiserver.response("apply", garden)
        assert response["warnings"] == ["garden trial: kind Garden is stored; nothing acts on it"]


async def test_a_kind_of_a_group_that_is_not_known_is_refused_unless_it_is_registered(
    idle_apiserver: Apiserver,
) -> None:
    gadget = {"apiVersion": "gadgets.example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "dev"}}
    await idle_apiserver.start(groups="gizmos.example.com")
    assert (
        "the group 'gadgets.example.com' is not known here"
        in (await idle_apiserver.rejection("apply", gadget))["message"]
    )
    await idle_apiserver.start(groups="gadgets.example.com,gadgets.example.org")

    response = await idle_apiserver.response("apply", gadget)

    assert response["warnings"] == [
        "gadget dev/g: kind Gadget is stored; nothing acts on it",
        "gadget dev/g: metadata.namespace: there is no Namespace dev, nor a Project that has it",
    ]


@pytest.mark.parametrize("durable", [False, True])
async def test_whatever_was_applied_can_be_deleted_by_its_name(apiserver: Apiserver, *, durable: bool) -> None:
    foo = {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "dev"}}
    await apiserver.request("apply", foo)
    reference = {"kind": "foo", "namespace": "dev", "name": "f"}

    await (apiserver.publish("delete", reference) if durable else apiserver.request("delete", reference))
    await apiserver.until_handled()

    assert await apiserver.kit.store.get(ObjectKey("foo", "dev", "f")) is None


async def test_the_list_of_a_kind_that_is_none_is_an_error(apiserver: Apiserver) -> None:
    error = await apiserver.rejection("list.shoos")
    assert 'the server doesn\'t have a resource type "shoos"; did you mean shoots?' in error["message"]


async def test_the_kinds_say_what_acts_on_them(apiserver: Apiserver) -> None:
    actors = {kind["kind"]: kind["actsOn"] for kind in await apiserver.request("kinds")}
    assert (actors["Seed"], actors["Garden"], actors["Deployment"]) == (
        "scheduler, gardenlet, lifecycle",
        "",
        "placement",
    )


async def test_the_kinds_that_only_the_store_knows_are_listed_with_the_others(apiserver: Apiserver) -> None:
    metadata = {"name": "f", "namespace": "dev"}
    group = "extensions.gardener.cloud"
    await apiserver.request("apply", {"apiVersion": f"{group}/v1alpha1", "kind": "OddThing", "metadata": metadata})
    await apiserver.request("apply", {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "f"}})

    kinds = {kind["singular"]: kind for kind in await apiserver.request("kinds")}

    assert kinds["oddthing"] == {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "OddThing",
        "singular": "oddthing",
        "plural": "oddthings",
        "shortNames": [],
        "namespaced": True,
        "understood": False,
        "actsOn": "",
    }
    assert (kinds["foo"]["namespaced"], kinds["foo"]["actsOn"]) == (False, "")
    await apiserver.request("delete", {"kind": "foo", "name": "f"})
    assert "foo" not in {kind["singular"] for kind in await apiserver.request("kinds")}
