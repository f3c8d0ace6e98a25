"""Decides about certificate signing requests.

| requester | requests | decision |
|---|---|---|
| anybody | what nobody can sign: a broken request, a CN without its O, other usages, a service | denied |
| anybody | a key that an earlier request has | denied: replayed |
| a token, a gardenlet, a member agent | a name that was revoked after the request was sent | denied |
| a bootstrap token that ended, was spent, or is bound to another name | | denied |
| a token bound to the name, or any where the name has no living certificate | a gardenlet, a member agent | approved |
| a token | a name that has a living certificate | waits |
| a token for any name | a name that an earlier request by a token is for | waits until that one is decided |
| a gardenlet, a member agent | its own name | approved, unless it was revoked |
| a gardenlet, a member agent | another name | denied |
| a person | anything else | waits for `gardenbus certificate approve` |

Source: Gardener's `certificatesigningrequest` controller and its bootstrap of gardenlets.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.identity.signing_requests import SIGNER, USAGES, SigningRequest
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import requested_principal

WAITING_LIFE = timedelta(hours=24)
"""Time for which a request waits. Source: Kubernetes' `certificates/cleaner`."""

_NEEDED = frozenset({"client auth", "digital signature"})
_AGENTS = ("gardenlet", "member-agent")


class Approve(NamedTuple):
    """It is approved; the token (its id), if there is one, is spent on it first."""

    message: str
    token: str = ""


class Deny(NamedTuple):
    """It is denied for ever."""

    reason: str
    message: str


class Wait(NamedTuple):
    """It waits for an operator, or (`is_short`) for the decision about another request."""

    message: str
    is_short: bool = False


class NotOurs(NamedTuple):
    """It is for another signer."""


Decision = Approve | Deny | Wait | NotOurs


MOST_LIVING = 64
"""Certificates of one gardenlet, or member agent, that live: each is kept until its end. It has two while it renews."""


class ApprovalFacts(NamedTuple):
    """Facts known when a request is decided about."""

    token: BootstrapToken | None = None
    """The requester's, if it came in with one and it is still there."""
    same_key: Sequence[str] = ()
    """Names of the requests before it that are for the same key."""
    lives_until: datetime | None = None
    """The end of the last certificate of that name that lives; None: there is none."""
    living: int = 0
    """Number of certificates of that name that live."""
    is_revoked: bool = False
    """The requester was revoked, and has got no certificate since."""
    is_outdated: bool = False
    """The principal was revoked since the request was sent, or within its second."""
    approved: str = ""
    """Name of another request for the same principal that is approved, and not signed yet."""
    earlier: str = ""
    """Name of one by a token that was stored before this one, and is not decided about."""


def decide(request: SigningRequest, facts: ApprovalFacts) -> Decision:
    """Decide about a request that nobody has decided about yet."""
    if request.signer != SIGNER:
        return NotOurs()
    try:
        principal = certifiable_principal(request)
    except BadRequest as error:
        return Deny("InvalidRequest", error.message)
    if not _NEEDED <= set(request.usages) <= set(USAGES):
        return Deny("UnsupportedUsages", f"spec.usages: must be {', '.join(USAGES)}")
    if facts.same_key:
        return Deny("Replayed", f"its key is that of {facts.same_key[0]}: a certificate needs a new key")
    requester = _requester(request)
    if facts.is_outdated and requester.role in ("bootstrap", *_AGENTS):
        return Deny("Revoked", f"the credentials of {principal.user} were revoked since: send another request")
    if requester.role == "bootstrap":
        return _by_token(request, principal, facts)
    if requester.role in _AGENTS:
        return _renewal(requester, principal, facts)
    return Wait(f"{request.username} requests a certificate of {principal.user}")


def certifiable_principal(request: SigningRequest) -> Principal:
    """The principal that a request is for. Raises BadRequest when nobody can sign it."""
    principal = requested_principal(request.pem)
    if principal.account != "OUT" or principal.role == "bootstrap":
        raise BadRequest(f"{principal.user!r} has no certificate: it authenticates otherwise")
    return principal


def _by_token(request: SigningRequest, principal: Principal, facts: ApprovalFacts) -> Decision:
    token = facts.token
    if token is None or not token.authenticates:
        return Deny("TokenInvalid", f"the bootstrap token of {request.username} not found, or not for this")
    if request.created_at >= token.expires:
        return Deny("TokenExpired", f"the bootstrap token {token.token.id} ended at {token.expires.isoformat()}")
    if principal.role not in _AGENTS:
        return Deny("NotOwnName", f"a bootstrap token is for gardenlets and member agents, not for {principal.user}")
    if token.bound_to is not None and token.bound_to != principal:
        return Deny("NotOwnName", f"the bootstrap token {token.token.id} is for {token.bound_to.user} only")
    if token.spent_by and token.spent_by != spender(request):
        return Deny("TokenUsed", f"the bootstrap token {token.token.id} was used before: request a new one")
    if token.bound_to is None and facts.lives_until is not None:
        return Wait(f"{principal.user} has a certificate that lives until {facts.lives_until.isoformat()}")
    if token.bound_to is None and facts.approved:
        return Wait(f"{principal.user} gets a certificate by the request {facts.approved}")
    if token.bound_to is None and facts.earlier:
        return Wait(f"the request {facts.earlier} for {principal.user} came before", is_short=True)
    return Approve(f"by bootstrap token {token.token.id}", token.token.id)


def _renewal(requester: Principal, principal: Principal, facts: ApprovalFacts) -> Decision:
    if requester != principal:
        return Deny("NotOwnName", f"{requester.user} requests a certificate of {principal.user}")
    if facts.is_revoked:
        return Wait(f"the credentials of {requester.user} were revoked")
    if facts.living >= MOST_LIVING:
        return Deny("TooManyCertificates", f"{principal.user} has {facts.living} that live: revoke it, if it is stolen")
    return Approve(f"{requester.user} renews its own")


def spender(request: SigningRequest) -> str:
    """Name and uid of a request, as a token says that was spent on it."""
    return f"{request.name}/{request.uid}"


def _requester(request: SigningRequest) -> Principal:
    try:
        return principal_of(request.username)
    except BadRequest:
        return Principal("user", request.username)
