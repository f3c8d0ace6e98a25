"""Scheduling profiles in the deployments: the shipped file, and whoever decides by it."""

from pathlib import Path

import pytest
import yaml

from gardenbus.common.api.configuration.seed_autoscaler import parse_configuration as parse_autoscaler
from gardenbus.common.runtime.configuration_file import read_profiles
from gardenbus.scheduler.settings import load_settings
from tests.support.kubernetes_manifests import COMPOSE, KUBERNETES, compose_services, uncommented

FILE = COMPOSE / "scheduler.yaml"
VARIABLE = "GARDENBUS_SCHEDULER_CONFIGURATIONS"
MOUNTED = "/etc/gardenbus/scheduler.yaml"
PLANNERS = ("managedseedset", "autoscaler")
"""Services that decide as the scheduler does."""


def test_the_shipped_file_serves_one_profile_without_scores_and_more_without_its_hashes(tmp_path: Path) -> None:
    (plain,) = load_settings(["--config", str(FILE)], {}).configuration.served
    assert (plain.scheduler_name, plain.strategy, plain.scores) == ("default-scheduler", "MinimalDistance", ())
    (tmp_path / "scheduler.yaml").write_text(uncommented(FILE))
    default, spread, cheap = load_settings(["--config", str(tmp_path / "scheduler.yaml")], {}).configuration.served
    assert default == plain
    assert (spread.scheduler_name, spread.strategy) == ("spread", "MinimalDistance")
    assert [each.name for each in cheap.scores] == ["MinimalDistance", "SeedAnnotation/cost", "SeedResourcesFit"]
    assert [each.scheduler_name for each in read_profiles(str(tmp_path / "scheduler.yaml"))] == [
        "default-scheduler",
        "spread",
        "cheap",
    ]


@pytest.mark.parametrize("service", PLANNERS)
def test_services_that_decide_as_the_scheduler_does_read_its_file_in_every_deployment(service: str) -> None:
    in_compose = dict(compose_services("compose.yaml"))
    assert f"./scheduler.yaml:{MOUNTED}:ro" in in_compose["scheduler"]["volumes"]
    assert f"./scheduler.yaml:{MOUNTED}:ro" in in_compose[service]["volumes"]
    assert in_compose[service]["environment"][VARIABLE] == MOUNTED
    on_a_machine = (KUBERNETES.parent / "systemd" / "environment" / f"{service}.env").read_text().splitlines()
    assert f"{VARIABLE}={MOUNTED}" in on_a_machine
    workload = next(yaml.safe_load_all((KUBERNETES / "base" / "services" / f"{service}.yaml").read_text()))
    pod = workload["spec"]["template"]["spec"]
    assert {"name": VARIABLE, "value": MOUNTED} in pod["containers"][0]["env"]
    (config,) = (each["projected"] for each in pod["volumes"] if each["name"] == "config")
    maps = {each["configMap"]["name"]: each["configMap"]["items"] for each in config["sources"]}
    assert maps["scheduler"] == [{"key": "scheduler.yaml", "path": "scheduler.yaml"}]


def test_the_shipped_autoscaler_leaves_strategies_to_the_file_of_the_scheduler() -> None:
    configuration = parse_autoscaler((COMPOSE / "autoscaler.yaml").read_bytes())
    assert {each.strategy for each in configuration.schedulers} == {""}
