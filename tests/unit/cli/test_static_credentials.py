"""What `doctor` makes of credentials that are good for very long."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from gardenbus.cli.client.api import ApiClient
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.diagnostics.admin import AdminClient
from gardenbus.diagnostics.static_credentials import assess_credentials
from gardenbus.diagnostics.target import DiagnosticsTarget

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TARGET = DiagnosticsTarget(ApiClient(cast("Bus", None), Subjects()), cast("AdminClient", None), None)


def issued(days: float) -> Document:
    secret = credentials_secret("anns", Principal("user", "ann"), NOW + timedelta(days=days), password="x")
    secret["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z"
    return secret


@pytest.mark.parametrize(("days", "state"), [(0.5, "ok"), (90, "ok"), (90.1, "warning"), (365, "warning")])
def test_credentials_that_are_good_for_long_are_reported(days: float, state: str) -> None:
    (finding,) = assess_credentials(TARGET, [issued(days)])
    assert finding.state == state
    assert ("ann (anns)" in finding.found) == (state == "warning")


@pytest.mark.parametrize("expires", [None, "?", "c29vbg=="])
def test_credentials_without_a_readable_end_are_reported(expires: str | None) -> None:
    secret = issued(1)
    secret["data"]["expires"] = expires
    assert assess_credentials(TARGET, [secret])[0].state == "warning"
