"""Kubeconfigs for administrators of shoots, as Gardener's `shoots/adminkubeconfig`: made by the gardenlet of the seed.

The certificate authority of a shoot is where its control plane is; it signs there, and the response is passed on.
"""

from typing import Any

import msgspec

from gardenbus.apiserver.domain.operators import check_operator
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import response_result
from gardenbus.common.errors import BadRequest, Conflict, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store

GARDENLET_SECONDS = 5.0
LEAST_SECONDS, MOST_SECONDS = 600, 86_400
"""Gardener's limits of a life; a longer one is shortened."""


class AdminKubeconfigBody(msgspec.Struct, frozen=True):
    """Body of the request: the life of the certificate."""

    expirationSeconds: int = 3600  # noqa: N815  Gardener's name


class AdminKubeconfigs:
    """Handles `adminkubeconfig.<namespace>.<name>`."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects

    async def respond(self, tail: str, body: bytes, *, user: str, is_operator: bool) -> Any:
        """`{"kubeconfig", "expirationTimestamp"}`. Raises what the gardenlet responds with, Unavailable without it."""
        check_operator(user, is_operator=is_operator)
        namespace, _, name = tail.partition(".")
        if not name or "." in name:
            raise BadRequest("name the shoot: adminkubeconfig.<namespace>.<name>")
        key = ObjectKey("shoot", namespace, name)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} not found")
        seed = str(section(stored.document(), "status").get("seedName") or "")
        if not seed:
            raise Conflict(f"{key} has no control plane yet: no seed runs it")
        request = {"expirationSeconds": _seconds(body), "user": user or "system:anonymous"}
        subject = self._subjects.admin_kubeconfig(seed, key)
        try:
            response = await self._bus.request(subject, msgspec.json.encode(request), timeout_seconds=GARDENLET_SECONDS)
        except Unavailable as error:
            raise Unavailable(
                f"the gardenlet of seed {seed} does not respond; with a backend that is simulated it has no kubeconfigs"
            ) from error
        return response_result(response, subject)


def _seconds(body: bytes) -> int:
    try:
        seconds = decode_json(body or b"{}", AdminKubeconfigBody).expirationSeconds
    except msgspec.DecodeError as error:
        raise BadRequest(f'send {{"expirationSeconds": …}}: {error}') from error
    if seconds < LEAST_SECONDS:
        raise BadRequest(f"expirationSeconds: must be at least {LEAST_SECONDS}, is {seconds}")
    return min(seconds, MOST_SECONDS)
