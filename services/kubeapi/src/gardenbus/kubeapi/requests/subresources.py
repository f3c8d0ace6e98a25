"""Subresources that are requests of their own: scale, binding, adminkubeconfig, approval of signing requests."""

import base64
from typing import Any

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.bodies import read_body, read_json
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response

_CREATED = 201
_MERGE_PATCH = "application/merge-patch+json"


class Subresources:
    """Handles them, but for a status, which is read and written as its object is."""

    def __init__(self, api: ImpersonatingClient) -> None:
        self._api = api

    async def handle(self, request: ApiRequest) -> ObjectResponse | None:
        """Respond to a request about a subresource; None where its object is handled instead."""
        assert request.info.subresource is not None
        match request.info.subresource.name, request.info.verb:
            case "scale", _:
                return await self._scale(request)
            case "binding", _:
                return await self._bind(request)
            case "adminkubeconfig", _:
                return await self._admin_kubeconfig(request)
            case "approval", "update":
                return await self._approve(request)
            case _:
                return None  # `status` is read and written as its object is

    async def _scale(self, request: ApiRequest) -> ObjectResponse:
        info = request.info
        body: dict[str, Any] = {"name": info.name, "namespace": info.namespace}
        if info.verb != "get":
            given = _sent(request)
            replicas: Any = section(given, "spec").get("replicas")
            if not isinstance(replicas, int) or isinstance(replicas, bool):
                raise BadRequest("spec.replicas: must be a number")
            version = str(section(given, "metadata").get("resourceVersion") or "")
            body |= {"replicas": replicas, "resourceVersion": version}
        found = await self._api.result(request.user.acting, "scale", body)
        return object_response(
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {
                    "name": info.name,
                    "namespace": info.namespace,
                    "resourceVersion": str(found.get("resourceVersion") or ""),
                },
                "spec": {"replicas": found.get("replicas", 0)},
                "status": {"replicas": found.get("statusReplicas", 0), "selector": found.get("selector", "")},
            }
        )

    async def _bind(self, request: ApiRequest) -> ObjectResponse:
        given, info = _sent(request), request.info
        seed = section(given, "spec").get("seedName")
        if not isinstance(seed, str) or not seed:
            raise BadRequest("spec.seedName: name the seed")
        version = str(section(given, "metadata").get("resourceVersion") or "")
        body = {"namespace": info.namespace, "name": info.name, "seed": seed, "resourceVersion": version}
        result = await self._api.request(request.user.acting, "bind", body)
        return ObjectResponse(result.body, warnings=result.warnings)

    async def _admin_kubeconfig(self, request: ApiRequest) -> ObjectResponse:
        given, info = _sent(request), request.info
        seconds: Any = section(given, "spec").get("expirationSeconds", 3600)
        tail = f"adminkubeconfig.{info.namespace}.{info.name}"
        found = await self._api.result(request.user.acting, tail, {"expirationSeconds": seconds})
        status = {
            "kubeconfig": base64.b64encode(str(found["kubeconfig"]).encode()).decode(),
            "expirationTimestamp": found["expirationTimestamp"],
        }
        part = info.subresource
        assert part is not None
        named = {"kind": part.kind, "apiVersion": f"{part.group}/{part.version}", "metadata": {"name": info.name}}
        return object_response({**named, "spec": {"expirationSeconds": seconds}, "status": status}, _CREATED)

    async def _approve(self, request: ApiRequest) -> ObjectResponse:
        name, user = request.info.name, request.user.acting
        for verb, word in (("approve", "Approved"), ("deny", "Denied")):
            for condition in conditions_of(_sent(request)):
                if condition.get("type") == word:
                    body = {"name": name, "message": str(condition.get("message") or "")}
                    await self._api.request(user, f"csr.{verb}", body)
                    return ObjectResponse(
                        (await self._api.request(user, f"get.certificatesigningrequest._.{name}")).body
                    )
        raise BadRequest("status.conditions: one must be Approved or Denied")


def _sent(request: ApiRequest) -> Document:
    if request.content_type.startswith(_MERGE_PATCH):
        value = read_json(request.body)
        return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return read_body(request.body, request.content_type) if request.body else {}
