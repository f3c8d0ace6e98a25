"""Authorizer of reads: the apiserver decides for each user, and its decision counts for some seconds."""

from collections import OrderedDict
from typing import Literal, NamedTuple

from gardenbus.common.api.identity.principals import PRINCIPAL_PREFIXES
from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.acting_users import ActingUser
from gardenbus.kubeapi.domain.request_info import RequestInfo

FRESH_SECONDS = 10.0
"""Time for which a decision counts: a right that is withdrawn is used no longer than that."""

STALE_SECONDS = 60.0
"""Time for which it counts while the apiserver does not respond."""

MOST_DECISIONS = 100_000


class AccessAttributes(NamedTuple):
    """An action of a user. `namespace` "" is all of them, or none; `kind` may have a subresource."""

    user: ActingUser
    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @classmethod
    def of_list(cls, user: ActingUser, verb: Literal["list", "watch"], info: RequestInfo) -> "AccessAttributes":
        """A list or watch; its selectors count for agents and the like, and decisions about people are shared."""
        attributes = cls(user, verb, info.resource.singular, info.namespace)
        if not user.name.startswith(PRINCIPAL_PREFIXES):
            return attributes
        label_selector, field_selector = info.query.get("labelSelector", ""), info.query.get("fieldSelector", "")
        return attributes._replace(label_selector=label_selector, field_selector=field_selector)

    @property
    def body(self) -> dict[str, str | None]:
        """As the apiserver reads it."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        about = {"verb": self.verb, "kind": self.kind, "namespace": self.namespace or None, "name": self.name}
        return {**about, **{name: text for name, text in selectors.items() if text}}


class _CachedDecision(NamedTuple):
    allowed: bool
    reason: str
    at: float


class DelegatingAuthorizer:
    """Decisions about users. One for all requests."""

    def __init__(self, api: ImpersonatingClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._decided: OrderedDict[AccessAttributes, _CachedDecision] = OrderedDict()

    async def require(self, attributes: AccessAttributes) -> None:
        """Raise Forbidden unless the action is allowed, Unavailable when nobody can say."""
        decided = await self._decide(attributes)
        if not decided.allowed:
            raise Forbidden(decided.reason)

    async def _decide(self, attributes: AccessAttributes) -> _CachedDecision:
        cached, now = self._decided.get(attributes), self._clock.monotonic()
        if cached is not None and now - cached.at < FRESH_SECONDS:
            return cached
        try:
            result = await self._api.result(attributes.user, "can-i", attributes.body)
        except Unavailable:
            if cached is not None and now - cached.at < STALE_SECONDS:
                return cached
            raise
        self._decided.pop(attributes, None)
        self._decided[attributes] = found = _CachedDecision(
            bool(result.get("allowed")), str(result.get("reason") or "it is not allowed"), self._clock.monotonic()
        )
        while len(self._decided) > MOST_DECISIONS:
            self._decided.popitem(last=False)
        return found
