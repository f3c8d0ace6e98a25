"""Limit of open files: the local backend needs one a cluster for its lock."""

import resource

import structlog

_log = structlog.stdlib.get_logger()

MOST = 1 << 20
"""Upper bound; a system that states no limit may still reject more."""


def allow_open_files(wanted: int) -> int:
    """Raise the process's own limit as far as possible and return it; log if it is below `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft != resource.RLIM_INFINITY and soft < wanted:
        _log.warning("files.limited", limit=soft, wanted=wanted, way="raise the hard limit of open files (ulimit -Hn)")
    return soft
