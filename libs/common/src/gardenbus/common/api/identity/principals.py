"""Principals: the parties of a landscape, by the name that the server has proved.

A principal's user name is what subjects, `created-by` and the audit log say; a gardenlet's certificate says the same in
Gardener's words (https://gardener.cloud/docs/gardener/concepts/gardenlet/#tls-bootstrapping).
"""

from functools import lru_cache
from typing import Literal, NamedTuple

from gardenbus.common.api.fleet.member_clusters import REPORTER_PREFIX
from gardenbus.common.api.names import LABEL
from gardenbus.common.api.users import check_user, subject_token
from gardenbus.common.errors import BadRequest

Role = Literal[
    "service", "operator", "gardenlet", "member-agent", "user", "scheduler", "extension", "plugin", "bootstrap"
]
Account = Literal["GARDEN", "OUT"]

SEEDS_ORGANIZATION = "gardener.cloud:system:seeds"
SEED_COMMON_NAME_PREFIX = "gardener.cloud:system:seed:"
MEMBERS_ORGANIZATION = "gardenbus.io:system:members"
MEMBER_COMMON_NAME_PREFIX = "gardenbus.io:system:member:"

OPERATOR = "operator"
"""Name of the operator whose credentials `gardenbus up` writes."""

SEED_USER_PREFIX = "seed:"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
"""Of a user that Kubernetes' and Gardener's manifests name by a namespace and a name, parted by a colon."""

_PREFIXES: dict[Role, str] = {
    "gardenlet": SEED_USER_PREFIX,
    "member-agent": REPORTER_PREFIX,
    "scheduler": "scheduler:",
    "extension": "extension:",
    "plugin": "plugin:",
    "bootstrap": "bootstrap:",
}
PRINCIPAL_PREFIXES = tuple(_PREFIXES.values())
_LABELLED: frozenset[Role] = frozenset({"gardenlet", "member-agent", "scheduler", "extension", "plugin"})
"""Roles whose names are a part of subjects and of consumers' names: a dot or an underscore would name another's."""

_INSIDERS: frozenset[Role] = frozenset({"service", "operator"})


class Principal(NamedTuple):
    """A party: its role, and its name among those of the role (a Seed's, a service's, a person's)."""

    role: Role
    name: str

    @property
    def user(self) -> str:
        """Its user: `seed:aws`, `member:rome`, `plugin:carbon`, `bootstrap:4f2a91` and so on, or the name."""
        return f"{_PREFIXES.get(self.role, '')}{self.name}"

    @property
    def token(self) -> str:
        """The user as one token of a subject."""
        return subject_token(self.user)

    @property
    def account(self) -> Account:
        """The account of the server that it comes in by."""
        return "GARDEN" if self.role in _INSIDERS else "OUT"

    @property
    def inbox(self) -> str:
        """Prefix of its reply subjects; no two principals share one."""
        return f"_INBOX.{self.token}"


def principal_of(user: str) -> Principal:
    """The principal outside the services whose a user name would be. Raises BadRequest for an impossible name.

    For those whom others name, in roles, members and reviews, and whom the server has proved. Who may carry a name is
    decided in `names`.
    """
    check_user(user)
    for role, prefix in _PREFIXES.items():
        if user.startswith(prefix):
            if not user.removeprefix(prefix):
                raise BadRequest(f"{user!r} names no {role}")
            return _checked(Principal(role, user.removeprefix(prefix)))
    return Principal("operator" if user == OPERATOR else "user", user)


def common_name(principal: Principal) -> str:
    """The CN of a principal's certificate: Gardener's for a gardenlet."""
    match principal.role:
        case "gardenlet":
            return f"{SEED_COMMON_NAME_PREFIX}{principal.name}"
        case "member-agent":
            return f"{MEMBER_COMMON_NAME_PREFIX}{principal.name}"
        case _:
            return principal.user


def organization(principal: Principal) -> str:
    """The O of a principal's certificate."""
    match principal.role:
        case "gardenlet":
            return SEEDS_ORGANIZATION
        case "member-agent":
            return MEMBERS_ORGANIZATION
        case _:
            return f"gardenbus.io:system:{principal.role}s"


AUTHENTICATED_GROUP = "system:authenticated"
BOOTSTRAPPERS_GROUP = "system:bootstrappers"
SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts"


def groups_of(principal: Principal) -> tuple[str, ...]:
    """The groups of a principal, as Kubernetes' authenticators state them."""
    own = BOOTSTRAPPERS_GROUP if principal.role == "bootstrap" else organization(principal)
    return (own, AUTHENTICATED_GROUP)


@lru_cache(4096)
def groups_of_user(user: str) -> frozenset[str]:
    """The groups that a user's name proves: of a ServiceAccount those of Kubernetes, of others their principal's."""
    if user.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace = user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")[0]
        return frozenset({SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}", AUTHENTICATED_GROUP})
    try:
        return frozenset(groups_of(principal_of(user)))
    except BadRequest:  # the services' own, and a requester without a name
        return frozenset()


def _checked(principal: Principal) -> Principal:
    """Raise BadRequest for a name that a role cannot have."""
    if principal.role in _LABELLED and not LABEL.fullmatch(principal.name):
        raise BadRequest(f"{principal.user!r}: the name of a {principal.role} has at most 63 of a-z, 0-9 and -")
    return principal
