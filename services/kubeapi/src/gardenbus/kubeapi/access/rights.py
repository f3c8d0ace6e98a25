"""Rights to read, as the apiserver decides: asked for each user, and remembered for some seconds."""

from collections import OrderedDict
from typing import NamedTuple

from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.kubeapi.api_client import ApiClient

FRESH_SECONDS = 10.0
"""Time for which a decision counts: a right that is withdrawn is used no longer than that."""

STALE_SECONDS = 60.0
"""Time for which it counts while the apiserver does not respond."""

MOST_DECISIONS = 100_000


class Review(NamedTuple):
    """An action of a user. `namespace` "" is all of them, or none; `kind` may have a subresource."""

    user: str
    verb: str
    kind: str
    namespace: str = ""
    name: str = ""

    @property
    def body(self) -> dict[str, str | None]:
        """As the apiserver reads it."""
        return {"verb": self.verb, "kind": self.kind, "namespace": self.namespace or None, "name": self.name}


class _Decided(NamedTuple):
    allowed: bool
    reason: str
    at: float


class Rights:
    """Decisions about users. One for all requests."""

    def __init__(self, api: ApiClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._decided: OrderedDict[Review, _Decided] = OrderedDict()

    async def require(self, review: Review) -> None:
        """Raise Forbidden unless the action is allowed, Unavailable when nobody can say."""
        decided = await self._decide(review)
        if not decided.allowed:
            raise Forbidden(decided.reason)

    async def _decide(self, review: Review) -> _Decided:
        known, now = self._decided.get(review), self._clock.monotonic()
        if known is not None and now - known.at < FRESH_SECONDS:
            return known
        try:
            result = await self._api.result(review.user, "can-i", review.body)
        except Unavailable:
            if known is not None and now - known.at < STALE_SECONDS:
                return known
            raise
        self._decided.pop(review, None)
        self._decided[review] = found = _Decided(
            bool(result.get("allowed")), str(result.get("reason") or "it is not allowed"), self._clock.monotonic()
        )
        while len(self._decided) > MOST_DECISIONS:
            self._decided.popitem(last=False)
        return found
