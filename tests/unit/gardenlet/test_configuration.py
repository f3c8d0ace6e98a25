"""A GardenletConfiguration is read as Gardener's, and what is wrong in it is named by its path."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardenbus.common.api.configuration.gardenlet import (
    CertificateSettings,
    GardenletConfiguration,
    parse_configurations,
)
from gardenbus.common.api.document import Document
from gardenbus.common.errors import SettingsInvalid
from gardenbus.gardenlet.settings import load_settings
from tests.support.gardenlets import a_configuration, configured


def problems(document: Document) -> tuple[str, ...]:
    with pytest.raises(SettingsInvalid) as error:
        configured(document)
    return tuple(problem.removeprefix("configuration: ") for problem in error.value.problems)


def read(**changes: Any) -> GardenletConfiguration:
    return configured(a_configuration(**changes))


def test_what_is_not_given_is_as_gardeners_defaults() -> None:
    configuration = read(controllers=None, backend=None, resources=None)

    assert configuration.lease.resync_seconds == 2
    assert configuration.lease.grace_period == timedelta(seconds=20)
    assert configuration.seed_care_period == timedelta(seconds=30)
    assert configuration.shoot.concurrent_syncs == 20
    assert configuration.shoot.sync_period == timedelta(hours=1)
    assert configuration.shoot.retry_duration == timedelta(hours=12)
    assert configuration.shoot_care_period == timedelta(minutes=1)
    assert configuration.backend.step_seconds == 0.2
    assert configuration.capacity == {}


def test_thresholds_of_conditions_are_read_by_their_type() -> None:
    care = {"conditionThresholds": [{"type": "EveryNodeReady", "duration": "5m"}, {"type": "ControlPlaneHealthy"}]}
    assert problems(a_configuration(controllers={"shootCare": care})) == (
        "controllers.shootCare.conditionThresholds[1].duration: must be a duration such as 30s, 5m or 1h30m, is null",
    )
    del care["conditionThresholds"][1]
    assert dict(read(controllers={"shootCare": care}).shoot.condition_thresholds) == {
        "EveryNodeReady": timedelta(minutes=5)
    }


def test_the_seeds_kubernetes_api_switches_the_resource_manager_on() -> None:
    backend: Document = {"extensions": {"kubeconfig": "seed.kubeconfig"}}
    assert read(backend=backend).extensions.runs_resource_manager
    backend["extensions"]["resourceManager"] = "external"
    assert not read(backend=backend).extensions.runs_resource_manager
    assert not read(backend=None).extensions.runs_resource_manager
    backend["extensions"] = {"resourceManager": "mine"}
    assert problems(a_configuration(backend=backend)) == (
        "backend.extensions.resourceManager: must be one of own, external, is 'mine'",
    )
    backend["extensions"] = {"resourceManager": "own"}
    assert problems(a_configuration(backend=backend)) == (
        "backend.extensions.kubeconfig: must name the kubeconfig of the seed's Kubernetes API",
    )


def test_kinds_of_extension_objects_are_those_that_are_written() -> None:
    backend: Document = {"extensions": {"kubeconfig": "seed.kubeconfig", "kinds": ["Worker", "Network", "Worker"]}}
    assert read(backend=backend).extensions.kinds == ("Worker", "Network")
    backend["extensions"]["kinds"] = ["Worker", "Etcd"]
    (problem,) = problems(a_configuration(backend=backend))
    assert problem.startswith("backend.extensions.kinds: no such kinds: Etcd; there are BackupBucket, BackupEntry,")


def test_entries_need_the_bucket_that_they_are_in() -> None:
    backend: Document = {"extensions": {"kubeconfig": "seed.kubeconfig", "kinds": ["BackupEntry"]}}
    (problem,) = problems(a_configuration(backend=backend))
    assert problem == "backend.extensions.kinds: BackupEntry needs BackupBucket, which an entry is in"
    backend["extensions"]["kinds"] = ["BackupEntry", "BackupBucket"]
    assert read(backend=backend).extensions.kinds == ("BackupEntry", "BackupBucket")


def test_the_grace_period_of_entries_is_read_with_the_purposes_that_it_is_for() -> None:
    entry: Document = {"deletionGracePeriodHours": 48, "deletionGracePeriodShootPurposes": ["production"]}
    settings = read(controllers={"backupEntry": entry}).backup_entry
    assert settings.deletion_grace_period_hours == 48
    assert settings.deletion_grace_period_shoot_purposes == ("production",)
    entry["deletionGracePeriodShootPurposes"] = ["fun"]
    field = "controllers.backupEntry.deletionGracePeriodShootPurposes"
    assert problems(a_configuration(controllers={"backupEntry": entry})) == (
        f"{field}: no such purposes: fun; there are development, evaluation, infrastructure, production, testing",
    )
    entry |= {"deletionGracePeriodShootPurposes": ["production"], "deletionGracePeriodHours": 0}
    assert problems(a_configuration(controllers={"backupEntry": entry})) == (
        f"{field}: deletionGracePeriodHours must be above 0 where purposes are stated",
    )


def test_dns_records_need_an_address_to_lead_to() -> None:
    extensions: Document = {"kubeconfig": "seed.kubeconfig", "kinds": ["DNSRecord"]}
    assert problems(a_configuration(backend={"extensions": extensions})) == (
        "backend.extensions.address: must be the address of the API servers of shoots, as DNSRecord is in kinds",
    )
    assert read(backend={"extensions": {**extensions, "address": "203.0.113.10"}}).extensions.address == "203.0.113.10"


def test_quantities_are_kept_as_written() -> None:
    configuration = read(resources={"capacity": {"shoots": 250, "memory": "1500Mi"}, "reserved": {"shoots": "5"}})

    assert configuration.capacity == {"shoots": 250, "memory": "1500Mi"}
    assert configuration.reserved == {"shoots": "5"}


def test_all_that_may_be_reserved_is_the_capacity() -> None:
    read(resources={"capacity": {"shoots": "1k"}, "reserved": {"shoots": 1000}})

    assert problems(a_configuration(resources={"capacity": {"shoots": 10}, "reserved": {"shoots": "11"}})) == (
        "resources.reserved.shoots: reserved must be lower or equal to capacity",
    )
    assert problems(a_configuration(resources={"reserved": {"memory": "1Gi"}})) == (
        "resources.reserved.memory: reserved without capacity",
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "Seed"}, "kind: must be GardenletConfiguration, is 'Seed'"),
        (
            {"seedConfig": {"metadata": {"name": "a.b"}}},
            "seedConfig.metadata.name: must be a lower-case RFC 1123 label",
        ),
        ({"seedConfig": {"metadata": None}}, "seedConfig.metadata.name: must be a lower-case RFC 1123 label, is None"),
        ({"seedConfig": {"spec": None}}, "seedConfig.spec: must be given"),
        ({"seedConfig": "mine"}, "seedConfig: must be a mapping, is 'mine'"),
        ({"resources": {"capacity": {"shoots": "many"}}}, "resources.capacity.shoots: 'many' is not a quantity"),
        ({"resources": {"capacity": {"shoots": -1}}}, "resources.capacity.shoots: must not be negative"),
        ({"resources": {"capacity": {"shoots": [1]}}}, "resources.capacity.shoots: [1] is not a quantity"),
        (
            {"controllers": {"seed": {"leaseResyncSeconds": 0}}},
            "controllers.seed.leaseResyncSeconds: must be a whole number above 0, is 0",
        ),
        (
            {"controllers": {"shoot": {"syncPeriod": "soon"}}},
            "controllers.shoot.syncPeriod: must be a duration such as 30s, 5m or 1h30m, is 'soon'",
        ),
        ({"controllers": {"shoot": {"concurrentSyncs": True}}}, "controllers.shoot.concurrentSyncs: must be a whole"),
        ({"backend": {"type": "Of AWS"}}, "backend.type: must be a lower-case RFC 1123 label, is 'Of AWS'"),
        ({"backend": {"options": "all"}}, "backend.options: must be a mapping, is 'all'"),
        ({"backend": {"stepsSeconds": 1}}, "backend.stepsSeconds: no such field"),
        ({"backend": {"stepSeconds": "1"}}, "backend.stepSeconds: must be a number of seconds, is '1'"),
        ({"backend": {"stepSecondsByName": {"nothing": 1}}}, "backend.stepSecondsByName.nothing: no such field"),
        ({"backend": {"failures": ["etcd=ERR_NONE"]}}, "backend.failures: ERR_NONE is no error code"),
        ({"backend": {"failures": "nothing=ERR_INFRA_DEPENDENCIES"}}, "backend.failures: no such steps: nothing"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(changes: Document, problem: str) -> None:
    assert problems(a_configuration(**changes))[0].startswith(problem)


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        a_configuration(backend={"type": "Of AWS"}, controllers={"shoot": {"retryDuration": 5, "concurrentSyncs": 0}})
    )

    assert len(found) == 3


def test_gardeners_other_fields_are_accepted() -> None:
    read(
        gardenClientConnection={"kubeconfigSecret": {"name": "gardenlet-kubeconfig"}},
        controllers={"bastion": {"concurrentSyncs": 20}, "shoot": {"reconcileInMaintenanceOnly": False}},
        logLevel="info",
        featureGates={"DefaultSeccompProfile": True},
    )


def test_a_file_may_hold_several() -> None:
    text = yaml.safe_dump_all([a_configuration("one"), None, a_configuration("two")])

    assert [each.seed_name for each in parse_configurations(text)] == ["one", "two"]


@pytest.mark.parametrize("text", ["", "kind: [", "- 1\n- 2", "a: &a [*a]\nb: {{}}"])
def test_what_is_no_configuration_is_rejected(text: str) -> None:
    with pytest.raises(SettingsInvalid):
        parse_configurations(text)


@pytest.mark.parametrize("period", ["-1s", "5", 5])
def test_a_period_is_a_duration_that_is_not_negative(period: object) -> None:
    with pytest.raises(SettingsInvalid, match=r"controllers\.shoot\.progressReportPeriod: must be a duration"):
        read(controllers={"shoot": {"progressReportPeriod": period}})


def test_a_seed_is_configured_once_in_a_process(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump(a_configuration("one")))
    arguments = ["--config", str(file), "--config", str(file), "--config", str(tmp_path / "none.yaml")]
    with pytest.raises(SettingsInvalid) as error:
        load_settings(arguments, environ={})

    assert len(error.value.problems) == 2
    assert "seed one is configured twice" in error.value.problems


def test_the_command_line_and_the_environment_make_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump(a_configuration("one")))
    settings = load_settings(
        ["--config", str(file), "--state-dir", str(tmp_path)], environ={"GARDENBUS_PREFIX": "mine"}
    )

    assert settings.prefix == "mine"
    assert settings.state_dir == str(tmp_path)
    assert [each.seed_name for each in settings.configurations] == ["one"]


@pytest.mark.parametrize("arguments", [[], ["--config"], ["--state-dir", "x"], ["--config", "x", "--verbose"]])
def test_a_wrong_command_line_is_reported(arguments: list[str]) -> None:
    with pytest.raises(SettingsInvalid):
        load_settings(arguments, environ={})


def test_managed_seeds_are_kept_as_gardener_does_unless_it_says_otherwise() -> None:
    default = read().managed_seed
    stated = read(
        controllers={"managedSeed": {"waitSyncPeriod": "1s", "syncJitterPeriod": "0s", "jitterUpdates": True}},
        gardenClientConnection={"kubeconfigValidity": {"validity": "24h", "autoRotationJitterPercentageMin": 60}},
    )

    assert (default.concurrent_syncs, default.jitter_updates) == (20, False)
    assert (default.sync_period, default.wait_sync_period) == (timedelta(hours=1), timedelta(seconds=15))
    assert default.sync_jitter_period == timedelta(minutes=5)
    assert (stated.managed_seed.wait_sync_period, stated.managed_seed.jitter_updates) == (timedelta(seconds=1), True)
    assert stated.managed_seed.sync_jitter_period == timedelta(0)
    assert stated.certificate == CertificateSettings(validity=timedelta(days=1), renewed_from_percent=60)
    assert default_certificate().validity is None


def default_certificate() -> CertificateSettings:
    return read().certificate


@pytest.mark.parametrize(
    ("validity", "problem"),
    [
        ({"validity": "59s"}, "kubeconfigValidity.validity: must not be below 60s"),
        (
            {"autoRotationJitterPercentageMin": 0},
            "autoRotationJitterPercentageMin: must be a whole number from 1 to 100",
        ),
        ({"autoRotationJitterPercentageMax": 101}, "autoRotationJitterPercentageMax: must be a whole number"),
        ({"autoRotationJitterPercentageMin": 90}, "autoRotationJitterPercentageMin: 90 must be less than"),
    ],
)
def test_a_certificate_that_nobody_would_sign_or_renew_is_rejected(validity: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsInvalid, match=problem):
        read(gardenClientConnection={"kubeconfigValidity": validity})


def test_all_that_is_written_is_kept_for_those_who_inherit_it() -> None:
    assert read(featureGates={"Own": True}).document == a_configuration(featureGates={"Own": True})


def test_a_backend_must_be_one_that_is_installed_where_that_is_known() -> None:
    text = yaml.safe_dump(a_configuration(backend={"type": "aws", "options": {"account": 5}}))
    assert parse_configurations(text)[0].backend.options == {"account": 5}
    with pytest.raises(SettingsInvalid, match=r"backend\.type: must be one of local, mine, is 'aws'"):
        parse_configurations(text, backends=("mine", "local"))
