"""Names that a party may carry: decided here for everything that makes a name, or takes one from outside. Pure.

| who | carries | and has it from |
|---|---|---|
| a person, a program | what nobody below carries, nor begins with | a provider, `identity issue`, a certificate |
| a ServiceAccount | `system:serviceaccount:<namespace>:<name>` | the token that was requested for it |
| a gardenlet, agent, scheduler, extension, plug-in | `seed:<name>`, `member:<name>`, … | the landscape, by issue |
| a bootstrapper | `bootstrap:<id>` | its token |
| a service, the operator | its row's name, `operator` | the server's configuration |
| nobody | `system:anonymous` | a subject that names no user: there is no other way to it |

Groups come with none of these names but those that a role has (`groups_of`). Naming others, in roles, members,
configurations and reviews, is free: `principal_of` says whose a name would be, and lets nobody carry it.
"""

import re

from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import (
    MEMBER_COMMON_NAME_PREFIX,
    OPERATOR,
    PRINCIPAL_PREFIXES,
    SEED_COMMON_NAME_PREFIX,
    SERVICE_ACCOUNT_PREFIX,
    Principal,
    Role,
    common_name,
    organization,
    principal_of,
)
from gardenbus.common.api.identity.roles import GROUP_PREFIX
from gardenbus.common.api.names import LABEL
from gardenbus.common.api.users import token_text
from gardenbus.common.errors import BadRequest

RESERVED_PREFIXES = (
    *("system:", "gardener.cloud:", "gardenbus.io:", "kubernetes-fleet.io:", GROUP_PREFIX),
    *PRINCIPAL_PREFIXES,
)
"""No name of a person, or of a person's group, begins with one of them."""

_SERVICE_ACCOUNT = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Name of a ServiceAccount: a DNS subdomain, without the colon that parts it from its namespace."""

_SERVICES = frozenset(service_names())
_TOKEN_ID = re.compile(r"[a-z0-9]{6}")
_CERTIFIED: frozenset[Role] = frozenset({"gardenlet", "member-agent", "user", "scheduler", "extension", "plugin"})


def is_reserved(name: str) -> str:
    """The prefix by which a name, or a group, is for others than persons; "" where it has none."""
    return next((prefix for prefix in RESERVED_PREFIXES if name.startswith(prefix)), "")


def person(name: str) -> Principal:
    """The person, or the program, of a name. Raises BadRequest for a name that is for others."""
    found = principal_of(name)
    if reserved := is_reserved(name):
        raise BadRequest(f"{name}: that name is for others: no name of a person begins with {reserved}")
    if found.role != "user" or name in _SERVICES:
        raise BadRequest(f"{name}: that name is for others: {OPERATOR} and the services connect with their own keys")
    return found


def claimed_person(name: object) -> Principal:
    """The person whom a provider names, in lower case. Raises BadRequest.

    Letters outside ASCII are rejected before they are folded: the Kelvin sign would become a k, and another person.
    """
    if not isinstance(name, str) or not name:
        raise BadRequest("it must be a text that names somebody")
    if not name.isascii():
        raise BadRequest(f"{name[:80]!r} is no user: it has letters outside ASCII, which others could be taken for")
    return person(name.lower())


def service_account(namespace: str, name: str) -> Principal:
    """The ServiceAccount of a namespace. Raises BadRequest for a namespace, or a name, that cannot be one."""
    if not LABEL.fullmatch(namespace):
        raise BadRequest(f"{namespace[:80]!r} is no namespace: it has at most 63 of a-z, 0-9 and -")
    if not _SERVICE_ACCOUNT.fullmatch(name):
        raise BadRequest(f"{name[:80]!r} is no name of a ServiceAccount: it has a-z, 0-9, - and dots")
    return principal_of(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")


def issued(user: str) -> Principal:
    """The party that the landscape issues credentials to under a name. Raises BadRequest for one that has others."""
    found = principal_of(user)
    if found.role in ("operator", "bootstrap"):
        raise BadRequest(f"{user!r} has credentials of its own, and gets no others")
    if user.startswith(SERVICE_ACCOUNT_PREFIX):
        return service_account(*_parted(user))
    return person(user) if found.role == "user" else found


def carried(user: str) -> Principal:
    """The party outside the services that comes in under a name. Raises BadRequest for one that nobody carries."""
    found = principal_of(user)
    if found.role == "bootstrap" and not _TOKEN_ID.fullmatch(found.name):
        raise BadRequest(f"{user[:80]!r}: a bootstrap token's id has six of a-z and 0-9")
    return found if found.role in ("operator", "bootstrap") else issued(user)


def requester(user: str) -> Principal:
    """The party that sends requests under a name, also a service. Raises BadRequest for one that nobody carries."""
    return Principal("service", user) if user in _SERVICES else carried(user)


def user_of_token(token: str) -> str:
    """The user that a token of a subject names. Raises BadRequest for a name that nobody carries."""
    return requester(token_text(token)).user


def certified(name: str, organizations: tuple[str, ...]) -> Principal:
    """The party that a certificate's CN and O name. Raises BadRequest unless they agree, and say nothing besides."""
    if name.startswith(SEED_COMMON_NAME_PREFIX):
        user = Principal("gardenlet", name.removeprefix(SEED_COMMON_NAME_PREFIX)).user
    elif name.startswith(MEMBER_COMMON_NAME_PREFIX):
        user = Principal("member-agent", name.removeprefix(MEMBER_COMMON_NAME_PREFIX)).user
    else:
        user = name
    found = issued(user)
    if found.role not in _CERTIFIED or user.startswith(SERVICE_ACCOUNT_PREFIX) or common_name(found) != name:
        raise BadRequest(f"CN {name[:80]!r} is no name of a certificate's holder")
    if organizations != (organization(found),):
        others = ", ".join(organizations) or "none"
        raise BadRequest(f"CN {name!r} needs O {organization(found)!r}, and nothing else, not {others}")
    return found


def _parted(user: str) -> tuple[str, str]:
    """Namespace and name of a ServiceAccount's user."""
    namespace, _, name = user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return namespace, name
