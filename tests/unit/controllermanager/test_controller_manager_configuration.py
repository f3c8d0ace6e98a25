from datetime import timedelta

import pytest

from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    EventConfiguration,
    ProjectControllerConfiguration,
    parse_controller_manager,
)
from gardenbus.common.api.selectors import LabelSelector
from gardenbus.common.errors import SettingsInvalid
from gardenbus.controllermanager.settings import load_settings

HEAD = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"


def test_without_values_gardeners_defaults_hold() -> None:
    configuration = parse_controller_manager(HEAD)
    assert configuration == ControllerManagerConfiguration()
    assert configuration.project == ProjectControllerConfiguration(
        concurrent_syncs=5,
        minimum_lifetime_days=30,
        stale_grace_period_days=14,
        stale_expiration_time_days=90,
        stale_sync_period=timedelta(hours=12),
    )
    assert load_settings([], {}).configuration == configuration


def test_the_section_of_projects_is_read_with_its_quotas() -> None:
    configuration = parse_controller_manager(
        HEAD
        + """
controllers:
  project:
    concurrentSyncs: 3
    minimumLifetimeDays: 0
    staleSyncPeriod: 1h
    quotas:
    - config: {apiVersion: v1, kind: ResourceQuota, spec: {hard: {count/shoots.core.gardener.cloud: 100}}}
      projectSelector: {matchLabels: {size: small}}
    - config: {spec: {hard: {count/secrets: "1k"}}}
"""
    )
    project = configuration.project
    assert (project.concurrent_syncs, project.minimum_lifetime_days) == (3, 0)
    assert project.stale_sync_period == timedelta(hours=1)
    assert project.quotas is not None
    small, rest = project.quotas
    assert small.project_selector == LabelSelector.of({"size": "small"})
    assert rest.project_selector == LabelSelector()
    assert rest.config["spec"]["hard"] == {"count/secrets": "1k"}


def test_sections_of_other_services_are_accepted_and_those_of_nobody_are_named() -> None:
    configuration = parse_controller_manager(
        HEAD + "controllers: {seed: {monitorPeriod: 4s}, managedSeedSet: {}, networkPolicy: {}}\nserver: {}"
    )
    assert set(configuration.ignored) == {"controllers.networkPolicy", "server"}


def test_events_are_removed_early_only_where_the_configuration_has_their_section() -> None:
    assert parse_controller_manager(HEAD).event is None
    assert parse_controller_manager(HEAD + "controllers: {event: {}}").event == EventConfiguration(
        ttl_non_shoot_events=timedelta(hours=1)
    )
    own = parse_controller_manager(HEAD + "controllers: {event: {concurrentSyncs: 5, ttlNonShootEvents: 2h}}").event
    assert own == EventConfiguration(ttl_non_shoot_events=timedelta(hours=2))
    with pytest.raises(SettingsInvalid, match=r"controllers\.event: ttlNonShootEvents: must be a duration above 0"):
        parse_controller_manager(HEAD + "controllers: {event: {ttlNonShootEvents: 0s}}")


def test_everything_that_is_wrong_is_told_with_its_path() -> None:
    with pytest.raises(SettingsInvalid) as rejected:
        parse_controller_manager(
            HEAD
            + """
controllers:
  project:
    minimumLifetimeDays: -1
    staleSyncPeriod: soon
    life: 1
    quotas:
    - projectSelector: {matchLabels: {"a b": c}}
    - config: {spec: {}}
    - config: {spec: {hard: {count/shoots: many}}}
"""
        )
    assert {problem.split(":")[0] for problem in rejected.value.problems} == {
        "controllers.project.minimumLifetimeDays",
        "controllers.project.staleSyncPeriod",
        "controllers.project.life",
        "controllers.project.quotas[0].projectSelector",
        "controllers.project.quotas[0].config",
        "controllers.project.quotas[1].config",
        "controllers.project.quotas[2].config",
    }
