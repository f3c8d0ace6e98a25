"""Snapshots of policies and of resources: which there are, in which order they come about, and what a crash leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document, StoredObject, section, split
from gardenbus.common.api.fleet.placement_parts import (
    GROUP_HASH,
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    NUMBER_OF_SNAPSHOTS,
    PLACEMENT_GENERATION,
)
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.placement.domain.policy_snapshots import PolicyPlan, active_one, plan_policy, policy_hash, retired
from gardenbus.placement.domain.resource_selectors import is_propagated, scopes_around, watch_scopes
from gardenbus.placement.domain.resource_snapshots import (
    CHANGED_SINCE,
    ResourcePlan,
    cleaned,
    in_order,
    in_parts,
    plan_resources,
)
from tests.support.builders import merged
from tests.support.placements import WEB, Bench, a_configmap, a_crp, a_namespace, pick_n, request_for

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CREATED = "2026-01-02T03:00:00Z"


def stored(document: Document) -> StoredObject:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
    return StoredObject(
        key=key, parts=split(document), uid=f"uid-{key.name}", version=1, generation=1, created_at=CREATED
    )


def placement(policy: Document | None = None, generation: int = 1, **spec: Any) -> tuple[Placement, Document]:
    document = merged(a_crp(policy=policy), {"metadata": {"uid": "u", "generation": generation}, "spec": spec})
    return Placement.from_document(document), document


def planned(policy: Document | None, *snapshots: StoredObject, generation: int = 1, **spec: Any) -> PolicyPlan:
    return plan_policy(*placement(policy, generation, **spec), snapshots)


def made(policy: Document | None, *snapshots: StoredObject) -> StoredObject:
    created = planned(policy, *snapshots).created
    assert created is not None
    return stored(created)


EU = pick_n(2, tolerations=[{"key": "eu", "operator": "Exists"}])
US = pick_n(2, tolerations=[{"key": "us", "operator": "Exists"}])


def test_the_hash_says_nothing_of_the_number() -> None:
    assert policy_hash(placement(pick_n(2))[1]) == policy_hash(placement(pick_n(5))[1])
    assert policy_hash(placement(EU)[1]) != policy_hash(placement(US)[1])
    assert policy_hash(placement(None)[1]) != policy_hash(placement({"placementType": "PickAll"})[1])


def test_the_first_snapshot_has_index_0_and_says_how_many() -> None:
    created = planned(EU).created
    assert created is not None
    assert created["metadata"]["name"] == "web-0"
    assert created["metadata"]["annotations"] == {PLACEMENT_GENERATION: "1", NUMBER_OF_CLUSTERS: "2"}
    assert created["spec"]["policy"] == {name: value for name, value in EU.items() if name != "numberOfClusters"}
    assert "policy" not in made(None).document()["spec"]


def test_another_number_and_another_generation_are_noted_in_place() -> None:
    first = made(EU)
    assert planned(EU, first) == PolicyPlan()
    plan = planned({**EU, "numberOfClusters": 7}, first, generation=4)
    assert plan.created is None
    assert plan.patched is not None
    assert plan.patched[1]["metadata"]["annotations"] == {PLACEMENT_GENERATION: "4", NUMBER_OF_CLUSTERS: "7"}


def test_another_policy_retires_the_snapshot_before_its_successor_is_made() -> None:
    first = made(EU)
    plan = planned(US, first)
    assert [each.key.name for each in plan.retired] == ["web-0"]
    assert plan.created is not None
    assert plan.created["metadata"]["name"] == "web-1"


def test_a_policy_that_comes_back_before_its_successor_was_made_is_the_latest_again() -> None:
    first = stored(retired(made(EU).document()))
    assert active_one([first]) is None
    plan = planned(EU, first)
    assert plan.created is None
    assert plan.patched is not None
    assert plan.patched[1]["metadata"]["labels"][IS_LATEST_LABEL] == "true"


def test_of_several_latest_ones_the_newest_stays() -> None:
    first = made(EU)
    second = made(US, first)
    assert active_one([first, second]) is None
    assert [each.key.name for each in planned(US, first, second).retired] == ["web-0"]


def test_no_more_snapshots_are_kept_than_the_history_allows() -> None:
    history: list[StoredObject] = []
    for number in range(4):
        latest = made(pick_n(1, tolerations=[{"key": str(number)}]), *history)
        history = [*(stored(retired(each.document())) for each in history), latest]
    assert [each.key.name for each in planned(EU, *history, revisionHistoryLimit=3).deleted] == ["web-0", "web-1"]


RED, BLUE = a_configmap(color="red"), a_configmap(color="blue")


def resources(*wanted: Document, snapshots: tuple[StoredObject, ...] = (), **options: Any) -> ResourcePlan:
    usual: dict[str, Any] = {"now": NOW, "collection": timedelta(seconds=15), "interval": timedelta(seconds=30)}
    return plan_resources(placement()[0], wanted, snapshots, **(usual | options))


def group(*wanted: Document, snapshots: tuple[StoredObject, ...] = ()) -> tuple[StoredObject, ...]:
    created = resources(*wanted, snapshots=snapshots, collection=timedelta(0)).created
    return tuple(stored(each) for each in created)


def test_what_is_selected_at_first_is_taken_at_once() -> None:
    plan = resources(RED)
    (master,) = plan.created
    assert master["metadata"]["name"] == "web-0-snapshot"
    assert master["metadata"]["annotations"][NUMBER_OF_SNAPSHOTS] == "1"
    assert plan.index == 0
    assert resources(RED, snapshots=group(RED)).created == ()


def test_changes_are_collected_and_groups_keep_a_distance() -> None:
    red = group(RED)
    plan = resources(BLUE, snapshots=red)
    assert (plan.created, plan.wait_seconds, plan.index) == ((), 15.0, 0)
    assert plan.patched is not None
    noticed = (stored(plan.patched[1]),)
    again = resources(BLUE, snapshots=noticed, now=NOW + timedelta(seconds=5))
    assert (again.patched, again.wait_seconds) == (None, 10.0)
    due = resources(BLUE, snapshots=noticed, now=NOW + timedelta(seconds=15))
    assert [each["metadata"]["name"] for each in due.created] == ["web-1-snapshot"]
    assert [each.key.name for each in due.retired] == ["web-0-snapshot"]
    young = datetime.fromisoformat(CREATED) + timedelta(seconds=20)
    assert resources(BLUE, snapshots=red, now=young).wait_seconds == 15.0
    assert resources(BLUE, snapshots=red, now=young, collection=timedelta(0)).wait_seconds == 10.0


@pytest.mark.parametrize("hours", [1, 1000])
def test_what_was_noted_by_a_clock_that_was_wrong_holds_nothing_up(hours: int) -> None:
    later = NOW + timedelta(hours=hours)
    noticed = resources(BLUE, snapshots=group(RED), now=later).patched
    assert noticed is not None
    assert resources(BLUE, snapshots=(stored(noticed[1]),)).created

    plan = resources(BLUE, snapshots=group(RED), now=datetime.fromisoformat(CREATED) - timedelta(hours=hours))
    assert plan.wait_seconds == 15.0


def test_a_change_that_is_taken_back_was_none() -> None:
    noticed = resources(BLUE, snapshots=group(RED)).patched
    assert noticed is not None
    plan = resources(RED, snapshots=(stored(noticed[1]),))
    assert plan.patched is not None
    assert CHANGED_SINCE not in plan.patched[1]["metadata"]["annotations"]


LARGE = tuple(a_configmap(f"large-{number}", text="x" * 500_000) for number in range(3))


def test_what_is_too_large_for_one_snapshot_is_divided_and_a_crash_is_made_up_for() -> None:
    parts = group(*LARGE)
    assert [each.key.name for each in parts] == ["web-0-0", "web-0-1", "web-0-snapshot"]
    assert [len(section(each.document(), "spec")["selectedResources"]) for each in parts] == [1, 1, 1]
    left = resources(*LARGE, snapshots=parts[1:])
    assert [each["metadata"]["name"] for each in left.created] == ["web-0-0"]
    orphans = resources(*LARGE, snapshots=parts[:2])
    assert [each.key.name for each in orphans.deleted] == ["web-0-0", "web-0-1"]
    assert [each["metadata"]["name"] for each in orphans.created] == ["web-1-0", "web-1-1", "web-1-snapshot"]


def test_nothing_is_made_for_an_external_rollout() -> None:
    plan = plan_resources(
        placement(strategy={"type": "External"})[0],
        [RED],
        (),
        now=NOW,
        collection=timedelta(0),
        interval=timedelta(0),
    )
    assert plan == ResourcePlan()


def test_groups_beyond_the_history_go_unless_a_binding_has_them() -> None:
    history: tuple[StoredObject, ...] = ()
    for number in range(3):
        latest = group(a_configmap(color=str(number)), snapshots=history)
        history = (*(stored(retired(each.document())) for each in history), *latest)
    limited = placement(revisionHistoryLimit=2)[0]
    due: dict[str, Any] = {"now": NOW + timedelta(hours=1), "collection": timedelta(0), "interval": timedelta(0)}
    plan = plan_resources(limited, [RED], history, **due)
    assert [each.key.name for each in plan.deleted] == ["web-0-snapshot", "web-1-snapshot"]
    used = plan_resources(limited, [RED], history, **due, used={"web-0-snapshot"})
    assert [each.key.name for each in used.deleted] == ["web-1-snapshot"]
    assert GROUP_HASH in used.created[0]["metadata"]["annotations"]


def test_what_belongs_to_the_place_is_taken_off() -> None:
    metadata = {"uid": "u", "resourceVersion": "1", "generation": 2, "finalizers": ["f"], "labels": {"a": "b"}}
    service: Document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "web", **metadata},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}},
    }
    assert cleaned(service) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "web", "labels": {"a": "b"}},
        "spec": {"ports": [{"port": 80}]},
    }


def test_who_made_and_confirmed_an_object_here_stays_here() -> None:
    annotations = {"gardener.cloud/created-by": "ann", "deletion.gardener.cloud/confirmed-by": "bob", "own": "kept"}
    labels = {"reference.gardener.cloud/secretbinding": "true", "provider.shoot.gardener.cloud/aws": "true"}
    secret = {"kind": "Secret", "metadata": {"name": "a", "annotations": annotations, "labels": labels}}
    assert cleaned(secret)["metadata"] == {"name": "a", "annotations": {"own": "kept"}}


def test_resources_are_in_the_order_of_applying() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "web"}}
    other = {"apiVersion": "x.io/v1", "kind": "Other", "metadata": {"name": "o"}}
    kinds = [each["kind"] for each in in_order([other, deployment, RED, a_namespace()])]
    assert kinds == ["Namespace", "ConfigMap", "Deployment", "Other"]
    assert in_parts([]) == [[]]


@pytest.mark.parametrize(
    "kept",
    [
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "t"},
        },
        {"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work", "metadata": {"name": "w"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "deletionTimestamp": CREATED}},
    ],
    ids=lambda each: str(each["kind"]),
)
def test_some_things_stay_here(kept: Document) -> None:
    assert not is_propagated(kept)
    assert is_propagated(RED)


def test_a_change_is_looked_for_where_a_selection_looks() -> None:
    places = watch_scopes(placement()[0])
    assert places & set(scopes_around(ObjectKey("namespace", "", "web")))
    assert places & set(scopes_around(ObjectKey("deployment", "web", "any")))
    assert not places & set(scopes_around(ObjectKey("deployment", "other", "any")))
    assert not places & set(scopes_around(ObjectKey("namespace", "", "other")))


async def test_a_namespace_goes_with_what_is_in_it_and_the_landscape_stays() -> None:
    bench = Bench()
    shoot = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "s", "namespace": "web"},
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "web"}}
    await bench.add(a_namespace(), RED, deployment, {**shoot, "spec": {}}, a_configmap(namespace="other"), a_crp())
    await bench.snapshots.reconcile(request_for(WEB))
    (snapshot,) = await bench.parts("resource_snapshot")
    assert [each["kind"] for each in snapshot["spec"]["selectedResources"]] == ["Namespace", "ConfigMap", "Deployment"]


async def test_a_selector_finds_by_labels() -> None:
    bench = Bench()
    selector = {"group": "", "version": "v1", "kind": "Namespace", "labelSelector": {"matchLabels": {"team": "a"}}}
    labelled = merged(a_namespace("one"), {"metadata": {"labels": {"team": "a"}}})
    await bench.add(a_namespace("two"), labelled, a_crp(spec={"resourceSelectors": [selector]}))
    await bench.snapshots.reconcile(request_for(WEB))
    (snapshot,) = await bench.parts("resource_snapshot")
    assert [each["metadata"]["name"] for each in snapshot["spec"]["selectedResources"]] == ["one"]


def resources_found(document: Document) -> list[str]:
    kind = "ClusterResourcePlacementResourcesFound"
    return [each["message"] for each in document["status"]["conditions"] if each["type"] == kind]


async def test_selectors_that_select_nothing_are_named_until_there_is_something() -> None:
    bench = Bench()
    named = {"group": "", "version": "v1", "kind": "Namespace", "name": "lihgts"}
    role = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "reader"}
    labelled = {"group": "", "version": "v1", "kind": "Namespace", "labelSelector": {"matchLabels": {"team": "a"}}}
    here = {**named, "name": "here"}
    await bench.add(a_namespace("here"), a_crp(spec={"resourceSelectors": [here, named, role, labelled]}))
    await bench.converge()
    (message,) = resources_found(await bench.get())
    assert message == (
        "Nothing that can be placed is selected by spec.resourceSelectors[1]: Namespace lihgts; "
        "spec.resourceSelectors[2]: ClusterRole.rbac.authorization.k8s.io reader; "
        "spec.resourceSelectors[3]: Namespace by its labels."
    )
    reader = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
    await bench.add(merged(a_namespace("lihgts"), {"metadata": {"labels": {"team": "a"}}}), reader)
    await bench.converge()
    assert resources_found(await bench.get()) == []


async def test_an_event_names_what_is_not_there_once() -> None:
    bench = Bench()
    await bench.add(a_crp())
    for _ in range(3):
        await bench.converge()
    events = [each.event for each in await bench.kit.events() if each.event.reason == "ResourceNotFound"]
    assert ["Namespace web" in each.message for each in events] == [True]


def test_what_controllers_keep_on_the_namespace_of_a_project_and_on_a_shoot_stays_here() -> None:
    project = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev", "team": "web"}
    kept = {"namespace.gardener.cloud/project": "u-1", "namespace.gardener.cloud/created-by-project-controller": "true"}
    metadata = {"name": "garden-dev", "labels": project, "annotations": kept, "finalizers": ["gardener"]}
    assert cleaned({"kind": "Namespace", "metadata": metadata})["metadata"] == {
        "name": "garden-dev",
        "labels": {"team": "web"},
    }
    labels = {"shoot.gardener.cloud/status": "healthy", "gardener.cloud/role": "own"}
    assert cleaned({"kind": "Shoot", "metadata": {"name": "a", "labels": labels}})["metadata"] == {
        "name": "a",
        "labels": {"gardener.cloud/role": "own"},
    }
