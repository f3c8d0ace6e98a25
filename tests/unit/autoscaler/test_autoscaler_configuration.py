"""The configuration file of the autoscaler, and how it is found."""

from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from gardenbus.autoscaler.settings import load_settings
from gardenbus.common.api.configuration.seed_autoscaler import (
    AutoscalerConfiguration,
    SchedulerReference,
    parse_configuration,
)
from gardenbus.common.errors import SettingsInvalid

HEAD = "apiVersion: seedautoscaler.config.gardener.cloud/v1alpha1\nkind: SeedAutoscalerConfiguration\n"
FULL = f"""{HEAD}
controllers:
  seedAutoscaler:
    syncPeriod: 2s
    concurrentSyncs: 7
    tolerance: 0.05
    downscaleStabilization: 1m30s
    schedulers:
    - schedulerName: mine
      candidateDeterminationStrategy: MinimalDistance
    - {{}}
logLevel: debug
logFormat: text
"""


def test_all_of_it_is_read() -> None:
    configuration = parse_configuration(FULL)
    assert configuration.sync_period == timedelta(seconds=2)
    assert configuration.concurrent_syncs == 7
    assert configuration.pace.tolerance == Fraction(1, 20)
    assert configuration.pace.downscale_stabilization == timedelta(seconds=90)
    assert configuration.schedulers == (SchedulerReference("mine", "MinimalDistance"), SchedulerReference())
    assert (configuration.log_level, configuration.log_format) == ("debug", "text")


def test_defaults_are_those_of_a_horizontal_pod_autoscaler() -> None:
    configuration = parse_configuration(HEAD)
    assert configuration == AutoscalerConfiguration()
    assert (configuration.sync_period, configuration.pace.tolerance) == (timedelta(seconds=15), Fraction(1, 10))
    assert configuration.pace.downscale_stabilization == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("syncPeriod: 10ms", "controllers.seedAutoscaler.syncPeriod: must not be below 1s, is '10ms'"),
        ("syncPeriod: soon", "controllers.seedAutoscaler.syncPeriod: must be a duration"),
        ("tolerance: 1", "controllers.seedAutoscaler.tolerance: must be a number from 0 to below 1, is 1"),
        ("tolerance: [1]", "controllers.seedAutoscaler.tolerance: must be a number"),
        ("concurrentSyncs: 0", "controllers.seedAutoscaler.concurrentSyncs: must be a whole number above 0, is 0"),
        ("downscaleStabilization: -5s", "controllers.seedAutoscaler.downscaleStabilization: must not be below 0s"),
        ("schedulers: []", "controllers.seedAutoscaler.schedulers: must be a list of schedulers, is []"),
        ("schedulers: [{schedulerName: 7}]", "controllers.seedAutoscaler.schedulers[0].schedulerName: must be a text"),
        (
            "schedulers: [{candidateDeterminationStrategy: Best}]",
            "controllers.seedAutoscaler.schedulers[0].candidateDeterminationStrategy: must be one of SameRegion",
        ),
        ("cooldown: 5s", "controllers.seedAutoscaler.cooldown: no such field"),
    ],
)
def test_everything_wrong_is_named(fields: str, problem: str) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        parse_configuration(f"{HEAD}controllers:\n  seedAutoscaler:\n    {fields}\n")
    (found,) = raised.value.problems
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "text", ["[]", "a: {", "kind: Lease", f"{HEAD}controllers: 7", f"{HEAD}controllers: {{seed: {{}}}}"]
)
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid):
        parse_configuration(text)


def test_the_file_is_named_on_the_command_line_and_the_environment_wins_over_its_log_level(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.yaml"
    file.write_text(FULL)
    settings = load_settings(["--config", str(file)], {})
    assert (settings.log_level, settings.log_format) == ("debug", "console")
    assert settings.configuration.sync_period == timedelta(seconds=2)
    assert load_settings([f"--config={file}"], {"GARDENBUS_LOG_LEVEL": "error"}).log_level == "error"
    assert load_settings([], {}).configuration == AutoscalerConfiguration()
    distance = load_settings([], {"GARDENBUS_CANDIDATE_DETERMINATION_STRATEGY": "MinimalDistance"})
    assert distance.candidate_determination_strategy == "MinimalDistance"
    with pytest.raises(SettingsInvalid):
        load_settings(["--what"], {})
