"""What people get when they ask an apiserver."""

import asyncio
import json

import pytest
import yaml
from structlog.testing import capture_logs

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.verbs import VERBS
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import eventually

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
LANDSCAPE = [a_project(), a_cloudprofile(), a_seed(ready=False)]
CONFIRM = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}


async def test_what_is_applied_can_be_got(apiserver: Apiserver) -> None:
    applied = await apiserver.request("apply", a_shoot(), user="ann")
    got = await apiserver.request("get.shoot.garden-dev.apollo")

    assert got == applied
    assert got["metadata"]["uid"]
    assert got["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"


async def test_the_outcome_is_told(apiserver: Apiserver) -> None:
    outcomes = [(await apiserver.response("apply", a_shoot(metadata={"labels": {"a": a}})))["outcome"] for a in "112"]

    assert outcomes == ["created", "unchanged", "configured"]


async def test_several_yaml_documents_are_applied_and_each_is_answered(apiserver: Apiserver) -> None:
    documents = [*LANDSCAPE, a_shoot(spec={"region": 7})]
    response = await apiserver.response("apply", yaml.safe_dump_all(documents).encode())

    assert not response["ok"]
    assert [part["ok"] for part in response["result"]] == [True, True, True, False]
    assert response["error"]["code"] == 422
    assert response["error"]["details"][0]["field"] == "spec.region"


async def test_a_list_is_in_order_and_goes_on_where_it_ended(apiserver: Apiserver) -> None:
    await apiserver.request("apply", yaml.safe_dump_all([a_shoot(name) for name in ("c", "a", "b")]).encode())
    response = await apiserver.response("list.shoots", {"limit": 2})
    first = response["result"]
    assert response["warnings"] == [], "whoever asks for two knows that there may be more"
    second = await apiserver.request("list.shoot.garden-dev", {"limit": 2, "continue": first["continue"]})

    assert [shoot["metadata"]["name"] for shoot in first["items"] + second["items"]] == ["a", "b", "c"]
    assert "continue" not in second
    assert first["resourceVersion"] == second["resourceVersion"]
    assert (await apiserver.request("list.shoot.garden-other"))["items"] == []


async def test_a_list_is_selected_by_labels_and_fields(apiserver: Apiserver) -> None:
    documents = [a_shoot("gold", metadata={"labels": {"tier": "gold"}}), a_shoot("plain")]
    await apiserver.request("apply", yaml.safe_dump_all(documents).encode())

    gold = await apiserver.request("list.shoot", {"labelSelector": "tier in (gold)"})
    plain = await apiserver.request("list.shoot", {"fieldSelector": "metadata.name!=gold"})
    assert [shoot["metadata"]["name"] for shoot in gold["items"] + plain["items"]] == ["gold", "plain"]


async def test_a_list_that_is_too_large_for_a_message_comes_in_parts(apiserver: Apiserver) -> None:
    for number in range(9):
        metadata = {"name": f"large{number}", "namespace": "garden"}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * 900_000}}
        await apiserver.request("apply", document)
    names: list[str] = []
    token: str | None = None
    for _ in range(9):
        response = await apiserver.response("list.configmap", {"continue": token} if token else b"")
        page = response["result"]
        cut = f"the list ends after {len(page['items'])} objects: request the rest with the `continue` of this response"
        assert response["warnings"] == ([] if token else [cut])
        names += [configmap["metadata"]["name"] for configmap in page["items"]]
        token = page.get("continue")
        if token is None:
            break

    assert names == [f"large{number}" for number in range(9)]


async def test_a_patch_names_its_object_in_the_subject_or_in_the_body(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    await apiserver.request("patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "1"}}})
    body = {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo", "patch": {"metadata": {"labels": {"b": "2"}}}}
    patched = await apiserver.request("patch", body)

    assert {"a": "1", "b": "2"}.items() <= patched["metadata"]["labels"].items()


async def test_a_deletion_needs_a_confirmation_and_is_then_done(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    assert (await apiserver.rejection("delete.shoot.garden-dev.apollo"))["code"] == 403
    await apiserver.request("patch.shoot.garden-dev.apollo", CONFIRM)
    response = await apiserver.response("delete", {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo"})

    assert (response["outcome"], response["result"]["deleted"]) == ("deleted", True)
    assert (await apiserver.rejection("get.shoot.garden-dev.apollo"))["code"] == 404


async def test_a_deletion_confirms_itself_in_one_request(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    reference = {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo"}
    assert (await apiserver.rejection("delete", {**reference, "confirm": False}))["code"] == 403

    response = await apiserver.response("delete", {**reference, "confirm": True})

    assert response["outcome"] == "deleted"
    assert (await apiserver.rejection("get.shoot.garden-dev.apollo"))["code"] == 404


async def test_a_placed_shoot_waits_for_its_gardenlet_to_be_deleted(apiserver: Apiserver) -> None:
    for document in LANDSCAPE:
        await apiserver.request("apply", document)
    await apiserver.request("apply", a_shoot(spec={"seedName": "aws-eu1"}, metadata=CONFIRM["metadata"]))
    left = await apiserver.request("delete.shoot.garden-dev.apollo")

    assert left["metadata"]["deletionTimestamp"]
    assert left["metadata"]["finalizers"] == ["gardener"]
    assert (await apiserver.rejection("delete.seed.aws-eu1"))["code"] == 403
    assert "in use" in (await apiserver.rejection("delete.cloudprofile._.aws"))["message"]


async def test_a_shoot_is_bound_on_request(apiserver: Apiserver) -> None:
    for document in [*LANDSCAPE, a_shoot(spec={"schedulerName": "mine"})]:
        await apiserver.request("apply", document)
    wish = {"namespace": "garden-dev", "name": "apollo", "seed": "aws-eu1"}
    bound = await apiserver.request("bind", wish)

    assert bound["spec"]["seedName"] == "aws-eu1"
    assert (await apiserver.rejection("bind", wish))["code"] == 409
    assert (await apiserver.rejection("bind", wish | {"name": "nobody"}))["code"] == 404
    assert (await apiserver.rejection("bind", {"name": "apollo"}))["code"] == 400


async def test_a_stale_binding_is_refused(apiserver: Apiserver) -> None:
    for document in [*LANDSCAPE, a_shoot()]:
        await apiserver.request("apply", document)
    wish = {"namespace": "garden-dev", "name": "apollo", "seed": "aws-eu1", "resourceVersion": "1"}

    assert (await apiserver.rejection("bind", wish))["reason"] == "Conflict"


async def test_a_stale_version_is_a_conflict(apiserver: Apiserver) -> None:
    applied = await apiserver.request("apply", a_shoot())
    version = applied["metadata"]["resourceVersion"]
    await apiserver.request("apply", a_shoot(metadata={"labels": {"a": "1"}}))
    error = await apiserver.rejection("apply", a_shoot(metadata={"resourceVersion": version, "labels": {"a": "2"}}))

    assert (error["code"], error["reason"]) == (409, "Conflict")
    assert "resourceVersion" in error["message"]


async def test_status_is_ignored_with_a_warning(apiserver: Apiserver) -> None:
    response = await apiserver.response("apply", a_shoot(status={"technicalID": "mine"}))

    assert any("status" in warning for warning in response["warnings"])
    assert "technicalID" not in response["result"].get("status", {})


async def test_unknown_fields_and_unknown_kinds_are_kept(apiserver: Apiserver) -> None:
    response = await apiserver.response("apply", a_shoot(spec={"somethingNew": {"deep": [1, 2]}}), validate="warn")
    widget = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "garden-dev"},
        "spec": {"any": "thing"},
    }
    await apiserver.request("apply", widget)

    assert response["result"]["spec"]["somethingNew"] == {"deep": [1, 2]}
    assert (await apiserver.request("get.widget.garden-dev.w"))["spec"] == {"any": "thing"}
    assert len((await apiserver.request("list.widgets"))["items"]) == 1


async def test_settings_of_older_manifests_are_stored(apiserver: Apiserver) -> None:
    seed = await apiserver.request("apply", a_seed(ready=False, spec={"settings": {"shootDNS": {"enabled": True}}}))

    assert seed["spec"]["settings"] == {"scheduling": {"visible": True}, "shootDNS": {"enabled": True}}


async def test_it_says_which_kinds_it_understands(apiserver: Apiserver) -> None:
    kinds = {kind["kind"]: kind["understood"] for kind in await apiserver.request("kinds")}

    assert kinds["Shoot"]
    assert kinds["SeedAutoscaler"]
    assert not kinds["Bastion"]


async def test_what_waits_and_how_much_there_is_can_be_asked(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())

    assert (await apiserver.request("census"))["objects.shoot"] == 1
    assert await apiserver.request("waiting") == {"items": [], "total": 0, "undecided": 1}
    explained = await apiserver.request("explain.shoot.garden-dev.apollo")
    assert (explained["shoot"], explained["seed"], explained["considered"]) == ("garden-dev/apollo", None, None)
    assert explained["unanswered"].startswith("no scheduler default-scheduler responds")
    assert (explained["ranking"], explained["nextAttempt"], explained["wakesOn"]) == ([], None, [])
    assert explained["recorded"] is None
    assert await apiserver.request("explain.garden-dev.apollo") == explained


async def test_shoots_are_counted_by_state(apiserver: Apiserver) -> None:
    for name in ("a", "b", "c"):
        await apiserver.request("apply", a_shoot(name))
    failed = {"lastOperation": {"type": "Reconcile", "state": "Failed", "lastUpdateTime": "2026-01-01T00:00:00Z"}}
    await apiserver.kit.created(a_shoot("d", "garden-other", status=failed))

    census = await apiserver.request("census.shoot", {"continue": ""})  # as earlier clients ask

    assert (census["states"], census["busy"], census["uncounted"]) == ({"new": 3, "failed": 1}, 4, 0)
    assert [shoot["name"] for shoot in census["slowest"]] == ["d", "a", "b", "c"]
    assert census["slowest"][0]["operationState"] == "Failed"
    assert (await apiserver.rejection("census.seed"))["message"] == "census.seed: there are census and census.shoot"


async def test_seeds_are_explained_by_the_scheduler(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_seed("lone", ready=False))
    for verb in ("explain-seed", "explain-drain"):
        assert (await apiserver.rejection(f"{verb}.gone"))["code"] == 404
        rejection = await apiserver.rejection(f"{verb}.lone")
        assert rejection["code"] == 503
        assert rejection["message"].startswith("no scheduler default-scheduler responds")


async def test_events_are_listed_with_their_newest_count(apiserver: Apiserver) -> None:
    def an_event(name: str, count: int) -> bytes:
        metadata = {"name": name, "namespace": "garden-dev"}
        return json.dumps({"kind": "Event", "metadata": metadata, "reason": "Tested", "count": count}).encode()

    for name, count in (("apollo.1", 1), ("apollo.2", 1), ("apollo.1", 2)):
        await apiserver.publish("event.shoot.garden-dev.apollo", an_event(name, count))
    await apiserver.publish("event.seed._.aws", an_event("aws.1", 1))

    events = (await apiserver.request("list.event.garden-dev"))["items"]
    assert [(event["metadata"]["name"], event["count"]) for event in events] == [("apollo.2", 1), ("apollo.1", 2)]
    assert len((await apiserver.request("list.events"))["items"]) == 3


async def test_leases_of_all_namespaces_are_those_on_the_bus_and_those_in_the_store(apiserver: Apiserver) -> None:
    own = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "own", "namespace": "garden-dev"},
    }
    await apiserver.request("apply", own)
    for seed in ("seed-c", "seed-a", "seed-b"):
        await apiserver.publish(f"lease.{seed}", {"kind": "Lease", "metadata": {"name": seed}})
    await apiserver.publish("lease._canary", {"kind": "Lease", "metadata": {"name": "_canary"}})

    everything = (await apiserver.request("list.leases"))["items"]
    assert [lease["metadata"]["name"] for lease in everything] == ["own", "seed-a", "seed-b", "seed-c"]
    assert len((await apiserver.request("list.lease.garden-dev"))["items"]) == 1

    pages: list[list[str]] = []
    token: str | None = None
    while token is not None or not pages:
        page = await apiserver.request("list.lease", {"limit": 1, "continue": token})
        pages.append([lease["metadata"]["name"] for lease in page["items"]])
        token = page.get("continue")
    assert pages == [["own"], ["seed-a"], ["seed-b"], ["seed-c"]]
    selected = {"fieldSelector": "metadata.name=seed-b", "limit": 1}
    assert len((await apiserver.request("list.lease", selected))["items"]) == 1


async def test_events_that_a_list_leaves_out_are_counted_in_a_warning(apiserver: Apiserver) -> None:
    for number in range(3):
        event = {"kind": "Event", "metadata": {"name": f"apollo.{number}", "namespace": "garden-dev"}}
        await apiserver.publish("event.shoot.garden-dev.apollo", event)

    cut = await apiserver.response("list.event", {"limit": 2})
    assert [event["metadata"]["name"] for event in cut["result"]["items"]] == ["apollo.1", "apollo.2"]
    assert cut["warnings"] == ["these are the newest 2 of 3 Events: a higher limit gives more"]
    assert (await apiserver.rejection("list.event", {"continue": "x"}))["message"].startswith("continue: ")


async def test_heartbeats_are_read_from_the_bus(apiserver: Apiserver) -> None:
    lease = {"kind": "Lease", "metadata": {"name": "aws"}, "spec": {"holderIdentity": "aws"}}
    await apiserver.publish("lease.aws", lease)

    await apiserver.publish("lease._canary", {"kind": "Lease", "metadata": {"name": "_canary"}})

    assert await apiserver.request("get.lease.gardener-system-seed-lease.aws") == lease
    assert (await apiserver.request("list.lease.gardener-system-seed-lease"))["items"] == [lease]
    assert (await apiserver.rejection("get.lease.gardener-system-seed-lease.none"))["code"] == 404


@pytest.mark.parametrize("tail", ["conquer", "get", "get.shoot", "list.spaceships", "bind", "patch", "delete"])
async def test_a_request_that_is_none_is_answered(apiserver: Apiserver, tail: str) -> None:
    error = await apiserver.rejection(tail)

    assert error["code"] == 400
    assert error["message"]


async def test_a_list_that_is_asked_for_wrongly_is_refused(apiserver: Apiserver) -> None:
    for body in ({"limit": 0}, {"limit": "x"}, {"continue": "nonsense"}, {"labelSelector": "a b"}, b"\xff", b"[]"):
        assert (await apiserver.rejection("list.shoot", body))["code"] == 400


async def test_writes_that_race_all_count(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    await apiserver.start()
    patches = [{"metadata": {"labels": {f"l{number}": "1"}}} for number in range(20)]
    await asyncio.gather(*(apiserver.request("patch.shoot.garden-dev.apollo", patch) for patch in patches))

    labels = (await apiserver.now(APOLLO)).document()["metadata"]["labels"]
    assert {f"l{number}" for number in range(20)} <= labels.keys()


async def test_the_shoots_of_a_seed_are_listed_by_its_usage_and_counted(apiserver: Apiserver) -> None:
    seed = a_seed("earth", ready=False)
    placed = [a_shoot(name, spec={"seedName": "earth"}) for name in ("c", "a", "b")]
    await apiserver.request("apply", yaml.safe_dump_all([*LANDSCAPE, seed, *placed, a_shoot("elsewhere")]).encode())
    query = {"fieldSelector": "spec.seedName=earth"}

    first = await apiserver.request("list.shoot", {**query, "limit": 2})
    second = await apiserver.request("list.shoot.garden-dev", {**query, "limit": 2, "continue": first["continue"]})

    assert [shoot["metadata"]["name"] for shoot in first["items"] + second["items"]] == ["a", "b", "c"]
    assert "continue" not in second
    assert first["resourceVersion"] == second["resourceVersion"]
    assert (await apiserver.request("list.shoot", {"fieldSelector": "status.seedName=earth"}))["items"] == []
    assert (await apiserver.request("list.shoot.garden-other", query))["items"] == []
    assert (await apiserver.request("list.shoot", {"fieldSelector": "spec.seedName=mars"}))["items"] == []
    assert await apiserver.request("usage") == {"seeds": {"earth": 3}}


async def test_what_is_listed_by_its_name_is_looked_up_and_not_looked_for(
    apiserver: Apiserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.apiserver.requests.queries.SCAN_LIMIT", 1)  # a scan would come to nothing
    others = [a_shoot(f"a{number}") for number in range(3)]
    await apiserver.request("apply", yaml.safe_dump_all([*LANDSCAPE, *others, a_shoot("wanted")]).encode())
    query = {"fieldSelector": "metadata.name=wanted"}

    found = await apiserver.request("list.shoot", query)

    assert [shoot["metadata"]["name"] for shoot in found["items"]] == ["wanted"]
    assert "continue" not in found
    assert (await apiserver.request("list.shoot.garden-dev", query))["items"] == found["items"]
    assert (await apiserver.request("list.shoot.elsewhere", query))["items"] == []
    by_both = {"fieldSelector": "metadata.name=wanted,spec.region=mars-1"}
    assert (await apiserver.request("list.shoot", by_both))["items"] == []


async def test_names_are_found_by_how_they_begin(apiserver: Apiserver) -> None:
    shoots = [a_shoot(name) for name in ("ab", "abc", "b")]
    await apiserver.request("apply", yaml.safe_dump_all([*LANDSCAPE, *shoots]).encode())

    assert await apiserver.request("names.shoot", {"prefix": "ab"}) == {"names": ["ab", "abc"]}
    assert await apiserver.request("names.shoots.garden-dev", {"prefix": "b"}) == {"names": ["b"]}
    assert await apiserver.request("names.shoot.elsewhere") == {"names": []}
    assert await apiserver.request("names.shoot", {"limit": 2}) == {"names": ["ab", "b"]}
    assert "list.event" in (await apiserver.rejection("names.event"))["message"]
    assert "limit" in (await apiserver.rejection("names.shoot", {"limit": 0}))["message"]
    assert "prefix" in (await apiserver.rejection("names.shoot", {"prefix": 7}))["message"]


async def test_events_are_listed_of_one_object(apiserver: Apiserver) -> None:
    for name in "ab":
        event = {
            "kind": "Event",
            "metadata": {"name": f"{name}.1", "namespace": "garden-dev"},
            "involvedObject": {"kind": "Shoot", "namespace": "garden-dev", "name": name},
            "message": f"about {name}",
        }
        await apiserver.client.publish(apiserver.subjects.event(APOLLO._replace(name=name)), json.dumps(event).encode())

    async def listed(query: dict[str, str]) -> list[str]:
        items = (await apiserver.request("list.event.garden-dev", query))["items"]
        return sorted(event["message"] for event in items)

    async def announced() -> None:
        assert await listed({}) == ["about a", "about b"]

    await eventually(announced)
    assert await listed({"fieldSelector": "involvedObject.kind=Shoot,involvedObject.name=a"}) == ["about a"]
    assert await listed({"fieldSelector": "involvedObject.name=b"}) == ["about b"]
    assert await listed({"fieldSelector": "involvedObject.kind=*,involvedObject.name=>"}) == []


async def test_an_unknown_request_is_rejected_with_all_that_there_are(apiserver: Apiserver) -> None:
    message = (await apiserver.rejection("nosuch"))["message"]
    assert message.startswith("'nosuch' is no request: there are apply, patch, delete")
    assert all(verb in message for verb in VERBS)


async def test_a_write_that_is_rejected_has_the_id_of_its_line_in_the_log(apiserver: Apiserver) -> None:
    shoot = a_shoot(spec={"region": 5})
    with capture_logs() as logs:
        first = await apiserver.rejection("apply", shoot)
        await apiserver.rejection("apply", shoot)
    lines = [line for line in logs if line["event"] == "request.rejected"]
    assert len(lines) == 1  # and one a minute later, with how many more there were
    assert len(first["reconcileId"]) == 16
    assert lines[0]["reconcile_id"] == first["reconcileId"]
    assert "spec.region: must be a string" in lines[0]["reason"]
    assert lines[0]["request"] == "apply"


@pytest.mark.parametrize("tail", ["get.shoot.garden-dev.gone", "nosuch"])
async def test_what_clients_do_all_day_is_not_logged_and_has_no_id(apiserver: Apiserver, tail: str) -> None:
    with capture_logs() as logs:
        assert "reconcileId" not in await apiserver.rejection(tail)
    assert not [line for line in logs if line["event"] == "request.rejected"]


async def test_a_request_that_cannot_be_worked_on_now_has_the_id_of_its_line_in_the_log(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_seed("lone", ready=False))
    with capture_logs() as logs:
        rejection = await apiserver.rejection("explain-seed.lone")
    assert [line["reconcile_id"] for line in logs if line["event"] == "request.rejected"] == [rejection["reconcileId"]]
