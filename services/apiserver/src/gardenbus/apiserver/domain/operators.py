"""Operators of a landscape whose requests are not authorized."""

from gardenbus.common.errors import Forbidden


def check_operator(user: str, *, is_operator: bool) -> None:
    """Raise Forbidden for anybody else."""
    if not is_operator:
        raise Forbidden(f"only operators decide this, and {user} is none")
