"""Operators of a landscape: who comes in from the services' side, as the user that `gardenbus up` writes does."""

from gardenbus.apiserver.domain.senders import REQUEST_INFO
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.bus import Headers


def check_operator(user: str, headers: Headers) -> None:
    """Raise Forbidden for what comes from outside the services' account, but for the operator's."""
    if REQUEST_INFO in headers and user != OPERATOR:
        raise Forbidden(f"only operators decide this, and {user} is none")
