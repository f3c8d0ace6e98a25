"""Requests for kubeconfigs of shoots on this seed, relayed by the apiserver. The CA's key stays on the seed."""

from datetime import timedelta

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.responses import failure, success
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound
from gardenbus.common.ports.bus import Request
from gardenbus.gardenlet.backend.seed_backend import SeedBackend


class _Body(msgspec.Struct, frozen=True):
    """Life of the certificate, and the user that it is made out to."""

    expirationSeconds: int  # noqa: N815  as the apiserver sends it
    user: str


class AdminKubeconfigHandler:
    """Handles requests on `Subjects.admin_kubeconfigs_of`. Any replica can: it only reads what is on the seed."""

    def __init__(self, backend: SeedBackend) -> None:
        self._backend = backend

    async def __call__(self, request: Request) -> bytes:
        """Respond to one request, whatever it is."""
        namespace, _, name = request.subject.split(".adminkubeconfig.", 1)[-1].partition(".")
        try:
            body = decode_json(request.body, _Body)
            record = self._backend.load((namespace, name))
            if record is None:
                raise NotFound(f"shoot {namespace}/{name} is not on this seed")
            life = timedelta(seconds=body.expirationSeconds)
            return success(await self._backend.admin_kubeconfig(record, user=body.user, life=life))
        except msgspec.DecodeError as error:
            return failure(BadRequest(f"the request cannot be read: {error}"))
        except GardenbusError as error:
            return failure(error)
