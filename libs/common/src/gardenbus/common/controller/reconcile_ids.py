"""The `reconcile_id` of the log: every line of one reconcile, batch or round carries it."""

import secrets
from contextlib import AbstractContextManager

from structlog.contextvars import bound_contextvars, get_contextvars


def bound_reconcile_id() -> AbstractContextManager[None]:
    """Bind a new id to the log context of this task until the end of the block."""
    return bound_contextvars(reconcile_id=secrets.token_hex(8))


def current_reconcile_id() -> str:
    """The id of the lines that this task logs; "" outside of any."""
    return str(get_contextvars().get("reconcile_id", ""))
