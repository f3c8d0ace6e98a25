"""Architectures of machine types and images, stated by themselves or among capabilities."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.architectures import (
    architecture_of,
    architectures_of,
    architectures_of_image,
    architectures_of_type,
)

OFFERED: Document = {
    "machineTypes": [
        {"name": "plain"},
        {"name": "arm", "capabilities": {"architecture": ["arm64"], "network": ["fast"]}},
        {"name": "both", "architecture": "amd64", "capabilities": {"architecture": ["arm64"]}},
    ],
    "machineImages": [
        {
            "name": "linux",
            "versions": [
                {"version": "1", "capabilityFlavors": [{"architecture": ["arm64"]}, {"architecture": ["amd64"]}]},
                {"version": "2", "capabilityFlavors": [{"network": ["fast"]}]},
                {"version": "3", "architectures": ["arm64"], "capabilityFlavors": [{"architecture": ["amd64"]}]},
            ],
        }
    ],
}


def test_a_machine_type_has_its_architecture_among_its_capabilities() -> None:
    found = {name: architectures_of_type(name, OFFERED) for name in ("plain", "arm", "both", "none")}
    assert found == {"plain": ["amd64"], "arm": ["arm64"], "both": ["arm64"], "none": []}


def test_a_machine_type_without_capabilities_has_those_of_the_profile() -> None:
    types: list[Document] = [{"name": "open"}, {"name": "stated", "architecture": "arm64"}]
    defined = [{"name": "architecture", "values": ["amd64", "arm64"]}]
    one = {"machineTypes": types, "machineCapabilities": [{"name": "architecture", "values": ["arm64"]}]}
    two = {"machineTypes": types, "machineCapabilities": defined}
    assert [architectures_of_type(name, one) for name in ("open", "stated")] == [["arm64"], ["arm64"]]
    assert [architectures_of_type(name, two) for name in ("open", "stated")] == [["amd64"], ["arm64"]]


def test_an_image_has_the_architectures_of_its_flavors() -> None:
    found = {version: architectures_of_image({"name": "linux", "version": version}, OFFERED) for version in "123"}
    assert found == {"1": ["arm64", "amd64"], "2": ["amd64"], "3": ["arm64"]}


def test_what_is_no_list_states_nothing() -> None:
    assert architecture_of({"capabilities": {"architecture": "arm64"}}) == "amd64"
    assert architectures_of({"architectures": {}, "capabilityFlavors": [{"architecture": 5}, 5]}) == ["amd64"]
