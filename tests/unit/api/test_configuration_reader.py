"""No field of a component configuration is dropped in silence: misplaced or misspelt, it is refused with its place."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gardenbus.common.api.configuration import (
    admission,
    controller_manager,
    gardenlet,
    member_agent,
    scheduler,
    seed_autoscaler,
)
from gardenbus.common.errors import SettingsInvalid

GARDENLET_VERSION = "gardenlet.config.gardener.cloud/v1alpha1"

PARSERS: list[tuple[Callable[[bytes], object], str, str]] = [
    (scheduler.parse_configuration, scheduler.API_VERSION, scheduler.KIND),
    (admission.parse_configuration, admission.API_VERSION, admission.KIND),
    (controller_manager.parse_controller_manager, controller_manager.API_VERSION, controller_manager.KIND),
    (controller_manager.parse_lifecycle, controller_manager.API_VERSION, controller_manager.KIND),
    (controller_manager.parse_managed_seed_sets, controller_manager.API_VERSION, controller_manager.KIND),
    (gardenlet.parse_configurations, GARDENLET_VERSION, gardenlet.KIND),
    (member_agent.parse_configurations, member_agent.API_VERSION, member_agent.KIND),
    (seed_autoscaler.parse_configuration, seed_autoscaler.API_VERSION, seed_autoscaler.KIND),
]


@pytest.mark.parametrize(("parse", "version", "kind"), PARSERS)
def test_each_component_refuses_a_field_that_it_does_not_know(
    parse: Callable[[bytes], object], version: str, kind: str
) -> None:
    with pytest.raises(SettingsInvalid, match="sillyField"):
        parse(msgspec.json.encode({"apiVersion": version, "kind": kind, "sillyField": True}))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"schedulerName": "mine"},
            "schedulerName: no such field; did you mean profiles.schedulerName or schedulers.shoot.schedulerName?",
        ),
        ({"loglevel": "debug"}, "loglevel: no such field; did you mean logLevel?"),
        (
            {"schedulers": {"shoot": {"candidateStrategy": "SameRegion"}}},
            (
                "schedulers.shoot.candidateStrategy: no such field; did you mean "
                "schedulers.shoot.candidateDeterminationStrategy?"
            ),
        ),
        ({"nothingLikeIt": 1}, "nothingLikeIt: no such field"),
    ],
)
def test_the_refusal_names_where_the_field_may_have_been_meant_to_stand(given: dict[str, object], problem: str) -> None:
    header = {"apiVersion": scheduler.API_VERSION, "kind": scheduler.KIND}
    with pytest.raises(SettingsInvalid, match=f"^{re.escape(problem)}$"):
        scheduler.parse_configuration(msgspec.json.encode({**header, **given}))


def test_what_was_stored_with_fields_that_do_not_exist_is_read_leniently() -> None:
    """A gardenlet that runs on a seed must not be kept from starting by a field that was passed over so far."""
    text = msgspec.json.encode(
        {
            "apiVersion": GARDENLET_VERSION,
            "kind": gardenlet.KIND,
            "controllers": {"shoot": {"concurentSyncs": 7, "concurrentSyncs": 3}},
            "seedConfig": {
                "metadata": {"name": "aws-eu1"},
                "spec": {"provider": {"type": "aws", "region": "eu-west-1"}},
            },
        }
    )
    with pytest.raises(SettingsInvalid, match="concurentSyncs: no such field"):
        gardenlet.parse_configurations(text)
    (configuration,) = gardenlet.parse_configurations(text, is_lenient=True)
    assert configuration.shoot.concurrent_syncs == 3


GARDENLET = {
    "apiVersion": GARDENLET_VERSION,
    "kind": gardenlet.KIND,
    "seedConfig": {"metadata": {"name": "a"}, "spec": {"provider": {"type": "aws", "region": "eu-west-1"}}},
}
CONTROLLER_MANAGER = {"apiVersion": controller_manager.API_VERSION, "kind": controller_manager.KIND}
CENTURY = "must not be above 876000h (100 years)"


@pytest.mark.parametrize(
    ("controllers", "problem"),
    [
        ({"project": {"minimumLifetimeDays": 3_000_000}}, "must not be above 36500 (100 years), is 3000000"),
        ({"project": {"staleGracePeriodDays": 36_501}}, "must not be above 36500 (100 years), is 36501"),
        ({"project": {"staleExpirationTimeDays": 36_501}}, "must not be above 36500 (100 years), is 36501"),
        ({"project": {"staleSyncPeriod": "876001h"}}, f"{CENTURY}, is '876001h'"),
        ({"bastion": {"maxLifetime": "100000000h"}}, f"{CENTURY}, is '100000000h'"),
        ({"shootRetry": {"retryJitterPeriod": "100000000h"}}, f"{CENTURY}, is '100000000h'"),
        ({"project": {"concurrentSyncs": 100_001}}, "must not be above 100000, is 100001"),
    ],
)
def test_more_than_a_century_is_a_mistake_that_is_told_with_its_field(
    controllers: dict[str, dict[str, object]], problem: str
) -> None:
    section, fields = next(iter(controllers.items()))
    with pytest.raises(SettingsInvalid) as rejected:
        controller_manager.parse_controller_manager(
            msgspec.json.encode({**CONTROLLER_MANAGER, "controllers": controllers})
        )
    assert rejected.value.problems == (f"controllers.{section}.{next(iter(fields))}: {problem}",)


@pytest.mark.parametrize("field", ["leaseResyncSeconds", "leaseResyncMissThreshold"])
def test_a_lease_lasts_no_longer_than_time_can_be_counted(field: str) -> None:
    longest = {"leaseResyncSeconds": 100_000, "leaseResyncMissThreshold": 100_000}
    (configuration,) = gardenlet.parse_configurations(
        msgspec.json.encode({**GARDENLET, "controllers": {"seed": longest}})
    )
    assert datetime.now(UTC) + configuration.lease.grace_period > datetime.now(UTC)
    with pytest.raises(SettingsInvalid, match=f"controllers.seed.{field}: must not be above 100000, is 100000000000"):
        gardenlet.parse_configurations(
            msgspec.json.encode({**GARDENLET, "controllers": {"seed": {field: 100_000_000_000}}})
        )


def test_a_step_of_the_simulation_takes_no_longer_than_a_century() -> None:
    with pytest.raises(SettingsInvalid, match=r"backend\.stepSeconds: must not be above 3153600000 \(100 years\)"):
        gardenlet.parse_configurations(msgspec.json.encode({**GARDENLET, "backend": {"stepSeconds": 4_000_000_000}}))


def test_a_century_itself_is_taken() -> None:
    fields = {"minimumLifetimeDays": 36_500, "staleGracePeriodDays": 36_500, "staleSyncPeriod": "876000h"}
    configuration = controller_manager.parse_controller_manager(
        msgspec.json.encode({**CONTROLLER_MANAGER, "controllers": {"project": fields}})
    )
    assert configuration.project.stale_sync_period == timedelta(days=36_500)
