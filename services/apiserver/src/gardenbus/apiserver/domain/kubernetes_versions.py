"""Kubernetes versions of a shoot and its worker pools: how they may change."""

from collections.abc import Iterator, Sequence
from typing import Any

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.pool_constraints import IN_PLACE
from gardenbus.common.errors import FieldProblem

LARGEST_SKEW = 3
"""Minor versions that a worker pool may be behind its API server. Source: Kubernetes' version skew policy."""

_LOWERED = RejectionMessage("{before} cannot be lowered to {version}")
_SKIPPED = RejectionMessage("goes up by one minor version at a time: {next} comes after {before}")
_ABOVE = RejectionMessage("{version} is above that of the API server, {control_plane}: raise that one first")
_BEHIND = RejectionMessage(
    f"{{version}} is more than {LARGEST_SKEW} minor versions behind the API server ({{control_plane}})"
)
VERSION_REJECTIONS = (_LOWERED, _SKIPPED, _ABOVE, _BEHIND)


def version_problems(spec: Document, before: Document) -> Iterator[FieldProblem]:
    """Problems of a spec whose versions have changed; `before` is {} for a new shoot.

    Versions never go down, and that of the control plane up by one minor at a time; so do those of pools whose machines
    are updated in place, while others may skip minors. A pool has the version of the control plane where it states
    none; one of its own is not above that of the API server, nor too far below. Source: Gardener's
    `pkg/api/core/validation/shoot.go`.
    """
    path, version, had = "spec.kubernetes.version", _version_in(spec), _version_in(before)
    yield from _change_problems(path, version, had)
    pools = {pool.get("name"): pool for pool in mappings(section(before, "provider").get("workers"))}
    for index, pool in enumerate(mappings(section(spec, "provider").get("workers"))):
        old = pools.get(pool.get("name"))
        own, old_own = _version_in(pool), _version_in(old or {})
        if (own is None and old_own is None) or (old is not None and own == old_own and version == had):
            continue
        path = f"spec.provider.workers[{index}].kubernetes.version"
        if old is not None:
            may_skip = pool.get("updateStrategy") not in IN_PLACE
            yield from _change_problems(path, own or version, old_own or had, may_skip=may_skip)
        if own is not None:
            yield from _skew_problems(path, own, version)


def _version_in(holder: Document) -> Any:
    return section(holder, "kubernetes").get("version") or None


def _change_problems(path: str, version: object, before: object, *, may_skip: bool = False) -> Iterator[FieldProblem]:
    if before is None or version == before:
        return
    now, then = numbers_of(version), numbers_of(before)
    if not now or not then:
        return
    if now < then[: len(now)]:
        yield FieldProblem(path, _LOWERED(before=before, version=version))
    elif not may_skip and (now[0] > then[0] or (len(now) > 1 and now[1] > then[1] + 1)):
        yield FieldProblem(path, _SKIPPED(next=f"{then[0]}.{then[1] + 1}", before=before))


def _skew_problems(path: str, version: object, control_plane: object) -> Iterator[FieldProblem]:
    pool, api_server = numbers_of(version), numbers_of(control_plane)
    if not pool or not api_server:
        return
    if pool > api_server:
        yield FieldProblem(path, _ABOVE(version=version, control_plane=control_plane))
    elif _minor(api_server) - _minor(pool) > LARGEST_SKEW:
        yield FieldProblem(path, _BEHIND(version=version, control_plane=control_plane))


def _minor(numbers: Sequence[int]) -> int:
    return numbers[1] if len(numbers) > 1 else 0
