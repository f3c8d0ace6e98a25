"""Applies the manifests of one Work, wave by wave.

The inventory lists an object before it is made, and until it is gone. What concerns one object is its result; what
concerns the cluster as a whole (`WHOLE_CLUSTER`) ends the round, which is begun again later.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import structlog

from gardenbus.agent.kubernetes.connection import ClusterConnection
from gardenbus.agent.kubernetes.discovery import Resource
from gardenbus.agent.kubernetes.errors import FieldConflict
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_order import wave_of
from gardenbus.common.api.fleet.apply_strategies import ApplyStrategy
from gardenbus.common.errors import GardenbusError, InvalidResource
from gardenbus.memberagent.backend.kubernetes.inventory import FIELD_MANAGER, AppliedResource, AppliedWork, Inventory
from gardenbus.memberagent.backend.kubernetes.ownership import (
    APPLIED_BY,
    APPLIED_LABEL,
    belongs_to,
    deletion_problem,
    takeover_problem,
)
from gardenbus.memberagent.backend.kubernetes.removal import AT_ONCE, WHOLE_CLUSTER, remove_resources, together
from gardenbus.memberagent.backend.port import ApplyResult, WorkManifest
from gardenbus.memberagent.domain.availability import availability_of
from gardenbus.memberagent.domain.differences import SPEC_HASH, Difference, differences, manifest_hash, summary
from gardenbus.memberagent.domain.work_status import ManifestKey, ManifestResult, key_of

_log = structlog.stdlib.get_logger()

_SOON_SECONDS = 2.0
_LATER_SECONDS = 5.0
_KEPT_METADATA = ("name", "labels", "annotations", "finalizers")


class _Wanted(NamedTuple):
    """One manifest of a Work, as the cluster serves its kind."""

    ordinal: int
    manifest: WorkManifest
    key: ManifestKey
    resource: Resource

    @property
    def path(self) -> str:
        return self.resource.path(self.key.namespace, self.key.name)

    @property
    def listed(self) -> AppliedResource:
        served = self.resource
        return AppliedResource(
            self.ordinal, served.version, served.kind, served.plural, self.key.name, served.group, self.key.namespace
        )


class WorkApplication:
    """One Work, one round."""

    def __init__(self, connection: ClusterConnection, inventory: Inventory, work: str, strategy: ApplyStrategy) -> None:
        self._connection = connection
        self._inventory = inventory
        self._work = work
        self._strategy = strategy
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._results: dict[int, ManifestResult] = {}
        self._requeue_after: float | None = None
        self.versions: dict[str, str] = {}
        """resourceVersion by uid of what was applied: events of these bring nothing new."""

    # ------------------------------------------------------------------------------------------ apply

    async def apply(self, manifests: Sequence[WorkManifest]) -> ApplyResult:
        """Apply manifests, and prune what the Work had besides. Raises what concerns the whole cluster."""
        await self._inventory.ensure(self._connection, self._work)
        waves: dict[int, list[tuple[int, WorkManifest, ManifestKey]]] = {}
        keys: set[ManifestKey] = set()
        for ordinal, manifest in enumerate(manifests):
            key = self._key(ordinal, manifest)
            if key is None:
                continue
            if key in keys:
                self._fail(ordinal, manifest, "FailedToApply", "it is in the Work twice")
                continue
            keys.add(key)
            waves.setdefault(wave_of(key.group, key.kind), []).append((ordinal, manifest, key))
        wanted: set[ManifestKey] = set()
        for _, entries in sorted(waves.items()):
            found = [each for entry in entries if (each := await self._resolve(*entry)) is not None]
            applied = await self._list(found)
            wanted |= {each.key for each in found}
            await together([self._apply_one(each, applied) for each in found])
        if all(each.reason != "ManifestDecodeFailed" for each in self._results.values()):
            await self._prune(keys | wanted)
        return ApplyResult([self._results[ordinal] for ordinal in sorted(self._results)], self._requeue_after)

    def _key(self, ordinal: int, manifest: WorkManifest) -> ManifestKey | None:
        try:
            return key_of(manifest)
        except ValueError as error:
            self._fail(ordinal, manifest, "ManifestDecodeFailed", str(error))
            return None

    async def _resolve(self, ordinal: int, manifest: WorkManifest, key: ManifestKey) -> _Wanted | None:
        """Find the kind of a manifest. A kind that is missing is looked for again soon."""
        version = str(manifest["apiVersion"]).rpartition("/")[2]
        resource = await self._connection.discovery.find(key.group, version, key.kind)
        if resource is None:
            message = f"the cluster has no kind {key.kind} in {manifest['apiVersion']}: its definition is missing"
            self._fail(ordinal, manifest, "NoSuchKind", message)
            self._again_in(_LATER_SECONDS)
            return None
        namespace = (key.namespace or "default") if resource.namespaced else ""
        return _Wanted(ordinal, manifest, key._replace(namespace=namespace), resource)

    async def _list(self, found: Sequence[_Wanted]) -> AppliedWork:
        before = {each.key: each for each in self._inventory.works[self._work].resources}
        resources = before | {each.key: each.listed for each in found}
        return await self._inventory.record(self._connection, self._work, tuple(resources.values()))

    async def _apply_one(self, wanted: _Wanted, applied: AppliedWork) -> None:
        async with self._slots:
            try:
                await self._try_one(wanted, applied)
            except WHOLE_CLUSTER:
                raise
            except FieldConflict as error:
                message = f"fields belong to others: {error.message.partition(': ')[2]}"
                self._fail(wanted.ordinal, wanted.manifest, "FailedToApply", message)
            except GardenbusError as error:
                self._fail(wanted.ordinal, wanted.manifest, "FailedToApply", f"{error.reason}: {error.message}")

    async def _try_one(self, wanted: _Wanted, applied: AppliedWork) -> None:
        ordinal, manifest = wanted.ordinal, wanted.manifest
        live = await self._connection.client.get(wanted.path)
        if live is not None:
            live = {"apiVersion": wanted.resource.api_version, "kind": wanted.resource.kind, **live}
            if problem := deletion_problem(live):
                self._again_in(_SOON_SECONDS)
                self._fail(ordinal, manifest, "FailedToApply", problem)
                return
            is_own = belongs_to(live, self._work)
            if not is_own and not await self._may_take_over(wanted, live, applied):
                return
            if is_own and await self._has_drifted(wanted, live):
                return
        after = await self._send(wanted, live, applied)
        if live is not None and belongs_to(live, self._work) and _hash_of(live) == manifest_hash(manifest):
            self._note_correction(wanted, live, after)
        if self._strategy.comparison == "FullComparison" and (found := differences(manifest, after)):
            self._fail(ordinal, manifest, "FoundDrifts", f"the cluster has other fields: {summary(found)}", found)
            return
        available = availability_of(wanted.resource.group, after)
        self._results[ordinal] = ManifestResult(
            ordinal, manifest, applied=True, available=available.is_available, message=available.message
        )
        if available.is_available is False:
            self._again_in(_LATER_SECONDS)

    async def _may_take_over(self, wanted: _Wanted, live: Document, applied: AppliedWork) -> bool:
        problem = takeover_problem(live, applied, self._strategy, self._inventory.works)
        if problem is not None:
            self._fail(wanted.ordinal, wanted.manifest, *problem)
            return False
        if self._strategy.when_to_take_over == "IfNoDiff" and (found := await self._differences(wanted, live)):
            message = f"it was there before, and differs: {summary(found)}"
            self._fail(wanted.ordinal, wanted.manifest, "FailedToTakeOver", message, diffs=found)
            return False
        _log.info("manifest.taken_over", work=self._work, object=str(wanted.key))
        return True

    async def _has_drifted(self, wanted: _Wanted, live: Document) -> bool:
        """Report drifts of an object whose manifest is as it was applied last, if that keeps it from being applied."""
        if self._strategy.when_to_apply != "IfNotDrifted" or _hash_of(live) != manifest_hash(wanted.manifest):
            return False
        found = await self._differences(wanted, live)
        if found:
            message = f"it was changed in the cluster, and is left so (whenToApply is IfNotDrifted): {summary(found)}"
            self._fail(wanted.ordinal, wanted.manifest, "FoundDrifts", message, found)
        return bool(found)

    async def _send(self, wanted: _Wanted, live: Document | None, applied: AppliedWork) -> Document:
        body = _body(wanted, applied)
        if live is not None and self._strategy.when_to_apply == "IfNotDrifted":
            body["metadata"]["resourceVersion"] = section(live, "metadata").get("resourceVersion")
        after = await self._connection.client.apply(
            wanted.path, body, manager=FIELD_MANAGER, force=self._strategy.takes_fields
        )
        metadata = section(after, "metadata")
        self.versions[str(metadata.get("uid"))] = str(metadata.get("resourceVersion"))
        if wanted.resource.kind == "CustomResourceDefinition":
            self._connection.discovery.forget(str(section(after, "spec").get("group") or ""))
        return after

    def _note_correction(self, wanted: _Wanted, before: Document, after: Document) -> None:
        if section(before, "metadata").get("resourceVersion") == section(after, "metadata").get("resourceVersion"):
            return
        found = differences(after, before)
        if found:
            _log.info("drift.corrected", work=self._work, object=str(wanted.key), fields=summary(found))

    # ------------------------------------------------------------------------------------------ compare

    async def compare(self, manifests: Sequence[WorkManifest]) -> ApplyResult:
        """Compare manifests with the cluster, which stays as it is."""
        found: list[_Wanted] = []
        for ordinal, manifest in enumerate(manifests):
            key = self._key(ordinal, manifest)
            each = await self._resolve(ordinal, manifest, key) if key is not None else None
            found += [each] if each is not None else []
        await together([self._compare_one(each) for each in found])
        outcomes = [self._results[ordinal] for ordinal in sorted(self._results)]
        return ApplyResult([each if each.applied else each._replace(differs=True) for each in outcomes], None)

    async def _compare_one(self, wanted: _Wanted) -> None:
        async with self._slots:
            try:
                live = await self._connection.client.get(wanted.path)
                found = await self._differences(wanted, live) if live is not None else []
            except WHOLE_CLUSTER:
                raise
            except GardenbusError as error:
                self._fail(wanted.ordinal, wanted.manifest, "FailedToReportDiff", f"{error.reason}: {error.message}")
                return
        if live is None or found:
            message = "Not found." if live is None else f"It differs: {summary(found)}."
            self._fail(wanted.ordinal, wanted.manifest, "FoundDiff", message, diffs=found)
        else:
            self._results[wanted.ordinal] = ManifestResult(
                wanted.ordinal, wanted.manifest, applied=True, message="It is the same."
            )

    async def _differences(self, wanted: _Wanted, live: Document) -> list[Difference]:
        """By a dry run, which leaves fields alone that the manifest does not have; or of everything."""
        live = {"apiVersion": wanted.resource.api_version, "kind": wanted.resource.kind, **live}
        if self._strategy.comparison == "FullComparison":
            return differences(wanted.manifest, live)
        body = _bare(wanted)
        try:
            after = await self._connection.client.apply(
                wanted.path, body, manager=FIELD_MANAGER, force=True, dry_run=True
            )
        except InvalidResource:
            return differences(wanted.manifest, live)
        return differences(after, live)

    # ------------------------------------------------------------------------------------------ results

    async def _prune(self, wanted: set[ManifestKey]) -> None:
        surplus = [each for each in self._inventory.works[self._work].resources if each.key not in wanted]
        problem = await remove_resources(self._connection, self._inventory, self._work, surplus)
        if problem is not None:
            _log.warning("manifest.kept", work=self._work, reason=problem)
            self._again_in(_LATER_SECONDS)

    def _fail(
        self,
        ordinal: int,
        manifest: WorkManifest,
        reason: str,
        message: str,
        drifts: Sequence[Difference] = (),
        *,
        diffs: Sequence[Difference] = (),
    ) -> None:
        self._results[ordinal] = ManifestResult(
            ordinal, manifest, applied=False, message=message, reason=reason, drifts=tuple(drifts), diffs=tuple(diffs)
        )

    def _again_in(self, seconds: float) -> None:
        self._requeue_after = min(seconds, self._requeue_after if self._requeue_after is not None else seconds)


def _bare(wanted: _Wanted) -> Document:
    """The manifest without what belongs to the cluster that it came from."""
    metadata = section(wanted.manifest, "metadata")
    kept = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    if wanted.key.namespace:
        kept["namespace"] = wanted.key.namespace
    content = {name: value for name, value in wanted.manifest.items() if name not in ("metadata", "status")}
    return {**content, "metadata": kept}


def _body(wanted: _Wanted, applied: AppliedWork) -> Document:
    """The manifest with the marks of its Work."""
    body = _bare(wanted)
    metadata: Document = body["metadata"]
    metadata["labels"] = {**section(metadata, "labels"), APPLIED_LABEL: APPLIED_BY}
    metadata["annotations"] = {**section(metadata, "annotations"), SPEC_HASH: manifest_hash(wanted.manifest)}
    metadata["ownerReferences"] = [applied.owner_reference]
    return body


def _hash_of(live: Mapping[str, Any]) -> str:
    return str(section(live, "metadata", "annotations").get(SPEC_HASH) or "")
