"""Versions, architectures and images that a shoot leaves open or states in part."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.apiserver.domain.version_defaults import open_problems, with_complete_versions
from gardenbus.common.api.document import Document

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PAST = "2026-05-01T00:00:00Z"
OFFER: Document = {
    "kubernetes": {
        "versions": [
            {"version": "1.35.0", "classification": "preview"},
            {"version": "1.34.2", "classification": "supported"},
            {"version": "1.34.10"},
            {"version": "1.33.7", "expirationDate": "2026-07-01T00:00:00Z"},
            {"version": "1.33.8", "classification": "deprecated"},
            {"version": "1.33.9", "expirationDate": PAST},
            {"version": "1.32.4", "classification": "deprecated"},
        ]
    },
    "machineTypes": [
        {"name": "m5.large"},
        {"name": "m6g.large", "architecture": "arm64"},
        {"name": "m7g.large", "capabilities": {"architecture": ["arm64"]}},
    ],
    "machineImages": [
        {
            "name": "gardenlinux",
            "versions": [
                {"version": "1443.1.0", "inPlaceUpdates": {"supported": True}},
                {"version": "1592.3.0", "architectures": ["amd64", "arm64"]},
                {"version": "1592.10.0", "classification": "deprecated"},
                {"version": "1593.0.0", "classification": "preview"},
            ],
        },
        {"name": "ubuntu", "versions": [{"version": "22.4.1"}, {"version": "24.4.0", "classification": "preview"}]},
        {"name": "old", "versions": [{"version": "1.0.0", "classification": "deprecated"}, {"version": "1.0"}]},
    ],
}


def a_spec(version: str | None = None, *workers: Document) -> Document:
    return {"kubernetes": {"version": version} if version else {}, "provider": {"workers": list(workers)}}


def a_pool(**machine: Any) -> Document:
    return {"name": "a", "machine": {"type": "m5.large", **machine}}


def completed(spec: Document, before: Document | None = None, offered: Document = OFFER) -> Document:
    return with_complete_versions(spec, before or {}, offered, NOW)


def image_of(spec: Document, before: Document | None = None, offered: Document = OFFER) -> Any:
    return completed(spec, before, offered)["provider"]["workers"][0]["machine"].get("image")


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ("", "1.34.10"),
        ("1", "1.34.10"),
        ("1.", "1.34.10"),
        ("1.34", "1.34.10"),
        ("1.33", "1.33.7"),
        ("1.33.8", "1.33.8"),
        ("1.32", "1.32"),
        ("1.31", "1.31"),
        ("v1.34", "v1.34"),
        ("1.34.", "1.34."),
        ("newest", "newest"),
    ],
)
def test_a_version_in_part_is_the_newest_supported_that_begins_with_it(given: str, version: str) -> None:
    assert completed(a_spec(given))["kubernetes"].get("version", "") == version
    pool = {"name": "a", "kubernetes": {"version": given}}
    of_pool = completed(a_spec("1.34.10", pool))["provider"]["workers"][0]["kubernetes"]["version"]
    assert of_pool == (version if given else "")


def test_a_version_in_part_is_completed_on_an_update_too_and_never_lowers_what_is_there() -> None:
    assert completed(a_spec("1.34"), a_spec("1.34.2"))["kubernetes"]["version"] == "1.34.10"
    assert completed(a_spec("1.33"), a_spec("1.33.8"))["kubernetes"]["version"] == "1.33.8"
    assert completed(a_spec("1.32"), a_spec("1.32.4"))["kubernetes"]["version"] == "1.32.4"
    assert completed(a_spec("1.34"), a_spec("1.34"))["kubernetes"]["version"] == "1.34.10"


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ("", "1592.3.0"),
        ("1592", "1592.3.0"),
        ("v1592", "1592.3.0"),
        ("1592.", "1592.3.0"),
        ("1592.10", "1592.10.0"),
        ("1591", "1591"),
        ("1593", "1593"),
        ("1592.3.0", "1592.3.0"),
        ("1592.4.0-rc.1", "1592.4.0-rc.1"),
    ],
)
def test_an_image_in_part_is_the_newest_that_is_not_deprecated_where_there_is_one(given: str, version: str) -> None:
    image = {"name": "gardenlinux", **({"version": given} if given else {})}
    assert image_of(a_spec("1.34.10", a_pool(image=image)))["version"] == version


def test_an_exact_match_comes_first() -> None:
    assert image_of(a_spec("1.34.10", a_pool(image={"name": "old", "version": "1.0"})))["version"] == "1.0"
    assert image_of(a_spec("1.34.10", a_pool(image={"name": "old", "version": "1"})))["version"] == "1.0"


def test_what_a_shoot_leaves_open_is_the_newest() -> None:
    named = {"name": "b", "machine": {"image": {"name": "ubuntu"}}}
    workers = completed(a_spec(None, a_pool(), named))["provider"]["workers"]
    images = [worker["machine"]["image"] for worker in workers]
    assert images == [{"name": "gardenlinux", "version": "1592.3.0"}, {"name": "ubuntu", "version": "22.4.1"}]


def test_what_is_stated_stays() -> None:
    spec = a_spec("1.33.7", a_pool(image={"name": "ubuntu", "version": "22.4.1"}))
    assert completed(spec) is spec
    assert completed(spec, offered={}) is spec
    assert completed(a_spec("1.34", a_pool()), offered={}) == a_spec("1.34", a_pool())


@pytest.mark.parametrize("name", [["gardenlinux"], {"is": "none"}, 7, True])
def test_the_name_of_an_image_that_is_no_text_is_left_to_validation(name: Any) -> None:
    spec = a_spec("1.34.10", a_pool(image={"name": name}))
    assert completed(spec) == spec


class TestAnImageThatAPoolHas:
    BEFORE = a_spec(
        "1.34.10", a_pool(image={"name": "gardenlinux", "version": "1592.10.0", "providerConfig": {"a": 1}})
    )

    @pytest.mark.parametrize(
        ("stated", "stored"),
        [
            (None, {"name": "gardenlinux", "version": "1592.10.0", "providerConfig": {"a": 1}}),
            ({}, {"name": "gardenlinux", "version": "1592.10.0", "providerConfig": {"a": 1}}),
            ({"name": "gardenlinux"}, {"name": "gardenlinux", "version": "1592.10.0"}),
            (
                {"name": "gardenlinux", "version": "", "providerConfig": {"b": 2}},
                {"name": "gardenlinux", "version": "1592.10.0", "providerConfig": {"b": 2}},
            ),
            ({"providerConfig": {"b": 2}}, {"name": "gardenlinux", "version": "1592.10.0", "providerConfig": {"b": 2}}),
            ({"name": "gardenlinux", "version": "1592"}, {"name": "gardenlinux", "version": "1592.10.0"}),
            (
                {"name": "ubuntu", "providerConfig": {"b": 2}},
                {"name": "ubuntu", "version": "22.4.1", "providerConfig": {"b": 2}},
            ),
        ],
    )
    def test_stays_but_for_what_is_stated(self, stated: Any, stored: Document) -> None:
        assert image_of(a_spec("1.34.10", a_pool(image=stated)), self.BEFORE) == stored


class TestArchitectures:
    @pytest.mark.parametrize(
        ("kind", "architecture"), [("m5.large", None), ("m6g.large", "arm64"), ("m7g.large", "arm64"), ("m9", None)]
    )
    def test_a_pool_has_the_one_of_its_machine_type(self, kind: str, architecture: str | None) -> None:
        spec = completed(a_spec("1.34.10", a_pool(type=kind)))
        assert spec["provider"]["workers"][0]["machine"].get("architecture") == architecture

    def test_one_that_is_stated_stays(self) -> None:
        spec = completed(a_spec("1.34.10", a_pool(type="m6g.large", architecture="amd64")))
        assert spec["provider"]["workers"][0]["machine"]["architecture"] == "amd64"

    def test_a_pool_keeps_its_own_though_the_profile_lists_its_type_no_more(self) -> None:
        before = a_spec("1.34.10", a_pool(type="gone", architecture="arm64"))
        machine = completed(a_spec("1.34.10", a_pool(type="gone")), before)["provider"]["workers"][0]["machine"]
        assert machine["architecture"] == "arm64"

    def test_the_newest_image_is_one_of_the_machines_architecture(self) -> None:
        assert image_of(a_spec("1.34.10", a_pool(type="m6g.large"))) == {"name": "gardenlinux", "version": "1592.3.0"}
        assert image_of(a_spec("1.34.10", a_pool(architecture="riscv64"))) is None


def test_machines_that_are_updated_in_place_get_an_image_that_can_be() -> None:
    pool = {**a_pool(), "updateStrategy": "AutoInPlaceUpdate"}
    assert image_of(a_spec("1.34.10", pool)) == {"name": "gardenlinux", "version": "1443.1.0"}


def test_an_image_has_the_capabilities_of_the_machine_type() -> None:
    flavors = [
        {"version": f"{number}.0.0", "capabilityFlavors": [{"network": [name]}]}
        for number, name in ((1, "fast"), (2, "slow"))
    ]
    offered: Document = {
        "machineCapabilities": [{"name": "network", "values": ["fast", "slow"]}],
        "machineTypes": [{"name": "m5.large", "capabilities": {"network": ["fast"]}}],
        "machineImages": [{"name": "linux", "versions": flavors}],
    }
    assert image_of(a_spec("1.34.10", a_pool()), offered=offered) == {"name": "linux", "version": "1.0.0"}


def test_what_stays_open_is_a_problem_where_the_profile_lists_some() -> None:
    previews = [{"version": "1.0.0", "classification": "preview"}]
    offered: Document = {
        "kubernetes": {"versions": [{"version": "1.34.1", "classification": "deprecated"}]},
        "machineImages": [{"name": "new", "versions": previews}],
    }
    named = {"name": "b", "machine": {"image": {"name": "new"}}}
    spec = completed(a_spec(None, a_pool(architecture="riscv64"), named), offered=offered)
    found = [one.field for one in open_problems(spec, {}, offered)]
    workers = "spec.provider.workers"
    assert found == ["spec.kubernetes.version", f"{workers}[0].machine.image", f"{workers}[1].machine.image.version"]
    assert list(open_problems(spec, spec, offered)) == []
    assert list(open_problems(spec, {}, {})) == []
