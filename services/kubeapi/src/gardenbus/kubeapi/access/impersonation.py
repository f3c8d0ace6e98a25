"""Impersonation: an operator sends requests as somebody else, by Kubernetes' headers `Impersonate-User` and `-Group`.

What is written so is the other user's, whose rights decide; the log says who sent it.
"""

from collections.abc import Sequence

import structlog

from gardenbus.common.api.identity.names import person, requester
from gardenbus.common.api.identity.principals import OPERATOR, SERVICE_ACCOUNT_PREFIX
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.access.logins import User
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.statuses import Rejected

USER, GROUP = "Impersonate-User", "Impersonate-Group"
_PREFIX = "impersonate-"

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def impersonated(user: User, headers: Sequence[tuple[str, str]], api: ImpersonatingClient) -> User:
    """The user as whom a request is sent: another one where headers say so.

    Raises Rejected for anybody but operators, BadRequest for a name that nobody carries and for other headers.
    """
    given = [(name.lower(), value) for name, value in headers if name.lower().startswith(_PREFIX)]
    if not given:
        return user
    name = next((value for header, value in given if header == USER.lower()), "")
    groups = tuple(value for header, value in given if header == GROUP.lower())
    if others := sorted({header for header, _ in given} - {USER.lower(), GROUP.lower()}):
        raise BadRequest(f"{others[0]}: only users and groups can be impersonated")
    if not name:
        raise BadRequest(f"{GROUP}: groups are impersonated with a user: {USER} is missing")
    if (await api.result(user.acting, "whoami")).get("role") != OPERATOR:
        about = f'users "{name[:80]}" is forbidden: User "{user.name}" cannot impersonate resource "users"'
        raise Rejected(403, "Forbidden", f'{about} in API group "" at the cluster scope')
    _check_name(name)
    _log.info("user.impersonated", user=name, groups=groups, by=user.name)
    return User(name, groups, user.proof, impersonator=user.name)


def _check_name(name: str) -> None:
    """Raise BadRequest for a name of the landscape's own parties: services, the operator, agents."""
    if name.startswith(SERVICE_ACCOUNT_PREFIX):
        requester(name)
    else:
        person(name)
