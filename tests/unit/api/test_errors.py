"""Errors quote what somebody sent: their texts can be encoded, whatever that was."""

import pytest

from gardenbus.common.errors import BadRequest, GardenbusError, InvalidResource, NotFound, SettingsInvalid, Unavailable


@pytest.mark.parametrize("kind", [GardenbusError, BadRequest, InvalidResource, NotFound, Unavailable])
def test_an_error_about_half_a_surrogate_pair_shows_its_escape(kind: type[GardenbusError]) -> None:
    error = kind("spec.\ud800: ü is no name")
    assert error.message == str(error) == "spec.\\ud800: ü is no name"


def test_so_does_each_problem_of_settings() -> None:
    error = SettingsInvalid(("\ud83d\ude00apiVersion: no such field", "kind: missing"))
    assert error.problems == ("\\ud83d\\ude00apiVersion: no such field", "kind: missing")
    assert error.message.encode()
