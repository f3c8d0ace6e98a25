"""The `reconcile_id` of the log: every line of one reconcile, batch or round carries it."""

import secrets
from contextlib import AbstractContextManager

from structlog.contextvars import bound_contextvars


def bound_reconcile_id() -> AbstractContextManager[None]:
    """Bind a new id to the log context of this task until the end of the block."""
    return bound_contextvars(reconcile_id=secrets.token_hex(8))
