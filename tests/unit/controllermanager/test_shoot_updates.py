"""Updates of versions. Cases as in Gardener's maintenance reconciler test."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_updates import VersionUpdate, maintained_spec
from tests.support.builders import merged

NOW = datetime(2026, 6, 1, tzinfo=UTC)
EXPIRED = {"expirationDate": "2026-05-01T00:00:00Z"}


def versions(*listed: str) -> list[Document]:
    """Each a version; `!` in front: expired, `?`: a preview."""
    marks: dict[str, Document] = {"!": EXPIRED, "?": {"classification": "preview"}}
    return [{"version": one.lstrip("!?"), **marks.get(one[0], {})} for one in listed]


def an_offer(kubernetes: list[Document], images: list[Document] | None = None, strategy: str | None = None) -> Document:
    image: Document = {"name": "gardenlinux", "versions": images or []}
    return {
        "kubernetes": {"versions": kubernetes},
        "machineImages": [image if strategy is None else {**image, "updateStrategy": strategy}],
        "machineTypes": [{"name": "small"}, {"name": "arm", "architecture": "arm64"}],
    }


def a_pool(image: str | None = "1.0.0", kubernetes: str | None = None, **changes: Any) -> Document:
    pool: Document = {"name": "pool", "machine": {"type": "small"}}
    if image is not None:
        pool["machine"]["image"] = {"name": "gardenlinux", "version": image}
    if kubernetes is not None:
        pool["kubernetes"] = {"version": kubernetes}
    return merged(pool, changes)


def a_spec(version: str, *pools: Document, automatic: bool | None = None) -> Document:
    spec: Document = {
        "kubernetes": {"version": version, "kubelet": {}},
        "provider": {"type": "aws", "workers": list(pools)},
    }
    if automatic is not None:
        both = {"kubernetesVersion": automatic, "machineImageVersion": automatic}
        spec["maintenance"] = {"autoUpdate": both}
    return spec


def versions_after(spec: Document, offer: Document) -> tuple[Any, list[Any]]:
    """Kubernetes' version, and the versions of kubelet and image of each pool."""
    new = maintained_spec(spec, offer, NOW).spec
    pools = [
        (pool.get("kubernetes", {}).get("version"), pool["machine"].get("image", {}).get("version"))
        for pool in new["provider"]["workers"]
    ]
    return new["kubernetes"]["version"], pools


@pytest.mark.parametrize(
    ("before", "automatic", "listed", "after"),
    [
        ("1.33.1", None, ["1.33.1", "1.33.2", "1.34.0"], "1.33.2"),
        ("1.33.1", True, ["1.33.1", "1.33.2", "?1.33.3", "!1.33.4"], "1.33.2"),
        ("1.33.1", False, ["1.33.1", "1.33.2"], "1.33.1"),
        ("1.33.1", False, ["!1.33.1", "1.33.2", "1.34.0"], "1.33.2"),
        ("1.33.1", False, ["!1.33.1", "1.34.0", "1.34.3", "1.35.0"], "1.34.3"),
        ("1.33.1", False, ["!1.33.1", "!1.34.0", "1.35.0"], "1.34.0"),
        ("1.33.1", False, ["1.33.2", "1.34.0"], "1.33.2"),
        ("1.33.1", True, ["1.33.1"], "1.33.1"),
        ("1.33.1", True, [], "1.33.1"),
    ],
)
def test_the_version_of_the_control_plane(before: str, automatic: bool | None, listed: list[str], after: str) -> None:
    assert versions_after(a_spec(before, automatic=automatic), an_offer(versions(*listed)))[0] == after


def test_a_forced_update_without_a_version_fails_and_changes_nothing() -> None:
    spec = a_spec("1.33.1")
    found = maintained_spec(spec, an_offer(versions("!1.33.1", "1.35.0")), NOW)
    assert found.spec is spec
    (update,) = found.updates
    assert not update.is_successful
    assert update.reason == "Kubernetes version expired - force update required"
    assert "found no version" in update.description


def test_a_pool_is_never_above_its_control_plane() -> None:
    offer = an_offer(versions("!1.32.1", "1.33.1", "1.33.5", "!1.33.2"))
    spec = a_spec("1.33.1", a_pool(kubernetes="1.32.1"), a_pool(kubernetes="1.33.1"), automatic=False)
    assert versions_after(spec, offer) == ("1.33.1", [("1.33.1", "1.0.0"), ("1.33.1", "1.0.0")])
    follows = a_spec("1.33.1", a_pool(kubernetes="1.33.1"))
    assert versions_after(follows, offer) == ("1.33.5", [("1.33.5", "1.0.0")])


def test_a_pool_of_a_shoot_without_a_version_is_updated_for_itself() -> None:
    spec = {"provider": {"workers": [a_pool(kubernetes="1.33.1")]}}
    (update,) = maintained_spec(spec, an_offer(versions("1.33.1", "1.33.2")), NOW).updates
    assert update.version == "1.33.2"


@pytest.mark.parametrize(
    ("strategy", "before", "listed", "after"),
    [
        (None, "1.0.0", ["1.0.0", "1.1.0", "2.0.0"], "2.0.0"),
        ("major", "1.0.0", ["1.0.0", "1.1.0", "2.0.0", "?3.0.0"], "2.0.0"),
        ("minor", "1.0.0", ["1.0.0", "1.1.0", "2.0.0"], "1.1.0"),
        ("minor", "1.0.0", ["!1.0.0", "2.0.0", "3.0.0"], "2.0.0"),
        ("patch", "1.0.0", ["1.0.0", "1.0.1", "1.1.0", "2.0.0"], "1.0.1"),
        ("patch", "1.0.0", ["!1.0.0", "1.1.0", "1.1.2", "1.2.0"], "1.1.2"),
        ("patch", "1.0.0", ["1.0.0", "1.1.0"], "1.0.0"),
    ],
)
def test_the_version_of_an_image_goes_by_its_update_strategy(
    strategy: str | None, before: str, listed: list[str], after: str
) -> None:
    offer = an_offer(versions("1.33.1"), versions(*listed), strategy)
    assert versions_after(a_spec("1.33.1", a_pool(before)), offer) == ("1.33.1", [(None, after)])


@pytest.mark.parametrize(
    ("pool", "newest", "is_taken"),
    [
        (a_pool(), {"architectures": ["arm64"]}, False),
        (a_pool(machine={"type": "arm"}), {"architectures": ["amd64", "arm64"]}, True),
        (a_pool(machine={"architecture": "arm64"}), {}, False),
        (a_pool(cri={"name": "containerd"}), {"cri": [{"name": "containerd"}]}, True),
        (a_pool(cri={"name": "containerd"}), {"cri": [{"name": "docker"}]}, False),
        (a_pool(), {"kubeletVersionConstraint": ">= 1.34"}, False),
        (a_pool(), {"kubeletVersionConstraint": "< 1.34"}, True),
        (a_pool(kubernetes="1.32.1"), {"kubeletVersionConstraint": ">= 1.33"}, False),
    ],
)
def test_an_image_must_run_on_the_pools_machines(pool: Document, newest: Document, is_taken: bool) -> None:
    images = [{"version": "1.0.0", "architectures": ["amd64", "arm64"]}, {"version": "1.0.1", **newest}]
    offer = an_offer(versions("1.33.1", "1.32.1"), images)
    assert versions_after(a_spec("1.33.1", pool), offer)[1][0] == (
        pool.get("kubernetes", {}).get("version"),
        "1.0.1" if is_taken else "1.0.0",
    )


def test_an_image_that_the_profile_has_not_stays() -> None:
    unknown = a_pool(machine={"image": {"name": "ubuntu"}})
    assert versions_after(a_spec("1.33.1", unknown, a_pool(None)), an_offer([], versions("2.0.0")))[1] == [
        (None, "1.0.0"),
        (None, None),
    ]


def test_updates_say_what_was_done_and_why() -> None:
    offer = an_offer(versions("!1.33.1", "1.33.2"), versions("1.0.0", "1.0.1"), "patch")
    found = maintained_spec(a_spec("1.33.1", a_pool()), offer, NOW)
    assert found.updates == (
        VersionUpdate(
            "Kubernetes", "Control Plane", "1.33.1", "1.33.2", "Kubernetes version expired - force update required"
        ),
        VersionUpdate(
            "Machine image",
            'Worker pool "pool"',
            "1.0.0",
            "1.0.1",
            "Automatic update of the Machine image version is configured (image update strategy: patch)",
            "gardenlinux",
        ),
    )
    assert [update.description for update in found.updates] == [
        'Updated Kubernetes version from "1.33.1" to "1.33.2"',
        'Updated machine image "gardenlinux" from "1.0.0" to "1.0.1"',
    ]
    assert found.spec["kubernetes"]["kubelet"] == {}
