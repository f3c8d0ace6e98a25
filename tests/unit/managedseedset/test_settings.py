"""Gardener's configuration file and the environment."""

from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.common.api.configuration.controller_manager import parse_managed_seed_sets
from gardenbus.common.errors import SettingsInvalid
from gardenbus.managedseedset.settings import load_settings

HEAD = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"


def test_without_a_file_gardeners_defaults_hold():
    settings = load_settings([], {})

    assert settings.actuator.max_shoot_retries == 3
    assert settings.actuator.sync_period == timedelta(minutes=30)
    assert settings.configuration.concurrent_syncs == 5


def test_a_section_with_gaps_has_the_defaults_in_them():
    configuration = parse_managed_seed_sets(HEAD + "controllers: {managedSeedSet: {maxShootRetries: 0}}")

    assert configuration.max_shoot_retries == 0
    assert configuration.sync_period == timedelta(minutes=30)


def test_other_controllers_sections_are_accepted_and_named():
    configuration = parse_managed_seed_sets(
        HEAD + "controllers: {seed: {monitorPeriod: 40s}, networkPolicy: {}}\nserver: {}"
    )

    assert set(configuration.ignored) == {"server", "controllers.networkPolicy"}


def test_all_problems_are_told_at_once():
    with pytest.raises(SettingsInvalid) as rejected:
        parse_managed_seed_sets(
            HEAD + "controllers: {managedSeedSet: {syncPeriod: 0s, maxShootRetries: -1, concurrentSyncs: x, y: 1}}"
        )

    paths = {problem.partition(":")[0] for problem in rejected.value.problems}
    names = ("syncPeriod", "maxShootRetries", "concurrentSyncs", "y")
    assert paths == {f"controllers.managedSeedSet.{name}" for name in names}


def test_the_file_and_the_environment_are_read(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "logLevel: debug\ncontrollers: {managedSeedSet: {syncPeriod: 5m}}")

    settings = load_settings(["--config", str(file)], {"GARDENBUS_DRAIN_MOVES": "2", "GARDENBUS_LOG_FORMAT": "json"})

    assert (settings.actuator.sync_period, settings.actuator.moves_at_once) == (timedelta(minutes=5), 2)
    assert (settings.log_level, settings.log_format) == ("debug", "json")
