"""The example landscape is what it is said to be."""

import re
from collections import Counter
from pathlib import Path

import msgspec
from typer.testing import CliRunner

from gardenbus.cli.main import app
from gardenbus.cli.manifests.files import SortedManifests, read_files, sort_manifests
from gardenbus.cli.simulate.ready_seeds import strategy_in, with_ready_seeds
from gardenbus.cli.simulate.scheduling import simulate
from gardenbus.common.api.configuration.gardenlet import parse_configurations
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.configuration.seed_autoscaler import parse_configuration as parse_autoscaler
from gardenbus.common.api.quantities import parse_quantity

EXAMPLE = Path(__file__).parents[3] / "examples" / "landscape"


def example() -> SortedManifests:
    return sort_manifests(read_files([EXAMPLE]))


def test_it_has_what_a_landscape_needs():
    found = example()
    kinds = Counter(document["kind"] for document in found.manifests)
    providers = {each["seedConfig"]["spec"]["provider"]["type"] for each in found.gardenlets}
    regions = {each["seedConfig"]["spec"]["provider"]["region"] for each in found.gardenlets}

    assert kinds == {
        "CloudProfile": 3,
        "Project": 4,
        "ConfigMap": 1,
        "Secret": 4,
        "ExposureClass": 1,
        "Shoot": 66,
        "ManagedSeedSet": 1,
        "SeedAutoscaler": 1,
    }
    assert (len(found.gardenlets), len(providers), len(regions)) == (10, 3, 6)
    assert len(found.schedulers) == 1
    assert found.autoscaler is not None


def test_its_configurations_are_valid():
    found = example()

    assert parse_configuration(msgspec.json.encode(found.schedulers[0])).strategy == "MinimalDistance"
    assert parse_autoscaler(msgspec.json.encode(found.autoscaler)).schedulers[0].strategy == "MinimalDistance"
    for gardenlet in found.gardenlets:
        parse_configurations(msgspec.json.encode(gardenlet))


def test_most_shoots_find_a_seed_and_the_others_fail_for_different_reasons():
    found = example()
    shoots = [document for document in found.manifests if document["kind"] == "Shoot"]
    others = [document for document in found.manifests if document["kind"] != "Shoot"]

    placements = simulate(with_ready_seeds([*found.gardenlets, *others, *shoots]), "MinimalDistance")

    rejected = [placement.message for placement in placements if placement.seed is None]
    assert len(placements) == 66
    assert 9 <= len(rejected) <= 20
    assert len(set(rejected)) >= 8


def test_simulate_takes_the_folder_as_one_landscape():
    result = CliRunner().invoke(app, ["simulate", str(EXAMPLE)])

    lines = result.stdout.splitlines()
    assert result.exit_code == 0, result.output
    assert re.fullmatch(rf"{re.escape(str(EXAMPLE))}: \d\d of 66 placed", lines[0])
    assert any("garden-orbit/" in line and "<none>" not in line for line in lines)


def test_control_planes_can_move_between_its_seeds():
    found = example()
    secrets = {
        (document["metadata"]["namespace"], document["metadata"]["name"])
        for document in found.manifests
        if document["kind"] == "Secret"
    }
    (grove,) = [document for document in found.manifests if document["kind"] == "ManagedSeedSet"]
    grown = grove["spec"]["template"]["spec"]["gardenlet"]["config"]
    backups = [gardenlet["seedConfig"]["spec"]["backup"] for gardenlet in (*found.gardenlets, grown)]

    references = {(backup["credentialsRef"]["namespace"], backup["credentialsRef"]["name"]) for backup in backups}
    assert references == secrets


def test_a_gardenlet_stands_for_a_ready_seed_with_what_it_would_give_away():
    cork = next(each for each in with_ready_seeds(example().gardenlets) if each["metadata"]["name"] == "aws-cork")

    assert parse_quantity(cork["status"]["allocatable"]["shoots"]) == 6
    assert cork["spec"]["provider"]["type"] == "aws"
    assert strategy_in(read_files([EXAMPLE])) == "MinimalDistance"
    assert strategy_in([]) is None
    mine = {"schedulerName": "mine", "candidateDeterminationStrategy": "SameRegion"}
    own = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration"}
    assert strategy_in([{**own, "schedulers": {"shoot": mine}}, *read_files([EXAMPLE])]) == "MinimalDistance"
