from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration, parse_lifecycle
from gardenbus.common.errors import SettingsInvalid
from gardenbus.lifecycle.settings import load_settings

HEAD = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def test_without_values_gardeners_defaults_hold() -> None:
    configuration = parse_lifecycle(HEAD)
    assert configuration == LifecycleConfiguration()
    assert configuration.sync_period == seconds(10)
    assert configuration.monitor_period == seconds(40)
    assert configuration.shoot_monitor_period == seconds(200)
    assert configuration.concurrent_syncs == 5


def test_shoots_wait_for_five_monitor_periods_unless_told_otherwise() -> None:
    configuration = parse_lifecycle(HEAD + "controllers: {seed: {monitorPeriod: 4s}}")
    assert configuration.shoot_monitor_period == seconds(20)
    configuration = parse_lifecycle(HEAD + "controllers: {seed: {monitorPeriod: 4s, shootMonitorPeriod: 300s}}")
    assert configuration.shoot_monitor_period == seconds(300)


def test_what_no_service_reads_is_accepted_and_named() -> None:
    configuration = parse_lifecycle(
        HEAD
        + """
gardenClientConnection: {qps: 100, burst: 130}
controllers:
  bastion: {maxLifetime: 24h}
  networkPolicy: {whatever: 1}
  seed: {concurrentSyncs: 7, syncPeriod: 2s}
  shootMigration: {concurrentSyncs: 3}
  managedSeedSet: {syncPeriod: 30m}
  project: {minimumLifetimeDays: 7}
leaderElection: {leaderElect: true}
logLevel: debug
logFormat: text
server: {healthProbes: {port: 2718}}
"""
    )
    assert configuration.concurrent_syncs == 7
    assert configuration.concurrent_migrations == 3
    assert configuration.sync_period == seconds(2)
    assert (configuration.log_level, configuration.log_format) == ("debug", "text")
    assert set(configuration.ignored) == {
        "gardenClientConnection",
        "controllers.networkPolicy",
        "leaderElection",
        "server",
    }


def test_everything_that_is_wrong_is_told_with_its_path() -> None:
    with pytest.raises(SettingsInvalid) as rejected:
        parse_lifecycle(
            """
apiVersion: v1
kind: ControllerManagerConfiguration
nonsense: 1
logLevel: loud
controllers:
  seeds: {}
  shootMigration: {concurrentSyncs: 0, syncPeriod: 5s}
  seed: {syncPeriod: 10, monitorPeriod: soon, shootMonitorPeriod: 0s, concurrentSyncs: true, monitorperiod: 1s}
"""
        )
    assert {problem.split(":")[0] for problem in rejected.value.problems} == {
        "apiVersion",
        "nonsense",
        "logLevel",
        "controllers.seeds",
        "controllers.shootMigration.concurrentSyncs",
        "controllers.shootMigration.syncPeriod",
        "controllers.seed.syncPeriod",
        "controllers.seed.monitorPeriod",
        "controllers.seed.shootMonitorPeriod",
        "controllers.seed.concurrentSyncs",
        "controllers.seed.monitorperiod",
    }


@pytest.mark.parametrize("text", ["[1]", "a: [", "", HEAD + "controllers: [1]", HEAD + "controllers: {seed: 3}"])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid):
        parse_lifecycle(text)


def test_settings_come_from_the_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "logLevel: debug\nlogFormat: text\ncontrollers: {seed: {syncPeriod: 1s}}")
    settings = load_settings(["--config", str(file)], {"GARDENBUS_LOG_LEVEL": "error"})
    assert settings.configuration.sync_period == seconds(1)
    assert (settings.log_level, settings.log_format) == ("error", "console")
    assert load_settings([], {}).configuration == LifecycleConfiguration()


def test_a_file_that_is_not_there_is_a_settings_problem(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="No such file"):
        load_settings([f"--config={tmp_path / 'none'}"], {})
    with pytest.raises(SettingsInvalid, match="usage"):
        load_settings(["--verbose"], {})
