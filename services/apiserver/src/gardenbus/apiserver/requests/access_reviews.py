"""Serves `whoami` and `can-i`: the decisions that requests get, without a request.

| request | result |
|---|---|
| `whoami` | `{"user", "groups", "role", "authorization"}`; `role` as `operator`, `viewer`, `gardenlet`, `user` |
| `can-i` with `verb` and `kind` | `{"allowed", "reason"}`; `kind` is any word for it, or a request as `census` |
| `can-i` without `verb` | `{"rules": [{"kind", "verbs"}]}`: what is allowed on objects of any name |

| `readable` | what the requester may read: `{"role", "kinds", "namespaces", "projects"}` (`Readable`) |

`user` is somebody else, whom only operators may name.
"""

from collections.abc import Sequence
from typing import Any

from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.authorization.actions import (
    BIND,
    READS,
    UPDATE_STATUS,
    WRITES,
    Action,
    Permit,
    Requester,
)
from gardenbus.apiserver.domain.authorization.decision import EVERYBODYS_REQUESTS, LANDSCAPE_READS, role_of
from gardenbus.apiserver.domain.authorization.readable import readable
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import OPERATOR, organization, principal_of
from gardenbus.common.api.identity.readable import EVERYTHING, Readable
from gardenbus.common.api.kinds import KINDS, by_word
from gardenbus.common.api.request_bodies import AccessReview
from gardenbus.common.api.users import check_user
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.ports.store import Objects

_VERBS: Sequence[str] = ("get", "list", "watch", "create", "update", "patch", "delete", "explain", "retry", BIND)
_ONLY_ON_SHOOTS = frozenset({"explain", "retry", BIND})
_SUBRESOURCES = {"shoots/binding": BIND, "shoot/binding": BIND, "managedseedsets/scale": "scale"}
_OBJECT_VERBS = READS | WRITES | {BIND, "retry", UPDATE_STATUS, "scale", "adopt", "forget"}
_LANDSCAPE = LANDSCAPE_READS | EVERYBODYS_REQUESTS

NOT_ENFORCED = "this landscape has no identities: everybody may do everything"


class AccessReviews:
    """Reviews access. One for all requests."""

    def __init__(self, authorizer: Authorizer, store: Objects) -> None:
        self._authorizer = authorizer
        self._store = store

    async def on_readable(self, call: Call) -> Readable:
        """Rights of the requester to read, as its lists are authorized."""
        requester, reads = call.options.requester, call.reads
        if not self._authorizer.decides_on(requester):
            return EVERYTHING
        facts = await self._authorizer.facts(requester, Action("readable"), reads)
        is_whole = role_of(requester, facts) is not None
        projects = [] if is_whole else await self._projects_of((requester.user, *requester.groups))
        return readable(requester, facts.roles, projects)

    async def _projects_of(self, names: Sequence[str]) -> list[Document]:
        """The Projects whose manifests name a user or one of its groups: few of many are decoded."""
        named, token = [name.rpartition(":")[2].encode() for name in names], None
        found: list[Document] = []
        while True:
            page = await self._store.list_page("project", continue_token=token)
            found += [stored.document() for stored in page.objects if any(name in stored.encoded() for name in named)]
            token = page.continue_token
            if token is None:
                return found

    async def on_whoami(self, call: Call) -> Any:
        """The requester, as its requests are authorized."""
        requester, reads = call.options.requester, call.reads
        if requester.is_trusted and self._authorizer.is_enforced:
            return self._described(OPERATOR, ["system:masters"], OPERATOR)
        principal = principal_of(requester.user)
        if not self._authorizer.is_enforced or principal.role != "user":
            groups = [organization(principal)] if principal.role in ("gardenlet", "member-agent") else []
            return self._described(requester.user, groups, principal.role)
        facts = await self._authorizer.facts(requester, Action("whoami"), reads)
        return self._described(requester.user, sorted(requester.groups), role_of(requester, facts) or "user")

    async def on_can_i(self, call: Call) -> Any:
        """Review an action, or list what is allowed. Raises BadRequest, Unsupported, Forbidden."""
        review, requester, reads = call.read(AccessReview), call.options.requester, call.reads
        about = await self._about(review, requester, reads)
        if not review.verb:
            return {"rules": await self._rules(about, review.namespace, reads), **self._note()}
        decided = await self._authorizer.decide(about, _action_of(review), reads)
        reason = "" if isinstance(decided, Permit) else decided.detail
        return {"allowed": not reason, "reason": reason or (self._note().get("note") or "")}

    def _note(self) -> dict[str, str]:
        return {} if self._authorizer.is_enforced else {"note": NOT_ENFORCED}

    def _described(self, user: str, groups: Sequence[str], role: str) -> dict[str, Any]:
        return {"user": user, "groups": list(groups), "role": role, "authorization": self._authorizer.is_enforced}

    async def _about(self, review: AccessReview, requester: Requester, reads: ReadCache) -> Requester:
        """The requester, or the other user that an operator names."""
        if review.user in ("", requester.user) and not review.groups:
            return requester
        if review.user:
            check_user(review.user)
        if self._authorizer.decides_on(requester):
            facts = await self._authorizer.facts(requester, Action("can-i"), reads)
            if principal_of(requester.user).role != "user" or role_of(requester, facts) != OPERATOR:
                raise Forbidden(f'user "{requester.user}" cannot request this for others: that takes the role operator')
        return Requester(review.user or requester.user, groups=frozenset(review.groups))

    async def _rules(self, about: Requester, namespace: str | None, reads: ReadCache) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for spec in KINDS.values():
            scope = "" if spec.namespaced is False else namespace
            verbs = [
                verb
                for verb in _VERBS
                if (verb not in _ONLY_ON_SHOOTS or spec.singular == "shoot")
                and isinstance(await self._authorizer.decide(about, Action(verb, spec.singular, scope), reads), Permit)
            ]
            if verbs:
                found.append({"kind": spec.qualified_plural, "verbs": verbs})
        return found


def _action_of(review: AccessReview) -> Action:
    verb, kind = review.verb, review.kind
    if kind in _SUBRESOURCES and verb in ("create", "update", "patch", BIND, "scale"):
        verb, kind = _SUBRESOURCES[kind], kind.partition("/")[0]
    if kind.endswith("/status") and verb in ("update", "patch"):
        verb, kind = UPDATE_STATUS, kind.removesuffix("/status")
    if not kind and verb in _LANDSCAPE:
        return Action(verb)
    if verb not in _OBJECT_VERBS:
        raise BadRequest(f"verb: {verb[:40]!r} is none: there are {', '.join(sorted(_OBJECT_VERBS | _LANDSCAPE))}")
    spec = by_word(kind)
    namespace = "" if spec.namespaced is False else review.namespace
    action = Action(verb, spec.singular, namespace, review.name)
    if verb not in ("list", "watch"):
        return action
    return action._replace(name=review.name or review.selected_name, seed=review.seed, labels=review.labels)
