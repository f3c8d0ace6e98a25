"""The example landscape is what it is said to be."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from gardenbus.cli.documents import Sorted, read_files, sort_out
from gardenbus.gardenlet.decide.configuration import parse_configurations
from gardenbus.scheduler.decide.configuration import parse_configuration
from gardenbus.scheduler.simulate import simulate
from tests.support.builders import a_condition

EXAMPLE = Path(__file__).parents[3] / "examples" / "landscape"


def example() -> Sorted:
    return sort_out(read_files([EXAMPLE]))


def as_seed(configuration: dict[str, Any]) -> dict[str, Any]:
    resources = configuration["resources"]
    left = resources["capacity"]["shoots"] - resources.get("reserved", {}).get("shoots", 0)
    conditions = [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        **configuration["seedConfig"],
        "status": {
            "allocatable": {"shoots": left},
            "conditions": conditions,
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
        },
    }


def test_it_has_what_a_landscape_needs():
    found = example()
    kinds = Counter(document["kind"] for document in found.manifests)
    providers = {each["seedConfig"]["spec"]["provider"]["type"] for each in found.gardenlets}
    regions = {each["seedConfig"]["spec"]["provider"]["region"] for each in found.gardenlets}

    assert kinds == {"CloudProfile": 2, "Project": 2, "ConfigMap": 1, "ExposureClass": 1, "Shoot": 60}
    assert (len(found.gardenlets), len(providers), len(regions)) == (9, 3, 6)
    assert found.scheduler is not None


def test_its_configurations_are_valid():
    found = example()

    assert parse_configuration(msgspec.json.encode(found.scheduler)).strategy == "MinimalDistance"
    for gardenlet in found.gardenlets:
        parse_configurations(msgspec.json.encode(gardenlet))


def test_most_shoots_find_a_seed_and_the_others_fail_for_different_reasons():
    found = example()
    shoots = [document for document in found.manifests if document["kind"] == "Shoot"]
    others = [document for document in found.manifests if document["kind"] != "Shoot"]

    placements = simulate([*map(as_seed, found.gardenlets), *others, *shoots], "MinimalDistance")

    refused = [placement.message for placement in placements if placement.seed is None]
    assert len(placements) == 60
    assert 9 <= len(refused) <= 20
    assert len(set(refused)) >= 8
