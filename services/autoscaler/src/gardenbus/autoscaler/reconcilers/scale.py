"""Changes a set's replicas the way everybody does: by asking the API, on the version that was decided on."""

from typing import Any

import msgspec

from gardenbus.common.errors import Conflict, Forbidden, NotFound, Terminal, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import Header, Subjects

USER = "autoscaler"
ANSWER_SECONDS = 10.0
_ERRORS = {404: NotFound, 409: Conflict, 503: Unavailable, 403: Forbidden}


class _Answer(msgspec.Struct, frozen=True):
    """What of an answer is read."""

    ok: bool = False
    error: dict[str, Any] = {}


class Scale:
    """Speaks as the user `autoscaler`."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subject = subjects.spoken_by(USER, "api.scale")

    async def change(self, target: StoredObject, replicas: int, autoscaler: StoredObject) -> None:
        """Set the replicas, only while both objects have the versions given.

        Raises Conflict when one has not, Unavailable without an answer (it may have happened), Terminal or NotFound
        when it is refused.
        """
        body = {
            "namespace": target.key.namespace,
            "name": target.key.name,
            "replicas": replicas,
            "resourceVersion": str(target.version),
        }
        headers = {Header.CONDITION: f"{autoscaler.key.tail}={autoscaler.version}"}
        reply = await self._bus.request(
            self._subject, msgspec.json.encode(body), headers=headers, timeout_seconds=ANSWER_SECONDS
        )
        try:
            answer = msgspec.json.decode(reply, type=_Answer)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"the answer cannot be read: {error}") from error
        if not answer.ok:
            message = str(answer.error.get("message") or "refused without a reason")
            raise _ERRORS.get(int(answer.error.get("code") or 0), Terminal)(message)
