"""Kubeconfigs for administrators of shoots, as Gardener's `shoots/adminkubeconfig`: made by the gardenlet of the seed.

The certificate authority of a shoot is where its control plane is; it signs there, and the response is passed on.
"""

from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.operators import check_operator
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.request_bodies import AdminKubeconfigRequest
from gardenbus.common.controller.api_client import response_result
from gardenbus.common.errors import BadRequest, Conflict, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store

GARDENLET_SECONDS = 5.0
LEAST_SECONDS, MOST_SECONDS = 600, 86_400
"""Gardener's limits of a life; a longer one is shortened."""


class AdminKubeconfigs:
    """Handles `adminkubeconfig.<namespace>.<name>`."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects

    async def on_adminkubeconfig(self, call: Call) -> Any:
        """`{"kubeconfig", "expirationTimestamp"}`. Raises what the gardenlet responds with, Unavailable without it."""
        check_operator(call.user, is_operator=call.is_operator)
        namespace, _, name = call.tail.partition(".")
        if not name or "." in name:
            raise BadRequest("name the shoot: adminkubeconfig.<namespace>.<name>")
        key = ObjectKey("shoot", namespace, name)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} not found")
        seed = str(section(stored.document(), "status").get("seedName") or "")
        if not seed:
            raise Conflict(f"{key} has no control plane yet: no seed runs it")
        request = {"expirationSeconds": _seconds(call), "user": call.user or "system:anonymous"}
        subject = self._subjects.admin_kubeconfig(seed, key)
        try:
            response = await self._bus.request(subject, msgspec.json.encode(request), timeout_seconds=GARDENLET_SECONDS)
        except Unavailable as error:
            raise Unavailable(
                f"the gardenlet of seed {seed} does not respond; with a backend that is simulated it has no kubeconfigs"
            ) from error
        result = response_result(response, subject)
        call.done()
        return result


def _seconds(call: Call) -> int:
    seconds = call.read(AdminKubeconfigRequest).expiration_seconds
    if seconds < LEAST_SECONDS:
        raise BadRequest(f"expirationSeconds: must be at least {LEAST_SECONDS}, is {seconds}")
    return min(seconds, MOST_SECONDS)
