"""Versions, architectures and machine images that a shoot leaves open, or states in part, completed from its profile.

`1.34` is the newest patch of that minor, `1592` the newest version of that major; a version that the profile lists as
it is stated stays. Kubernetes gets supported versions alone, an image a deprecated one where there is no other. A
version that a shoot has already, and that begins with what is stated, is never lowered. What cannot be completed stays
as it is stated, and is rejected where the shoot is held against its profile. Source: Gardener's plugin ShootMutator.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings, only_text
from gardenbus.common.api.garden.architectures import DEFAULT_ARCHITECTURE, architecture_of_type
from gardenbus.common.api.garden.expirable_versions import newest_version, numbers_of, partial_numbers
from gardenbus.common.api.garden.pool_constraints import kubelet_of, runnable_images
from gardenbus.common.errors import FieldProblem

NOTHING_TO_FILL_IN = RejectionMessage("is not stated, and the cloud profile has {none}: state one")

_ALL_NUMBERS = 3


def with_complete_versions(spec: Document, before: Document, offered: Document, now: datetime) -> Document:
    """The spec of a shoot, completed; itself where nothing is open. `before` is {} for a new one.

    A profile that lists none leaves them open.
    """
    versions = section(offered, "kubernetes").get("versions")
    spec = _with_kubernetes(spec, before, versions, now, is_needed=True)
    listed: Any = section(spec, "provider").get("workers")
    if not isinstance(listed, list):
        return spec
    workers = cast("list[Any]", listed)
    had = {only_text(pool.get("name")): pool for pool in mappings(section(before, "provider").get("workers"))}
    completed = [_completed_pool(worker, had, spec, offered, now=now) for worker in workers]
    if all(new is old for new, old in zip(completed, workers, strict=True)):
        return spec
    return {**spec, "provider": {**section(spec, "provider"), "workers": completed}}


def open_problems(spec: Document, before: Document, offered: Document) -> Iterator[FieldProblem]:
    """Problems of what is new in a completed spec and still open, though the profile lists some."""
    had, has = (section(one, "kubernetes").get("version") for one in (before, spec))
    if not has and (had or not before) and mappings(section(offered, "kubernetes").get("versions")):
        yield FieldProblem("spec.kubernetes.version", NOTHING_TO_FILL_IN(none="no supported version"))
    images = {only_text(one.get("name")): one for one in mappings(offered.get("machineImages"))}
    old = {only_text(pool.get("name")): pool for pool in mappings(section(before, "provider").get("workers"))}
    for index, pool in enumerate(mappings(section(spec, "provider").get("workers"))):
        if pool == old.get(only_text(pool.get("name"))) or not isinstance(pool.get("machine"), dict):
            continue
        image = section(pool, "machine", "image")
        name, path = only_text(image.get("name")), f"spec.provider.workers[{index}].machine.image"
        if images and not image:
            yield FieldProblem(path, NOTHING_TO_FILL_IN(none="no image that runs on this pool"))
        elif not image.get("version") and mappings(images.get(name, {}).get("versions")):
            yield FieldProblem(
                f"{path}.version", NOTHING_TO_FILL_IN(none=f"no version of {name} that runs on this pool")
            )


def _completed_pool(
    worker: Any, had: Mapping[str, Document], spec: Document, offered: Document, *, now: datetime
) -> Any:
    if not isinstance(worker, dict):
        return worker
    pool = cast("Document", worker)
    old = had.get(only_text(pool.get("name")), {})
    pool = _with_kubernetes(pool, old, section(offered, "kubernetes").get("versions"), now, is_needed=False)
    if not isinstance(pool.get("machine"), dict):
        return pool
    return _with_image(_with_architecture(pool, old, offered), old, offered, spec, now=now)


def _with_kubernetes(holder: Document, before: Document, listed: Any, now: datetime, *, is_needed: bool) -> Document:
    """A spec, or a pool, with its version of Kubernetes; a pool need not have one of its own."""
    kubernetes = holder.get("kubernetes")
    if kubernetes is not None and not isinstance(kubernetes, dict):
        return holder
    given: Any = section(holder, "kubernetes").get("version") or ""
    if not isinstance(given, str) or given.startswith("v") or not (given or is_needed):
        return holder
    had = section(before, "kubernetes").get("version")
    version = _complete(given, had, mappings(listed), now)
    return (
        holder if version == given else {**holder, "kubernetes": {**section(holder, "kubernetes"), "version": version}}
    )


def _complete(
    given: str, had: object, listed: Sequence[Document], now: datetime, *, accepts_deprecated: bool = False
) -> str:
    """A version in full; as it is given where it is so already, or nothing is listed for it."""
    wanted = partial_numbers(given)
    if wanted is None or entry_named(listed, given, "version"):
        return given
    newest, own = newest_version(listed, wanted, now, accepts_deprecated=accepts_deprecated) or given, numbers_of(had)
    is_kept = len(own) == _ALL_NUMBERS and own[: len(wanted)] == wanted and own >= numbers_of(newest)
    return only_text(had) if is_kept else newest


def _with_architecture(pool: Document, old: Document, offered: Document) -> Document:
    """The pool with the architecture of its machine type, unless it states one or needs none."""
    machine, kept = section(pool, "machine"), section(old, "machine")
    if machine.get("architecture") not in (None, ""):
        return pool
    if kept.get("type") == machine.get("type"):
        architecture = kept.get("architecture") or DEFAULT_ARCHITECTURE
    else:
        architecture = architecture_of_type(entry_named(offered.get("machineTypes"), machine.get("type")), offered)
    if architecture == DEFAULT_ARCHITECTURE:
        return pool
    return {**pool, "machine": {**machine, "architecture": architecture}}


def _with_image(pool: Document, old: Document, offered: Document, spec: Document, *, now: datetime) -> Document:
    """The pool with its image in full: of the image that it had what it leaves open, else the newest that runs on it.

    A pool that says nothing of its image keeps it; `providerConfig` of one that is named is what is stated.
    """
    machine = section(pool, "machine")
    stated, kept = machine.get("image"), section(old, "machine", "image")
    image = section(machine, "image")
    name, given = image.get("name") or "", image.get("version") or ""
    if not (isinstance(name, str) and isinstance(given, str) and (stated is None or isinstance(stated, dict))):
        return pool
    is_same = bool(kept.get("version")) and name in ("", kept.get("name"))
    if is_same and not given:
        completed = {**image, "name": kept.get("name"), "version": kept.get("version")} if image else kept
    elif is_same and given == kept.get("version"):
        completed = {**image, "name": kept.get("name")}
    elif name and _is_listed(name, given, offered):
        return pool
    else:
        runnable = runnable_images(mappings(offered.get("machineImages")), pool, offered, kubelet_of(pool, spec))
        name = name or next(iter(runnable), "")
        had = kept.get("version") if name == kept.get("name") else None
        version = _of_image(given, had, name, runnable, offered, now=now)
        completed = {**image, "name": name, "version": version} if name and version else image
    return pool if completed == image else {**pool, "machine": {**machine, "image": completed}}


def _of_image(
    given: str, had: object, name: str, runnable: Mapping[str, Sequence[Document]], offered: Document, *, now: datetime
) -> str:
    if _is_listed(name, given, offered):
        return given
    return _complete(given, had, runnable.get(name, ()), now, accepts_deprecated=True)


def _is_listed(name: str, version: str, offered: Document) -> bool:
    """True for a version of an image that the profile lists as it is stated."""
    return bool(entry_named(entry_named(offered.get("machineImages"), name).get("versions"), version, "version"))
