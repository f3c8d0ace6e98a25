"""Stored objects that break a rule by now are counted by rule; they stay, change elsewhere, and are deleted."""

from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_project, a_seed, a_shoot

DOUBLED = [{"key": "a"}, {"key": "a"}]
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}


async def test_objects_that_break_a_rule_are_counted_and_named(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_project())
    for name in ("wrong", "wrong-too"):
        await apiserver.kit.store.create(a_shoot(name, spec={"tolerations": DOUBLED, "purpose": "fun"}))
    await apiserver.kit.store.create(a_shoot("right"))

    found = await apiserver.request("invalid.shoots.garden-dev")
    assert found["checked"] == 3
    assert {rule["field"]: (rule["objects"], rule["names"]) for rule in found["rules"]} == {
        "spec.purpose": (2, ["garden-dev/wrong", "garden-dev/wrong-too"]),
        "spec.tolerations[].key": (2, ["garden-dev/wrong", "garden-dev/wrong-too"]),
    }
    assert "continue" not in found
    assert await apiserver.request("invalid.shoot.garden-other") == {"checked": 0, "rules": []}


async def test_objects_come_in_pages_and_one_that_is_mended_counts_no_more(apiserver: Apiserver) -> None:
    for name in ("a", "b"):
        await apiserver.kit.store.create(a_seed(name, spec={"taints": DOUBLED}))
    first = await apiserver.request("invalid.seed", {"limit": 1})
    second = await apiserver.request("invalid.seed", {"continue": first["continue"]})
    assert [page["rules"][0]["names"] for page in (first, second)] == [["a"], ["b"]]
    assert "continue" not in second

    await apiserver.request("apply", a_seed("a", metadata={"labels": {"unrelated": "yes"}}, spec={"taints": DOUBLED}))
    await apiserver.request("patch.seed.b", {"spec": {"taints": DOUBLED[:1]}})
    (rule,) = (await apiserver.request("invalid.seed"))["rules"]
    assert (rule["field"], rule["objects"], rule["names"]) == ("spec.taints[].key", 1, ["a"])


async def test_what_is_being_deleted_breaks_no_rule_any_more(apiserver: Apiserver) -> None:
    wrong = a_shoot("wrong", metadata={"finalizers": ["held"], "annotations": CONFIRMED}, spec={"purpose": "fun"})
    await apiserver.kit.store.create(wrong)
    await apiserver.request("delete.shoot.garden-dev.wrong")
    assert (await apiserver.request("invalid.shoot"))["rules"] == []


async def test_kinds_without_rules_are_not_read_and_there_are_no_other_kinds(apiserver: Apiserver) -> None:
    metadata = {"name": "one", "namespace": "garden-dev"}
    await apiserver.kit.store.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {}})
    assert await apiserver.request("invalid.service") == {"checked": 0, "rules": []}
    assert "limit" in (await apiserver.rejection("invalid.shoot", {"limit": 0}))["message"]
    assert "continue" in (await apiserver.rejection("invalid.shoot", {"continue": "?"}))["message"]
    assert (await apiserver.rejection("invalid.unheard"))["code"] == 400
