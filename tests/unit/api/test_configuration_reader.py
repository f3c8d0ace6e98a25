"""No field of a component configuration is dropped in silence: misplaced or misspelt, it is refused with its place."""

import re
from collections.abc import Callable

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
        ({"schedulerName": "mine"}, "schedulerName: no such field; did you mean schedulers.shoot.schedulerName?"),
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
