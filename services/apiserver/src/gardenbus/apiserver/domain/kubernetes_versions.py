"""Kubernetes versions and machine images of a profile: which one a shoot gets, and how its version may change."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.architectures import architecture_of
from gardenbus.common.api.garden.expirable_versions import newest_version, numbers_of
from gardenbus.common.api.garden.pool_constraints import kubelet_of, runnable_images
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

    Versions never go down, and up by one minor at a time; a worker pool's is not above that of the API server, nor too
    far below. Source: Gardener's `pkg/api/core/validation/shoot.go`.
    """
    path, version = "spec.kubernetes.version", section(spec, "kubernetes").get("version")
    yield from _change_problems(path, version, section(before, "kubernetes").get("version"))
    pools = {pool.get("name"): pool for pool in mappings(section(before, "provider").get("workers"))}
    for index, pool in enumerate(mappings(section(spec, "provider").get("workers"))):
        own = section(pool, "kubernetes").get("version")
        if own is None:
            continue
        old = section(pools.get(pool.get("name"), {}), "kubernetes").get("version")
        if own == old and version == section(before, "kubernetes").get("version"):
            continue
        path = f"spec.provider.workers[{index}].kubernetes.version"
        yield from _change_problems(path, own, old)
        yield from _skew_problems(path, own, version)


def _change_problems(path: str, version: object, before: object) -> Iterator[FieldProblem]:
    if before is None or version == before:
        return
    now, then = numbers_of(version), numbers_of(before)
    if not now or not then:
        return
    if now < then[: len(now)]:
        yield FieldProblem(path, _LOWERED(before=before, version=version))
    elif now[0] == then[0] and len(now) > 1 and now[1] > then[1] + 1:
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


def with_newest_versions(spec: Document, before: Document, offered: Document, now: datetime) -> Document:
    """The spec of a shoot with the version and the machine images that it leaves open; `before` is {} for a new one.

    A version of two numbers is the newest patch of that minor; once it is set, it stays until the minor changes.
    Source: Gardener's plugin ShootMutator. A profile that lists none leaves them open.
    """
    return _with_images(_with_version(spec, before, offered, now), before, offered, now)


def _with_version(spec: Document, before: Document, offered: Document, now: datetime) -> Document:
    kubernetes = spec.get("kubernetes")
    if kubernetes is not None and not isinstance(kubernetes, dict):
        return spec
    given = section(spec, "kubernetes").get("version")
    if given in (None, ""):
        given = ""
    elif not isinstance(given, str) or len(numbers_of(given)) != 2:  # noqa: PLR2004  major and minor alone
        return spec
    had = section(before, "kubernetes").get("version")
    if given and numbers_of(had)[:2] == numbers_of(given):
        version = had
    else:
        version = newest_version(section(offered, "kubernetes").get("versions"), given, now)
    return spec if version is None else {**spec, "kubernetes": {**section(spec, "kubernetes"), "version": version}}


def _with_images(spec: Document, before: Document, offered: Document, now: datetime) -> Document:
    listed: Any = section(spec, "provider").get("workers")
    images = mappings(offered.get("machineImages"))
    if not isinstance(listed, list) or not images:
        return spec
    workers = cast("list[Any]", listed)
    had = {pool.get("name"): pool for pool in mappings(section(before, "provider").get("workers"))}
    completed = [_with_image(worker, had, images, spec, now=now) for worker in workers]
    if all(new is old for new, old in zip(completed, workers, strict=True)):
        return spec
    return {**spec, "provider": {**section(spec, "provider"), "workers": completed}}


def _with_image(
    worker: Any, had: Mapping[Any, Document], images: Sequence[Document], spec: Document, *, now: datetime
) -> Any:
    """The worker pool with its image: of the one that it had what it leaves open, else the newest that runs on it."""
    if not isinstance(worker, dict) or not isinstance(cast("Document", worker).get("machine"), dict):
        return cast("Any", worker)
    pool = cast("Document", worker)
    machine = section(pool, "machine")
    image = section(machine, "image")
    if image.get("version") or not isinstance(image.get("name") or "", str):
        return pool
    kept = section(had.get(only_text(pool.get("name")), {}), "machine", "image")
    if kept.get("version") and image.get("name") in (None, "", kept.get("name")):
        return {**pool, "machine": {**machine, "image": kept}}
    runnable = runnable_images(images, pool, architecture_of(machine), kubelet_of(pool, spec))
    name = only_text(image.get("name")) or next(iter(runnable), None)
    newest = newest_version(runnable.get(name), "", now)
    if newest is None:
        return pool
    return {**pool, "machine": {**machine, "image": {**image, "name": name, "version": newest}}}
