"""Reviews: who somebody is, and what they may do, as the apiserver decides."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.principals import AUTHENTICATED_GROUP, OPERATOR
from gardenbus.common.errors import BadRequest, Forbidden, GardenbusError, Unavailable
from gardenbus.kubeapi.access.logins import Logins, Unauthenticated
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.acting_users import ActingUser
from gardenbus.kubeapi.domain.bodies import read_body
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response

_CREATED = 201
_ALL = "*"
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


class Reviews:
    """Handles reviews."""

    def __init__(self, api: ImpersonatingClient, logins: Logins) -> None:
        self._api = api
        self._logins = logins
        self._by_kind: Mapping[str, Callable[[ApiRequest, Document], Awaitable[Document]]] = {
            "SelfSubjectReview": self._self,
            "SelfSubjectAccessReview": self._access,
            "SubjectAccessReview": self._access,
            "SelfSubjectRulesReview": self._rules,
            "TokenReview": self._token,
        }

    async def create(self, request: ApiRequest) -> ObjectResponse:
        """Respond to a review. Raises BadRequest, Forbidden, Unavailable."""
        resource = request.info.resource
        given = read_body(request.body, request.content_type) if request.body else {}
        status = await self._by_kind[resource.kind](request, section(given, "spec"))
        named = {"kind": resource.kind, "apiVersion": resource.api_version}
        return object_response({**named, "metadata": {}, "spec": section(given, "spec"), "status": status}, _CREATED)

    async def _self(self, request: ApiRequest, _spec: Document) -> Document:
        return {"userInfo": await self._user_info(request.user.acting)}

    async def _user_info(self, user: ActingUser) -> Document:
        found = await self._api.result(user, "whoami")
        groups = [*dict.fromkeys((*found.get("groups", ()), AUTHENTICATED_GROUP))]
        return {"username": found.get("user", user.name), "groups": groups}

    async def _access(self, request: ApiRequest, spec: Document) -> Document:
        about: dict[str, Any] = {}
        if request.info.resource.kind == "SubjectAccessReview":
            about = {"user": str(spec.get("user") or ""), "groups": [*(spec.get("groups") or ())]}
        if attributes := section(spec, "nonResourceAttributes"):
            return {"allowed": attributes.get("verb") == "get", "reason": ""}
        attributes = section(spec, "resourceAttributes")
        if not attributes:
            raise BadRequest("spec.resourceAttributes: state what is reviewed, or spec.nonResourceAttributes")
        for body in _reviews(attributes):
            try:
                found = await self._api.result(request.user.acting, "can-i", {**body, **about})
            except (Unavailable, Forbidden):
                raise
            except GardenbusError as error:  # a word that is no kind, or no verb
                if error.code == 403:  # noqa: PLR2004 - about others, as no operator
                    raise
                return {"allowed": False, "reason": error.message}
            if not found.get("allowed"):
                return {"allowed": False, "reason": str(found.get("reason") or "")}
        return {"allowed": True}

    async def _rules(self, request: ApiRequest, spec: Document) -> Document:
        body = {"namespace": str(spec.get("namespace") or "") or None}
        found = await self._api.result(request.user.acting, "can-i", body)
        rules: list[Document] = []
        for rule in found.get("rules", ()):
            plural, _, group = str(rule["kind"]).partition(".")
            rules.append({"verbs": rule["verbs"], "apiGroups": [group], "resources": [plural]})
        paths = {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"]}
        return {"resourceRules": rules, "nonResourceRules": [paths], "incomplete": False}

    async def _token(self, request: ApiRequest, spec: Document) -> Document:
        role = (await self._api.result(request.user.acting, "whoami")).get("role")
        if role != OPERATOR:
            raise Forbidden(f'user "{request.user.name}" cannot review tokens: that takes the role operator')
        try:
            user = await self._logins.by_token(str(spec.get("token") or ""))
        except Unauthenticated as error:
            return {"authenticated": False, "error": error.message}
        return {"authenticated": True, "user": await self._user_info(user.acting)}


def _reviews(attributes: Document) -> list[dict[str, Any]]:
    """Bodies of requests to the apiserver; `*` is every verb."""
    kind = str(attributes.get("resource") or "")
    if part := attributes.get("subresource"):
        kind = f"{kind}/{part}"
    verb = str(attributes.get("verb") or "")
    verb = "delete" if verb == "deletecollection" else verb
    namespace, name = str(attributes.get("namespace") or "") or None, str(attributes.get("name") or "")
    if kind == _ALL:
        kind = "secret"  # who may do everything may do it with what the fewest may
    return [
        {"verb": each, "kind": kind, "namespace": namespace, "name": name}
        for each in (_VERBS if verb == _ALL else (verb,))
    ]
