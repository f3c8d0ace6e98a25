"""Exceptions for errors in responses of the API."""

import pytest

from gardenbus.cli.client.api import api_error
from gardenbus.common.errors import Unavailable

LOG = "its log: gardenbus logs --grep 5f2c"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"message": "no scheduler responds", "reconcileId": "5f2c"}, f"no scheduler responds; {LOG}"),
        ({"message": f"an unexpected error: X; {LOG}", "reconcileId": "5f2c"}, f"an unexpected error: X; {LOG}"),
        ({"message": "an apiserver that is older"}, "an apiserver that is older"),
    ],
)
def test_a_failure_names_its_lines_in_the_log_once(error: dict[str, str], message: str) -> None:
    failure = api_error({"code": 503, **error})
    assert isinstance(failure, Unavailable)
    assert failure.message == message
