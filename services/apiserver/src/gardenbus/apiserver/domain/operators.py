"""Operators of a landscape whose requests are not authorized."""

from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.bus import Headers


def is_insider(user: str, headers: Headers) -> bool:
    """True for what comes from the services' account, and from the operator that `gardenbus up` writes."""
    return REQUEST_INFO not in headers or user == OPERATOR


def check_operator(user: str, *, is_operator: bool) -> None:
    """Raise Forbidden for anybody else."""
    if not is_operator:
        raise Forbidden(f"only operators decide this, and {user} is none")
