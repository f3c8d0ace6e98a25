"""Machine images in a maintenance: each case of Gardener's `maintainMachineImages`, its helpers and their integration.

Source: `maintenance/reconciler_test.go`, `maintenance/helper/helper_test.go`, and `maintenance_test.go` of the
integration tests. A version has a mark in front: `!` expired, `?` preview, `~` deprecated; `*` the pool's own.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_updates import MaintainedSpec, maintained_spec
from tests.support.builders import merged

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MARKS: dict[str, Document] = {
    "!": {"expirationDate": "2026-05-31T00:00:00Z"},
    "?": {"classification": "preview"},
    "~": {"classification": "deprecated"},
    "*": {},
}
FAILS = "fails"


def a_version(marked: str, **changes: Any) -> Document:
    version: Document = {"version": marked.lstrip("!?~*"), "cri": [{"name": "containerd"}], "architectures": ["amd64"]}
    for mark in marked.removesuffix(version["version"]):
        version |= MARKS[mark]
    return merged(version, changes)


def an_offer(strategy: str, *versions: Document, **changes: Any) -> Document:
    image = {"name": "coreos", "updateStrategy": strategy, "versions": list(versions)}
    types = [{"name": "large"}, {"name": "large-arm", "architecture": "arm64"}]
    return merged({"kubernetes": {"versions": []}, "machineImages": [image], "machineTypes": types}, changes)


def a_pool(version: str = "1.0.0", name: str = "pool", **changes: Any) -> Document:
    machine = {"type": "large", "image": {"name": "coreos", "version": version}}
    return merged({"name": name, "machine": machine}, changes)


def a_spec(*pools: Document, automatic: bool = True, kubernetes: str = "1.25.1") -> Document:
    updates = {"kubernetesVersion": False, "machineImageVersion": automatic}
    return {
        "kubernetes": {"version": kubernetes},
        "maintenance": {"autoUpdate": updates},
        "provider": {"workers": list(pools)},
    }


def images_of(found: MaintainedSpec) -> list[str]:
    return [pool["machine"]["image"]["version"] for pool in found.spec["provider"]["workers"]]


class Case(NamedTuple):
    strategy: str
    listed: str
    expected: str
    automatic: bool = True


AUTOMATIC = True
FORCED = False

VERSIONS = {
    "major: the newest of all": Case("major", "*1.0.0 1.5.3", "1.5.3"),
    "major: the newest patch of the own minor first": Case("major", "*1.0.0 1.5.3 1.0.2", "1.0.2"),
    "major: expired, to the newest of all": Case("major", "*!1.0.0 1.5.3", "1.5.3", FORCED),
    "major: not listed, to the newest patch first": Case("major", "1.1.1 1.0.1", "1.0.1"),
    "major: the newest is expired, and the own": Case("major", "1.0.0 1.5.3 *~!1.7.2", FAILS),
    "major: on the newest": Case("major", "1.0.0 *1.5.3", "1.5.3"),
    "major: the next major has previews alone": Case("major", "*!1.0.0 ?2.1.1 3.4.1", "3.4.1"),
    "major: deprecated ones after supported ones": Case("major", "*0.0.4 ~3.0.0 2.0.0 ~2.1.1 0.4.1", "2.0.0"),
    "major: expired, deprecated ones after supported ones": Case("major", "*!0.0.4 ~3.0.0 2.0.0", "2.0.0", FORCED),
    "major: expired, the newest patch first": Case("major", "*~!0.0.1 ~0.0.2 0.0.4 3.0.0", "0.0.4", FORCED),
    "major: no step to what is expired, even where forced": Case("major", "*!1.0.0 !2.0.0", FAILS, FORCED),
    "patch: the newest of the own minor": Case("patch", "*1.0.0 1.0.2", "1.0.2"),
    "patch: deprecated ones where there are no others": Case("patch", "*~0.0.1 ~0.0.2 ~0.0.3 0.3.0", "0.0.3"),
    "patch: expired, the newest of the own minor": Case("patch", "*~!0.0.1 ~0.0.2 ~0.0.3 0.3.0", "0.0.3", FORCED),
    "patch: expired, to the next minor that there is": Case("patch", "2.1.0 1.2.1 1.2.0 *!1.0.0", "1.2.1"),
    "patch: not listed, to the next minor that there is": Case("patch", "1.3.1 1.2.5 1.2.4", "1.2.5"),
    "patch: the next minor has previews alone": Case("patch", "*!1.0.0 ?1.2.4 1.4.1", "1.4.1"),
    "patch: the next minor has expired ones": Case("patch", "*!1.0.0 ?1.2.5 !1.2.4 1.4.1", "1.2.4"),
    "patch: on the newest of the minor": Case("patch", "*1.1.1 1.2.0", "1.1.1"),
    "patch: the newest is expired, and the own": Case("patch", "1.0.0 1.5.3 *~!1.7.2", FAILS),
    "patch: never to the next major": Case("patch", "*!0.4.1 2.0.0 ~2.1.1 ~3.0.0", FAILS, FORCED),
    "minor: the newest patch of the own minor first": Case("minor", "*1.0.0 1.0.6 1.5.1 3.2.5", "1.0.6"),
    "minor: the newest of the own major": Case("minor", "*1.0.0 1.3.0 1.5.1 3.2.5", "1.5.1"),
    "minor: expired, the newest of the own major": Case("minor", "*!1.0.0 1.3.0 1.5.1 3.2.5", "1.5.1"),
    "minor: expired on the newest of the major": Case("minor", "*!1.5.9 3.4.9 3.5.9", "3.5.9"),
    "minor: expired, deprecated ones of the next major": Case("minor", "*!0.4.1 2.0.0 ~2.1.1 ~3.0.0", "2.1.1", FORCED),
    "minor: the next major has previews alone": Case("minor", "*!1.0.0 ?2.1.1 3.4.1", "3.4.1"),
    "minor: the newest is expired, and the own": Case("minor", "1.0.0 1.5.3 *~!1.7.2", FAILS),
    "minor: on the newest of the major": Case("minor", "*1.2.4 2.2.5", "1.2.4"),
    "minor: expired on the newest of all": Case("minor", "1.0.0 *!3.0.1", FAILS, FORCED),
    "neither expired nor automatic": Case("major", "*1.0.0 1.5.3", "1.0.0", FORCED),
}


@pytest.mark.parametrize("case", VERSIONS.values(), ids=VERSIONS)
def test_the_version_that_an_image_gets(case: Case) -> None:
    marked = case.listed.split()
    own = next((each.lstrip("!?~*") for each in marked if each.startswith("*")), "1.0.0")
    offer = an_offer(case.strategy, *map(a_version, marked))
    found = maintained_spec(a_spec(a_pool(own), automatic=case.automatic), offer, NOW)
    if case.expected == FAILS:
        assert [update.is_successful for update in found.updates] == [False]
        assert images_of(found) == [own]
        return
    assert images_of(found) == [case.expected]
    assert [update.version for update in found.updates] == ([case.expected] if case.expected != own else [])


NEWEST = "1.5.3"
CONTAINERD: Document = {"name": "containerd"}


def with_runtimes(*types: str) -> Document:
    return {"cri": {**CONTAINERD, "containerRuntimes": [{"type": each} for each in types]}}


def having(*types: str) -> Document:
    return {"cri": [with_runtimes(*types)["cri"]]}


OTHER: Document = {"cri": [{"name": "other"}]}
RUNTIMES: dict[str, tuple[Document, Document, list[Document], list[str]]] = {
    "a pool that states none has containerd": ({}, OTHER, [a_pool()], ["1.0.0"]),
    "a pool with containerd": ({}, OTHER, [a_pool(cri=CONTAINERD)], ["1.0.0"]),
    "a pool with another interface stays, one without is updated": (
        OTHER,
        {},
        [a_pool(cri={"name": "other"}), a_pool(name="second")],
        ["1.0.0", NEWEST],
    ),
    "a pool whose runtime the new one lacks stays": (
        having("gvisor"),
        {},
        [a_pool(**with_runtimes("gvisor")), a_pool(name="second", cri=CONTAINERD)],
        ["1.0.0", NEWEST],
    ),
    "a pool is updated when the new one has all of its runtimes": (
        having("gvisor", "kata-container", "some-other-cr"),
        having("gvisor", "kata-container"),
        [
            a_pool(**with_runtimes("gvisor", "kata-container", "some-other-cr")),
            a_pool(name="second", **with_runtimes("gvisor", "kata-container")),
            a_pool(name="third", **with_runtimes("gvisor")),
        ],
        ["1.0.0", NEWEST, NEWEST],
    ),
}


@pytest.mark.parametrize(("first", "newest", "pools", "expected"), RUNTIMES.values(), ids=RUNTIMES)
def test_the_new_version_has_the_container_runtimes_of_the_pool(
    first: Document, newest: Document, pools: list[Document], expected: list[str]
) -> None:
    offer = an_offer("major", a_version("1.0.0", **first), a_version(NEWEST, **newest))
    assert images_of(maintained_spec(a_spec(*pools), offer, NOW)) == expected


@pytest.mark.parametrize(
    ("constraint", "control_plane", "own", "expected"),
    [
        ("< 1.26", "1.26.0", None, "1.0.0"),
        ("< 1.26", "1.25.1", None, NEWEST),
        (">= 1.26", "1.26.0", "1.25.0", "1.0.0"),
        (">= 1.26", "1.27.0", "1.26.0", NEWEST),
    ],
)
def test_the_new_version_runs_with_the_kubelet_of_the_pool(
    constraint: str, control_plane: str, own: str | None, expected: str
) -> None:
    offer = an_offer("major", a_version("1.0.0"), a_version(NEWEST, kubeletVersionConstraint=constraint))
    pool = a_pool(kubernetes={"version": own}) if own else a_pool()
    assert images_of(maintained_spec(a_spec(pool, kubernetes=control_plane), offer, NOW)) == [expected]


def test_the_new_version_has_the_architecture_of_the_pool() -> None:
    both = {"architectures": ["amd64", "arm64"]}
    versions = [a_version("1.0.0", **both), a_version("1.1.2", architectures=["arm64"]), a_version("1.7.1")]
    pools = [a_pool(machine={"type": "large-arm"}), a_pool(name="stated", machine={"architecture": "arm64"}), a_pool()]
    found = maintained_spec(a_spec(*pools), an_offer("major", *versions), NOW)
    assert images_of(found) == ["1.1.2", "1.1.2", "1.7.1"]


@pytest.mark.parametrize("pool", [a_pool(machine={"architecture": "arm64"}), a_pool(cri={"name": "test-cri"})])
def test_a_pool_on_which_no_version_runs_cannot_be_updated(pool: Document) -> None:
    (update,) = maintained_spec(a_spec(pool), an_offer("major", a_version("1.0.0"), a_version("1.1.0")), NOW).updates
    assert not update.is_successful


IN_PLACE: Document = {"inPlaceUpdates": {"supported": True, "minVersionForUpdate": "1.0.0"}}
OF_ITSELF: Document = {"inPlaceUpdates": {"supported": True}}


@pytest.mark.parametrize("strategy", ["AutoInPlaceUpdate", "ManualInPlaceUpdate"])
@pytest.mark.parametrize(
    ("own", "first", "second", "expected"),
    [
        ("1.0.0", OF_ITSELF, IN_PLACE, "1.1.0"),
        ("1.0.0", {}, IN_PLACE, "1.1.0"),
        ("1.0.0", OF_ITSELF, {}, "1.0.0"),
        ("1.0.0", OF_ITSELF, OF_ITSELF, "1.0.0"),
        ("0.1.0", {}, IN_PLACE, FAILS),
    ],
)
def test_machines_that_are_updated_in_place_go_where_their_version_can(
    strategy: str, own: str, first: Document, second: Document, expected: str
) -> None:
    offer = an_offer("major", a_version("1.0.0", **first), a_version("1.1.0", **second))
    found = maintained_spec(a_spec(a_pool(own, updateStrategy=strategy)), offer, NOW)
    assert images_of(found) == [own if expected == FAILS else expected]
    assert [update.is_successful for update in found.updates] == ([expected != FAILS] if expected != own else [])


@pytest.mark.parametrize(
    ("of_machine", "of_image", "expected"),
    [
        ({"some": ["yes"]}, [{"some": ["yes"]}], NEWEST),
        ({"some": ["no"]}, [{"some": ["yes"]}], "1.0.0"),
        ({"some": ["no"]}, [{"some": ["yes"]}, {"some": ["no"]}], NEWEST),
        ({}, [{"some": ["yes"]}], NEWEST),
        ({"some": ["no"]}, [], NEWEST),
    ],
)
def test_the_new_version_has_the_capabilities_of_the_machine(
    of_machine: Document, of_image: list[Document], expected: str
) -> None:
    defined = [{"name": "architecture", "values": ["amd64"]}, {"name": "some", "values": ["yes", "no"]}]
    versions = [a_version("1.0.0"), a_version(NEWEST, capabilityFlavors=of_image)]
    types = [{"name": "large", "capabilities": of_machine}]
    offer = an_offer("major", *versions, machineCapabilities=defined, machineTypes=types)
    assert images_of(maintained_spec(a_spec(a_pool()), offer, NOW)) == [expected]


def test_each_pool_goes_by_its_own_image() -> None:
    other = {"name": "gardenlinux", "updateStrategy": "major", "versions": [a_version("1.0.0"), a_version("1.0.1")]}
    offer = an_offer("major", a_version("1.0.0"), a_version(NEWEST))
    offer["machineImages"].append(other)
    second = a_pool(name="second", machine={"image": {"name": "gardenlinux"}})
    assert images_of(maintained_spec(a_spec(a_pool(), second), offer, NOW)) == [NEWEST, "1.0.1"]


def test_one_pool_fails_and_the_other_is_updated() -> None:
    offer = an_offer("major", a_version("~!0.0.3"), a_version("3.0.1"), a_version("~!4.0.0"))
    found = maintained_spec(a_spec(a_pool("0.0.3"), a_pool("4.0.0", "second"), automatic=False), offer, NOW)
    assert images_of(found) == ["3.0.1", "4.0.0"]
    assert [update.is_successful for update in found.updates] == [True, False]


def test_an_image_that_is_not_offered_stays_and_holds_no_other_pool_up() -> None:
    """A difference: Gardener updates no image at all, and says so in its log alone."""
    offer = an_offer("major", a_version("1.0.0"), a_version(NEWEST))
    unknown = a_pool(machine={"image": {"name": "gone"}})
    found = maintained_spec(a_spec(unknown, a_pool(name="second")), offer, NOW)
    assert images_of(found) == ["1.0.0", NEWEST]


def test_an_image_is_chosen_for_the_kubelet_that_the_maintenance_leads_to() -> None:
    """A difference: Gardener goes by the kubelet of before, and its update is rejected where both do not fit."""
    offer = an_offer("major", a_version("1.0.0"), a_version(NEWEST, kubeletVersionConstraint="< 1.26"))
    offer["kubernetes"]["versions"] = [a_version("!1.25.1"), a_version("1.26.0")]
    found = maintained_spec(a_spec(a_pool()), offer, NOW)
    assert (found.spec["kubernetes"]["version"], images_of(found)) == ("1.26.0", ["1.0.0"])
