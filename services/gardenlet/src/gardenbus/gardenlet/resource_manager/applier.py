"""Applies the objects of one ManagedResource to a cluster, one after the other: the first failure ends the pass."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from gardenbus.agent.kubernetes.client import Propagation
from gardenbus.agent.kubernetes.errors import api_message
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import AlreadyExists, Conflict, GardenbusError, InvalidResource, NotFound, Transient
from gardenbus.gardenlet.domain.managed_resources.merging import (
    MergeOptions,
    merged,
    released,
    without_description,
)
from gardenbus.gardenlet.domain.managed_resources.names import (
    DELETE_ON_INVALID_UPDATE,
    DELETION_PROPAGATION,
    annotations_of,
    is_ignored,
    is_true,
)
from gardenbus.gardenlet.domain.managed_resources.references import (
    Equivalences,
    ObjectIdentity,
    ResourceReference,
    reference_of,
)
from gardenbus.gardenlet.resource_manager.target import ResourceCluster, ServedObject

_log = structlog.stdlib.get_logger()

_AUTOSCALERS = "/apis/autoscaling/v1/horizontalpodautoscalers"
_MOST_CONFLICTS = 5
_IMMUTABLE = "field is immutable when `immutable` is set"
_SCALED = frozenset({"Deployment", "StatefulSet"})
_PROPAGATIONS: Mapping[str, Propagation] = {"Foreground": "Foreground", "Orphan": "Orphan"}


class ApplyFailed(Transient):
    """An object could not be applied."""

    reason = "ApplyFailed"


class DesiredObject(NamedTuple):
    """An object of a ManagedResource: its manifest with labels, and what the last pass applied of it."""

    manifest: Document
    before: ResourceReference | None


class PassOptions(NamedTuple):
    """Options of a ManagedResource for all of its objects."""

    origin: str
    force_labels: bool
    force_annotations: bool
    equivalences: Equivalences


class ObjectApplier:
    """One pass. `applied` has the resourceVersion of each object as the last pass of the same manifests left it."""

    def __init__(self, target: ResourceCluster, options: PassOptions, applied: dict[ObjectIdentity, str]) -> None:
        self._target = target
        self._options = options
        self._applied = applied
        self._scaled: set[ObjectIdentity] | None = None
        self.created = 0
        self.updated = 0

    async def apply(self, objects: Sequence[DesiredObject]) -> None:
        """Apply objects in this order. Raises ApplyFailed."""
        for each in objects:
            reference = reference_of(each.manifest)
            try:
                await self._apply_one(each, reference)
            except ApplyFailed:
                raise
            except GardenbusError as error:
                raise ApplyFailed(f'error during apply of object "{reference.text}": {api_message(error)}') from error

    async def _apply_one(self, desired: DesiredObject, reference: ResourceReference) -> None:
        served = await self._target.served(reference)
        if served is None:
            kind = f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
            raise ApplyFailed(f'error during apply of object "{reference.text}": {kind}')
        live = await self._target.live(served)
        if live is not None and self._applied.get(reference.identity) == _version(live):
            return
        for _ in range(_MOST_CONFLICTS):
            try:
                after = await self._write(desired, served, live)
            except (AlreadyExists, Conflict, NotFound):
                live = await self._target.read(served)
            else:
                await self._note(reference, live, after)
                return
        raise ApplyFailed(f'error during apply of object "{reference.text}": it was changed again and again meanwhile')

    async def _write(self, desired: DesiredObject, served: ServedObject, live: Document | None) -> Document:
        """Create or update an object; returns it as it is then. Raises Conflict, NotFound, AlreadyExists."""
        if is_ignored(desired.manifest):
            if live is not None:
                return live
            return await self._target.create(served, without_description(desired.manifest))
        options = self._options
        manifest = desired.manifest
        new = merged(
            live,
            manifest,
            MergeOptions(
                options.origin,
                desired.before,
                force_labels=options.force_labels,
                force_annotations=options.force_annotations,
                keeps_replicas=live is not None and await self._is_scaled(reference_of(manifest)),
            ),
        )
        if live is None:
            return await self._target.create(served, new)
        if new == live:
            return live
        try:
            return await self._target.replace(served, new)
        except InvalidResource as error:
            await self._delete_invalid(served, new, error)
            raise

    async def _delete_invalid(self, served: ServedObject, new: Document, error: InvalidResource) -> None:
        """Delete an object that cannot be updated, where that is wanted. Raises ApplyFailed then."""
        reference = reference_of(new)
        is_immutable = (
            reference.api_version == "v1" and reference.kind in ("ConfigMap", "Secret") and _IMMUTABLE in error.message
        )
        if not is_immutable and not is_true(annotations_of(new), DELETE_ON_INVALID_UPDATE):
            return
        propagation = _PROPAGATIONS.get(str(annotations_of(new).get(DELETION_PROPAGATION)), "Background")
        await (await self._target.client()).delete(served.path, propagation=propagation)
        raise ApplyFailed(
            f"deleted object \"{reference.text}\" because of 'invalid' update error, and 'delete-on-invalid-update' "
            f"annotation on object or the resource is an immutable ConfigMap/Secret: {api_message(error)}"
        )

    async def _is_scaled(self, reference: ResourceReference) -> bool:
        """True if a HorizontalPodAutoscaler decides on the replicas of an object, or of one that means the same."""
        if reference.kind not in _SCALED:
            return False
        if self._scaled is None:
            self._scaled = {_target_of(each) for each in await (await self._target.client()).items(_AUTOSCALERS)}
        group, kind, namespace, name = reference.identity
        same = {(group, kind), *self._options.equivalences.of(group, kind)}
        return any((*each, namespace, name) in self._scaled for each in same)

    async def _note(self, reference: ResourceReference, before: Document | None, after: Document) -> None:
        if reference.kind == "CustomResourceDefinition":
            (await self._target.connection()).discovery.forget(str(section(after, "spec").get("group") or ""))
        self._applied[reference.identity] = _version(after)
        if before is None or _version(before) != _version(after):
            self.created += before is None
            self.updated += before is not None
            action = "object.created" if before is None else "object.updated"
            _log.debug(action, cluster=self._target.name, object=reference.text, origin=self._options.origin)


async def release(target: ResourceCluster, references: Sequence[ResourceReference], origin: str) -> list[str]:
    """End the management of objects that are still of this origin; returns what could not be done."""
    problems: list[str] = []
    for reference in references:
        try:
            served = await target.served(reference)
            live = await target.read(served) if served is not None else None
            if served is None or live is None or (patch := released(live, origin)) is None:
                continue
            await target.patch(served, patch)
        except NotFound:
            continue
        except GardenbusError as error:
            problems.append(f'error patching object "{reference.text}": {api_message(error)}')
    return problems


def _target_of(autoscaler: Document) -> ObjectIdentity:
    target = section(autoscaler, "spec", "scaleTargetRef")
    return ResourceReference(
        str(target.get("apiVersion") or ""),
        str(target.get("kind") or ""),
        str(section(autoscaler, "metadata").get("namespace") or ""),
        str(target.get("name") or ""),
    ).identity


def _version(live: Document) -> str:
    return str(section(live, "metadata").get("resourceVersion") or "")
