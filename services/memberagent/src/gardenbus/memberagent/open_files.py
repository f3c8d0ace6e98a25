"""How many files this process may have open: a cluster of the local backend needs one for its lock."""

import resource

import structlog

_log = structlog.stdlib.get_logger()

MOST = 1 << 20
"""More than anybody needs; a system that states no limit may still refuse more."""


def allow_open_files(wanted: int) -> int:
    """Raise the process's own limit as far as the system lets it; answers the limit. Too low a one is told."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft != resource.RLIM_INFINITY and soft < wanted:
        _log.warning("files.limited", limit=soft, wanted=wanted, way="raise the hard limit of open files (ulimit -Hn)")
    return soft
