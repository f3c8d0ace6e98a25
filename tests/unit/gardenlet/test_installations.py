"""Conditions of installations by their heartbeats, and the extensions that shoots wait for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.installations import (
    STALE_AFTER,
    InstallationFacts,
    SeedExtensions,
    installation_patch,
    missing_extensions,
    present_extensions,
)
from tests.support.builders import CORE, a_condition, a_seed, a_shoot
from tests.support.registrations import a_deployment, a_registration

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
REGISTRATION = a_registration("networking", ("Network", "calico"))
LEASE = "Lease extension-networking-1/gardener-extension-heartbeat"
WAITS = f"The controller has no heartbeat yet: nothing has renewed the {LEASE}."


def an_installation(name: str = "networking-1", registration: str = "networking", **conditions: str) -> Document:
    status = {"conditions": [a_condition(kind, each) for kind, each in conditions.items()]}
    spec = {"registrationRef": {"name": registration}, "seedRef": {"name": "aws-eu1"}}
    metadata = {"name": name}
    return {
        "apiVersion": CORE,
        "kind": "ControllerInstallation",
        "metadata": metadata,
        "spec": spec,
        "status": status if conditions else {},
    }


def a_heartbeat(ago: timedelta) -> Document:
    return {"spec": {"renewTime": (NOW - ago).isoformat().replace("+00:00", "Z")}}


def found(patch: Document) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in patch["conditions"]}


def test_an_installation_whose_controller_is_alive_is_ready() -> None:
    facts = InstallationFacts(REGISTRATION, a_deployment("networking"), a_heartbeat(timedelta(seconds=20)))
    patch = installation_patch(an_installation(), facts, frozenset(), now=NOW)
    assert found(patch) == {
        "Valid": ("True", "RegistrationValid"),
        "Installed": ("True", "InstallationSuccessful"),
        "Healthy": ("True", "ControllerHealthy"),
        "Progressing": ("False", "ControllerRolledOut"),
        "Required": ("False", "NoExtensionObjects"),
    }
    reported = {**an_installation(), "status": patch}
    assert installation_patch(reported, facts, frozenset(), now=NOW + timedelta(seconds=1)) == {}


def test_an_outdated_heartbeat_is_not_healthy_and_what_was_installed_stays_so() -> None:
    facts = InstallationFacts(REGISTRATION, None, a_heartbeat(STALE_AFTER + timedelta(seconds=1)))
    patch = installation_patch(an_installation(), facts, frozenset(), now=NOW)
    assert found(patch)["Installed"] == ("True", "InstallationSuccessful")
    assert found(patch)["Healthy"] == ("False", "ControllerNotHealthy")
    (healthy,) = [each for each in patch["conditions"] if each["type"] == "Healthy"]
    assert healthy["message"] == (
        f"The heartbeat of the controller is outdated: the {LEASE} was last renewed at 2026-08-01T11:54:59Z."
    )


@pytest.mark.parametrize(
    ("deployment", "valid"),
    [
        (None, ("True", "RegistrationValid")),
        (a_deployment("own"), ("True", "RegistrationValid")),
        (a_deployment("own", helm={"rawChart": "aGVsbQ=="}), ("False", "ChartCannotBeRendered")),
    ],
)
def test_without_a_heartbeat_nothing_is_installed(deployment: Document | None, valid: tuple[str, str]) -> None:
    patch = installation_patch(
        an_installation(), InstallationFacts(REGISTRATION, deployment, None), frozenset(), now=NOW
    )
    assert found(patch)["Valid"] == valid
    assert found(patch)["Installed"] == ("False", "InstallationPending")
    assert found(patch)["Progressing"] == ("True", "ControllerNotRolledOut")
    assert {each["message"] for each in patch["conditions"] if each["type"] in ("Installed", "Healthy")} == {WAITS}


def test_a_chart_that_somebody_installed_is_valid() -> None:
    facts = InstallationFacts(REGISTRATION, a_deployment("own", helm={}), a_heartbeat(timedelta()))
    assert found(installation_patch(an_installation(), facts, frozenset(), now=NOW))["Valid"][0] == "True"


def test_a_registration_that_is_gone_is_named_and_says_nothing_of_what_is_required() -> None:
    patch = installation_patch(an_installation(), InstallationFacts(None, None, None), frozenset(), now=NOW)
    assert found(patch)["Valid"] == ("False", "RegistrationNotFound")
    assert "Required" not in found(patch)


def test_what_is_in_the_seed_is_required() -> None:
    present = present_extensions([a_shoot()["spec"]], a_seed()["spec"], [REGISTRATION])
    facts = InstallationFacts(REGISTRATION, None, None)
    patch = installation_patch(an_installation(), facts, present, now=NOW)
    (required,) = [each for each in patch["conditions"] if each["type"] == "Required"]
    assert (required["status"], required["reason"]) == ("True", "ExtensionObjectsExist")
    assert required["message"] == "extension objects still exist in the seed: [Network/calico]"


READY = {"Installed": "True", "Healthy": "True", "Progressing": "False"}


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        (READY, True),
        (READY | {"Valid": "False"}, True),
        (READY | {"Installed": "False"}, False),
        (READY | {"Healthy": "Unknown"}, False),
        (READY | {"Progressing": "True"}, False),
        ({}, False),
    ],
)
def test_a_shoot_waits_for_installations_that_are_not_ready(conditions: dict[str, str], is_ready: bool) -> None:
    provider = a_registration("provider", *[(kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")])
    installations: list[Any] = [
        an_installation("provider-1", "provider", **READY),
        an_installation("networking-1", **conditions),
    ]
    extensions = SeedExtensions([provider, REGISTRATION], installations)
    missing = missing_extensions(a_shoot()["spec"], a_seed()["spec"], extensions)
    assert missing == ("" if is_ready else "extension controllers missing or unready: map[Network/calico:{}]")


def test_all_that_is_missing_is_named_in_order() -> None:
    missing = missing_extensions(a_shoot()["spec"], a_seed()["spec"], SeedExtensions())
    assert missing == (
        "extension controllers missing or unready: map[ControlPlane/aws:{} Infrastructure/aws:{} Network/calico:{} "
        "Worker/aws:{}]"
    )


def test_conditions_of_others_are_left_alone() -> None:
    installation = an_installation(Custom="True")
    patch = installation_patch(installation, InstallationFacts(REGISTRATION, None, None), frozenset(), now=NOW)
    assert "Custom" not in found(patch)
    assert conditions_of(installation)[0]["type"] == "Custom"
