"""Reconciler of ManagedResources: applies, checks and removes their objects, and reports it in their status.

Source: Gardener's `pkg/resourcemanager/controller/{managedresource,health}`.
"""

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

import structlog

from gardenbus.agent.kubernetes.errors import Unreachable, api_message
from gardenbus.common.api.conditions import FALSE, condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.gardenlet.domain.managed_resources import conditions as found
from gardenbus.gardenlet.domain.managed_resources.manifests import (
    Bundle,
    DecodedManifest,
    Decompress,
    SecretData,
    checksum_of,
    decode_secrets,
    decoding_message,
    in_apply_order,
    is_left_out,
    labels_to_inject,
    with_labels,
    with_namespace,
)
from gardenbus.gardenlet.domain.managed_resources.names import (
    OPERATION,
    RECONCILE,
    annotations_of,
    finalizer_of,
    finalizers_of,
    is_ignored,
    origin_of,
)
from gardenbus.gardenlet.domain.managed_resources.references import (
    Equivalences,
    ObjectIdentity,
    ResourceIndex,
    ResourceReference,
    in_status_order,
    listed_references,
    reference_of,
)
from gardenbus.gardenlet.domain.managed_resources.responsibility import (
    ApplyObjects,
    LeaveAlone,
    RemoveObjects,
    ReportIgnored,
    next_step,
)
from gardenbus.gardenlet.resource_manager.applier import (
    ApplyFailed,
    DesiredObject,
    ObjectApplier,
    PassOptions,
    release,
)
from gardenbus.gardenlet.resource_manager.checks import check_objects
from gardenbus.gardenlet.resource_manager.clusters import NoTarget, ResourceClusters
from gardenbus.gardenlet.resource_manager.removal import RemovalOptions, remove
from gardenbus.gardenlet.resource_manager.source import FullName, SourceCluster, name_of, secret_names, version_of
from gardenbus.gardenlet.resource_manager.target import ResourceCluster

_log = structlog.stdlib.get_logger()

SYNC_SECONDS = 60.0
"""Time after which the objects of a ManagedResource are applied, and checked, again."""

CONFLICT_SECONDS = 0.5
"""Time after which a ManagedResource that somebody else has changed is reconciled again."""

PENDING_SECONDS = 5.0
"""Time after which a removal that is pending is tried again."""

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=SYNC_SECONDS)


class _PassPlan(NamedTuple):
    """Objects of a pass, in the order of their application."""

    objects: Sequence[DesiredObject]
    references: Sequence[ResourceReference]
    surplus: Sequence[ResourceReference]
    orphaned: Sequence[ResourceReference]
    checksum: str


@dataclass
class _Progress:
    """The state of one ManagedResource in this process."""

    apply_at: float = 0.0
    failures: int = 0
    inputs: object = None
    bundle: Bundle = field(default_factory=lambda: Bundle((), ()))
    applied: dict[ObjectIdentity, str] = field(default_factory=dict[ObjectIdentity, str])


class ManagedResourceReconciler:
    """See the module. It serves the classes of `served`."""

    def __init__(
        self,
        source: SourceCluster,
        clusters: ResourceClusters,
        clock: Clock,
        *,
        served: Sequence[str],
        decompress: Decompress,
        sync_seconds: float = SYNC_SECONDS,
    ) -> None:
        self._source = source
        self._clusters = clusters
        self._clock = clock
        self._served = served
        self._decompress = decompress
        self._sync_seconds = sync_seconds
        self._progress: dict[FullName, _Progress] = {}

    def request_pass(self, name: FullName) -> None:
        """Have the objects of a ManagedResource applied at its next reconcile."""
        self._progress.setdefault(name, _Progress()).apply_at = 0.0

    async def reconcile(self, name: FullName) -> float | None:
        """Reconcile a ManagedResource; returns the seconds until the next time. Raises GardenbusError."""
        try:
            return await self._reconcile(name)
        except Conflict:
            return CONFLICT_SECONDS

    async def _reconcile(self, name: FullName) -> float | None:
        managed_resource = self._source.managed_resources.get(name)
        if managed_resource is None:
            self._progress.pop(name, None)
            return None
        step = next_step(managed_resource, self._served)
        match step:
            case ApplyObjects():
                return await self._apply_and_check(name, managed_resource, step.resource_class)
            case RemoveObjects():
                return await self._remove(name, managed_resource, step.resource_class)
            case ReportIgnored():
                await self._report(managed_resource, found.ignored())
                return None
            case LeaveAlone():
                return None
            case _:
                assert_never(step)

    # ------------------------------------------------------------------------------------------ apply

    async def _apply_and_check(self, name: FullName, managed_resource: Document, resource_class: str) -> float | None:
        progress = self._progress.setdefault(name, _Progress())
        try:
            target = await self._clusters.of(resource_class, name[0])
        except NoTarget as error:
            _log.debug("managed_resource.waits", managed_resource="/".join(name), reason=error.message)
            return self._sync_seconds
        except GardenbusError as error:
            await self._report(managed_resource, [found.apply_failed(f"the cluster is away: {api_message(error)}")])
            return self._next_attempt(progress)
        if progress.apply_at <= self._clock.monotonic():
            progress.apply_at, delay = math.inf, 0.0
            try:
                delay = await self._pass(managed_resource, resource_class, target, progress)
            finally:  # another pass may have been requested meanwhile
                progress.apply_at = min(progress.apply_at, self._clock.monotonic() + delay)
        current = self._source.managed_resources.get(name)
        if current is not None and found.are_checked(conditions_of(current)) and not is_ignored(current):
            was_unhealthy = condition_status(conditions_of(current), found.HEALTHY) == FALSE
            try:
                findings = await check_objects(target, listed_references(current))
            except GardenbusError as error:
                _log.info("managed_resource.not_checked", managed_resource="/".join(name), reason=error.message)
                return self._next_attempt(progress)
            await self._report(current, findings)
            if findings[0].status == FALSE and not was_unhealthy:
                progress.apply_at = 0.0
                return 0.0
        return max(0.0, progress.apply_at - self._clock.monotonic())

    async def _pass(
        self, managed_resource: Document, resource_class: str, target: ResourceCluster, progress: _Progress
    ) -> float:
        """Apply all objects once; returns the seconds until the next pass."""
        prepared = await self._prepare(managed_resource, resource_class)
        if prepared is None:
            return CONFLICT_SECONDS
        managed_resource = prepared
        name = name_of(managed_resource)
        secrets = await self._read_secrets(managed_resource, progress)
        if isinstance(secrets, str):
            await self._report(managed_resource, [found.secret_unreadable(secrets)])
            return self._next_attempt(progress)
        try:
            plan = await self._plan(managed_resource, target, progress.bundle)
        except GardenbusError as error:
            message = f"failed to discover the kinds of the objects: {api_message(error)}"
            await self._report(managed_resource, [found.apply_failed(message)])
            return self._next_attempt(progress)
        if self._has_changed(managed_resource, plan):
            managed_resource = await self._report(managed_resource, found.begun(managed_resource)) or managed_resource
        origin = origin_of(self._source.identity, *name)
        if (delay := await self._part_with(managed_resource, target, plan, origin, progress)) is not None:
            return delay
        spec = section(managed_resource, "spec")
        options = PassOptions(
            origin,
            force_labels=bool(spec.get("forceOverwriteLabels")),
            force_annotations=bool(spec.get("forceOverwriteAnnotations")),
            equivalences=Equivalences(managed_resource),
        )
        applier = ObjectApplier(target, options, progress.applied)
        try:
            await applier.apply(plan.objects)
        except ApplyFailed as error:
            is_away = isinstance(error.__cause__, Unreachable)
            if is_away and await self._clusters.is_lost(resource_class, name[0]):
                return self._sync_seconds
            if await self._report(managed_resource, [found.apply_failed(error.message)]) is not managed_resource:
                _log.warning("managed_resource.failed", managed_resource="/".join(name), reason=error.message)
            return self._next_attempt(progress)
        await self._complete(managed_resource, plan, progress.bundle.problems)
        await self._watch(target, plan.references)
        progress.failures = 0
        _note(name, target, applier, plan)
        return self._sync_seconds

    async def _part_with(
        self, managed_resource: Document, target: ResourceCluster, plan: _PassPlan, origin: str, progress: _Progress
    ) -> float | None:
        """Remove and release what is not managed any more; returns when to try again if something of it is left."""
        if problems := await remove(target, plan.surplus, self._removal(managed_resource)):
            await self._report(managed_resource, [found.removal_pending(problems)])
            return PENDING_SECONDS
        if problems := await release(target, plan.orphaned, origin):
            await self._report(managed_resource, [found.release_failed(found.release_message(problems))])
            return self._next_attempt(progress)
        return None

    async def _prepare(self, managed_resource: Document, resource_class: str) -> Document | None:
        """Take a request off that has come by an annotation, and put the finalizer on; None when it has gone."""
        metadata: Document = {}
        finalizers = finalizers_of(managed_resource)
        if finalizer_of(resource_class) not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer_of(resource_class)]
            metadata["resourceVersion"] = version_of(managed_resource)
        if annotations_of(managed_resource).get(OPERATION) == RECONCILE:
            metadata["annotations"] = {OPERATION: None}
        if not metadata:
            return managed_resource
        return await self._source.patch(managed_resource, {"metadata": metadata})

    async def _read_secrets(self, managed_resource: Document, progress: _Progress) -> str | None:
        """Read and decode the Secrets if they, or the ManagedResource, have changed; returns why they cannot be."""
        namespace = name_of(managed_resource)[0]
        names = secret_names(managed_resource)
        cached = [self._source.secrets.get((namespace, each)) for each in names]
        versions = tuple(version_of(each) for each in cached if each is not None)
        inputs = (section(managed_resource, "metadata").get("generation"), versions)
        if progress.inputs == inputs and len(versions) == len(names):
            return None
        secrets: list[SecretData] = []
        for each in names:
            try:
                secret = await self._source.secret(namespace, each)
            except GardenbusError as error:
                return api_message(error)
            if secret is None:
                return f'Secret "{each}" not found'
            secrets.append(secret)
        # in a thread: the gardenlet's heartbeat must not wait for a large bundle
        progress.bundle = await asyncio.to_thread(decode_secrets, secrets, self._decompress)
        progress.inputs = inputs
        progress.applied.clear()
        return None

    async def _plan(self, managed_resource: Document, target: ResourceCluster, bundle: Bundle) -> _PassPlan:
        labels = labels_to_inject(managed_resource)
        index = ResourceIndex(listed_references(managed_resource), Equivalences(managed_resource))
        objects: list[DesiredObject] = []
        references: list[ResourceReference] = []
        orphaned: list[ResourceReference] = []
        counted: list[DecodedManifest] = []
        for each in bundle.manifests:
            document = with_namespace(each.document, namespaced=await _is_namespaced(target, each.document))
            reference = reference_of(document, labels)
            before = index.find(reference)
            if is_left_out(document):
                orphaned += [reference] if before is not None else []
                continue
            counted.append(each)
            references.append(reference)
            manifest = document if is_ignored(document) else with_labels(document, labels)
            objects.append(DesiredObject(manifest, before))
        order = in_apply_order([each.manifest for each in objects])
        return _PassPlan(
            [objects[position] for position in order],
            in_status_order(references),
            index.surplus(),
            orphaned,
            checksum_of(counted),
        )

    def _has_changed(self, managed_resource: Document, plan: _PassPlan) -> bool:
        status = section(managed_resource, "status")
        is_listed = listed_references(managed_resource) == list(plan.references)
        return not is_listed or status.get("secretsDataChecksum") != plan.checksum

    async def _complete(self, managed_resource: Document, plan: _PassPlan, problems: Sequence[str]) -> None:
        """Report that all is applied, or all but what could not be decoded."""
        finding = found.decoding_failed(decoding_message(problems)) if problems else found.applied()
        status: Document = {
            "resources": [each.document for each in plan.references] or None,
            "secretsDataChecksum": plan.checksum,
            "observedGeneration": section(managed_resource, "metadata").get("generation"),
        }
        await self._report(managed_resource, [finding], status)

    async def _watch(self, target: ResourceCluster, references: Sequence[ResourceReference]) -> None:
        kinds = {(each.api_version, each.kind): each for each in references}
        served = [await target.served(each) for each in kinds.values()]
        target.watch([each.resource for each in served if each is not None])

    # ------------------------------------------------------------------------------------------ removal

    async def _remove(self, name: FullName, managed_resource: Document, resource_class: str) -> float | None:
        """Remove all objects, then the finalizer of the class."""
        progress = self._progress.setdefault(name, _Progress())
        progress.inputs = None
        try:
            target = await self._clusters.of(resource_class, name[0])
        except NoTarget as error:
            _log.info("managed_resource.waits", managed_resource="/".join(name), reason=error.message)
            return self._sync_seconds
        if not section(managed_resource, "spec").get("keepObjects"):
            managed_resource = (
                await self._report(managed_resource, found.deletion_begun(managed_resource)) or managed_resource
            )
            references = listed_references(managed_resource)
            if problems := await remove(target, references, self._removal(managed_resource)):
                await self._report(managed_resource, [found.removal_pending(problems)])
                return PENDING_SECONDS
        else:
            await self._report(managed_resource, found.deletion_checks())
        current = self._source.managed_resources.get(name, managed_resource)
        left = [each for each in finalizers_of(current) if each != finalizer_of(resource_class)]
        patch = {"finalizers": left, "resourceVersion": version_of(current)}
        await self._source.patch(current, {"metadata": patch})
        _log.info("managed_resource.removed", managed_resource="/".join(name), resource_class=resource_class)
        return None

    def _removal(self, managed_resource: Document) -> RemovalOptions:
        deletes_claims = bool(section(managed_resource, "spec").get("deletePersistentVolumeClaims"))
        return RemovalOptions(deletes_claims, self._clock.now())

    # ------------------------------------------------------------------------------------------ reports

    async def _report(
        self, managed_resource: Document, findings: Sequence[found.Finding], status: Mapping[str, Any] = {}
    ) -> Document | None:
        """Write conditions, and more of the status, if they differ; returns the ManagedResource as it is then."""
        conditions = found.with_findings(managed_resource, findings, timestamp(self._clock.now()))
        before = section(managed_resource, "status")
        patch = {"conditions": conditions, **status}
        if all(before.get(name) == value for name, value in patch.items()):
            return managed_resource
        return await self._source.patch(managed_resource, {"status": patch}, is_status=True)

    def _next_attempt(self, progress: _Progress) -> float:
        progress.failures += 1
        return min(_BACKOFF.delay_seconds(progress.failures, random.random()), self._sync_seconds)


def _note(name: FullName, target: ResourceCluster, applier: ObjectApplier, plan: _PassPlan) -> None:
    """Log a pass that has changed something."""
    if applier.created or applier.updated or plan.surplus:
        _log.info(
            "managed_resource.applied",
            managed_resource="/".join(name),
            cluster=target.name,
            created=applier.created,
            updated=applier.updated,
            removed=len(plan.surplus),
        )


async def _is_namespaced(target: ResourceCluster, document: Document) -> bool | None:
    """True if objects of the kind have a namespace; None when the cluster does not serve it."""
    served = await target.served(reference_of(document))
    return None if served is None else served.resource.namespaced
