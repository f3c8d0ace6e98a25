"""Counters of this process for the landscape's history: rejected requests, and migrations that were requested."""

from collections.abc import Mapping

from gardenbus.apiserver.metrics import MIGRATIONS
from gardenbus.apiserver.requests.api import REQUEST_SECONDS
from gardenbus.common.api.history import MIGRATIONS as MIGRATIONS_COUNTER
from gardenbus.common.api.history import REJECTED as REJECTED_COUNTER
from gardenbus.common.controller.dead_letter import REJECTED
from gardenbus.common.controller.process_counts import counted

REJECTED_CODES = frozenset({"400", "403", "405", "413", "422", "429"})
"""Codes of responses to requests that were rejected: what is not found, or was changed meanwhile, is none."""


def request_counts() -> Mapping[str, int]:
    """The counters: rejected requests with a response, and durable ones, together."""
    responses = counted(REQUEST_SECONDS, is_counted=lambda labels: labels["code"] in REJECTED_CODES)
    return {
        REJECTED_COUNTER: int(responses + counted(REJECTED, is_counted=lambda _: True)),
        MIGRATIONS_COUNTER: int(counted(MIGRATIONS, is_counted=lambda _: True)),
    }
