"""Local cluster backend: a directory of manifests, with failure injection.

    <directory>/manifests/<object>.json       one manifest, with the Work that it belongs to
    <directory>/failed.json                   number of occurrences of each injected failure

    annotation on a manifest                    effect
    local.backend.gardenbus.io/fail             injected failures; targets are clusters
    local.backend.gardenbus.io/available-after  seconds until it is available, instead of the configuration's

    file in the directory                     effect
    unhealthy                                 the cluster is not healthy
    silent                                    the cluster cannot be reached
    apply-fails                               no manifest can be applied

Files are replaced by renaming: after a crash either the old or the new content is there. A file that a loss of power
has left unreadable is removed; its Work applies it again.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import structlog

from gardenbus.agent.domain.cluster_facts import ClusterFacts
from gardenbus.agent.files import make_directory, replace_file
from gardenbus.common.api.configuration.failure_injection import (
    FailureRequest,
    ManifestStep,
    first_match,
    parse_manifest_failures,
)
from gardenbus.common.api.configuration.member_agent import MemberBackendSettings
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import DEFAULT_STRATEGY, ApplyStrategy
from gardenbus.common.ports.clock import Clock
from gardenbus.memberagent.backend.port import ApplyResult, BackendContext, WorkManifest
from gardenbus.memberagent.domain.work_status import ManifestKey, ManifestResult, key_of, tracking_of

_log = structlog.stdlib.get_logger()

FAIL_ANNOTATION = "local.backend.gardenbus.io/fail"
AVAILABLE_AFTER_ANNOTATION = "local.backend.gardenbus.io/available-after"


class StoredManifest(msgspec.Struct, frozen=True):
    """One manifest in the cluster."""

    work: str
    """Work that it belongs to; `NO_WORK` for one that was abandoned."""

    since: float
    """Time of its last change, in seconds since the epoch."""

    manifest: Document
    """The object."""


NO_WORK = ""

SIMULATED = "Simulated by the local backend."
"""Message of what it reports as healthy or available: there is nothing to check."""


def local_backend(context: BackendContext) -> "LocalClusterBackend":
    """The backend `local`."""
    configured = context.configured
    return LocalClusterBackend(
        context.directory,
        context.settings,
        context.clock,
        cluster=context.cluster,
        failures=configured.failure_requests if configured is not None else (),
        namespaces=configured.namespaces if configured is not None else (),
    )


class LocalClusterBackend:
    """See the module. Implements `backend.port.ClusterBackend`."""

    def __init__(
        self,
        directory: Path,
        settings: MemberBackendSettings,
        clock: Clock,
        *,
        cluster: str,
        failures: Sequence[FailureRequest] = (),
        namespaces: Sequence[str] = (),
    ) -> None:
        self._directory = directory
        self._manifests = directory / "manifests"
        self._settings = settings
        self._clock = clock
        self._cluster = cluster
        self._failures = tuple(failures)
        self._namespaces = tuple(namespaces)
        self._held: dict[ManifestKey, StoredManifest] = {}
        self._failed: dict[str, int] = {}

    async def start(self) -> None:
        """Load the directory."""
        make_directory(self._manifests)
        self._read()

    async def run(self) -> None:
        """Nobody else changes the directory: there is nothing to observe."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Nothing is open."""

    def facts(self) -> ClusterFacts:
        """Configured namespaces and those among the manifests, and the switches `unhealthy` and `silent`."""
        made = {key.name: held.work for key, held in self._held.items() if (key.group, key.kind) == ("", "Namespace")}
        return ClusterFacts(
            namespaces=dict.fromkeys(self._namespaces, "") | made,
            problem="Unhealthy, as requested." if (self._directory / "unhealthy").exists() else None,
            healthy_message=SIMULATED,
            is_silent=(self._directory / "silent").exists(),
        )

    def works(self) -> set[str]:
        """Works of the stored manifests."""
        return {held.work for held in self._held.values()} - {NO_WORK}

    async def apply(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Take the Work's time, then write new manifests and remove old ones. Nobody else has anything here."""
        del strategy
        if self._settings.apply_seconds:
            await self._clock.sleep(self._settings.apply_seconds)
        outcomes: list[ManifestResult] = []
        wanted: set[ManifestKey] = set()
        waits: list[float] = []
        for ordinal, manifest in enumerate(manifests):
            problem = self._apply_one(work, manifest, wanted)
            if problem is not None:
                outcomes.append(ManifestResult(ordinal, manifest, applied=False, message=problem))
                continue
            outcome, wait = self._availability(ordinal, manifest)
            outcomes.append(outcome)
            waits += [wait] if wait > 0 else []
        for key in [key for key, held in self._held.items() if held.work == work and key not in wanted]:
            if self._failure("delete", self._held[key].manifest) is None:
                self._drop(key)
        return ApplyResult(outcomes, min(waits, default=None))

    async def compare(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Compare with the stored manifests."""
        del work, strategy
        outcomes: list[ManifestResult] = []
        for ordinal, manifest in enumerate(manifests):
            try:
                held = self._held.get(key_of(manifest))
            except ValueError as error:
                outcomes.append(ManifestResult(ordinal, manifest, applied=False, message=str(error), differs=True))
                continue
            differs = held is None or held.manifest != manifest
            message = "Not found." if held is None else "It is another." if differs else "It is the same."
            outcomes.append(ManifestResult(ordinal, manifest, applied=not differs, message=message, differs=differs))
        return ApplyResult(outcomes)

    async def remove(self, work: str) -> str | None:
        """Remove the Work's files."""
        problem: str | None = None
        for key in [key for key, held in self._held.items() if held.work == work]:
            failure = self._failure("delete", self._held[key].manifest)
            if failure is None:
                self._drop(key)
            else:
                problem = f"{key}: {failure}"
        return problem

    async def abandon(self, work: str) -> str | None:
        """Keep the Work's files, as objects of no Work."""
        for key, held in [(key, held) for key, held in self._held.items() if held.work == work]:
            self._write(key, msgspec.structs.replace(held, work=NO_WORK))
        return None

    # ------------------------------------------------------------------------------------------ one manifest

    def _apply_one(self, work: str, manifest: WorkManifest, wanted: set[ManifestKey]) -> str | None:
        """Write one manifest; returns why that failed. Adds the keys to keep to `wanted`."""
        try:
            key = key_of(manifest)
        except ValueError as error:
            return str(error)
        held = self._held.get(key)
        if held is not None and held.work == work:
            wanted.add(key)
        if held is not None and held.work not in (work, NO_WORK):
            return f"it belongs to the Work {held.work} already"
        if (self._directory / "apply-fails").exists():
            return "Failed, as requested."
        if failure := self._failure("apply", manifest):
            return failure
        wanted.add(key)
        if held is None or held.manifest != manifest or held.work != work:
            try:
                self._write(key, StoredManifest(work, self._clock.now().timestamp(), dict(manifest)))
            except OSError as error:
                return f"it cannot be written to {self._manifests}: {error.strerror}"
        return None

    def _availability(self, ordinal: int, manifest: WorkManifest) -> tuple[ManifestResult, float]:
        """Availability of an applied manifest, and the seconds until it is available."""
        match tracking_of(str(manifest["kind"])):
            case "unknown":
                return ManifestResult(ordinal, manifest, applied=True, available=None), 0.0
            case "data":
                return ManifestResult(ordinal, manifest, applied=True, available=True, message=SIMULATED), 0.0
            case "started":
                pass
        if failure := self._failure("available", manifest):
            return ManifestResult(ordinal, manifest, applied=True, available=False, message=failure), 0.0
        left = self._held[key_of(manifest)].since + self._start_seconds(manifest) - self._clock.now().timestamp()
        message = f"It starts. {SIMULATED}" if left > 0 else SIMULATED
        return ManifestResult(ordinal, manifest, applied=True, available=left <= 0, message=message), max(left, 0.0)

    def _start_seconds(self, manifest: WorkManifest) -> float:
        try:
            return float(_annotation(manifest, AVAILABLE_AFTER_ANNOTATION) or self._settings.available_seconds)
        except ValueError:
            return self._settings.available_seconds

    def _failure(self, step: ManifestStep, manifest: WorkManifest) -> str | None:
        """Injected failure of a step of a manifest, from its annotation or the configuration."""
        try:
            own = parse_manifest_failures(_annotation(manifest, FAIL_ANNOTATION))
        except ValueError as error:
            return f"{FAIL_ANNOTATION}: {error}"
        key = key_of(manifest)
        found = first_match(own, step, self._cluster) or first_match(self._failures, step, f"{key.kind}/{key.name}")
        if found is None:
            return None
        if found.times is not None:
            counted = f"{_file_name(key)} {found.text}"
            if self._failed.get(counted, 0) >= found.times:
                return None
            self._failed[counted] = self._failed.get(counted, 0) + 1
            replace_file(self._directory / "failed.json", msgspec.json.encode(self._failed))
        return "Failed, as requested."

    # ------------------------------------------------------------------------------------------ files

    def _read(self) -> None:
        self._held = {}
        for file in self._manifests.glob("*.json"):
            if file.name.startswith("."):
                continue
            try:
                held = decode_json(file.read_bytes(), StoredManifest)
                self._held[key_of(held.manifest)] = held
            except (msgspec.MsgspecError, ValueError) as error:
                _log.warning("manifest.unreadable", cluster=self._cluster, file=file.name, reason=str(error))
                file.unlink()
        try:
            self._failed = decode_json((self._directory / "failed.json").read_bytes(), dict[str, int])
        except (FileNotFoundError, msgspec.MsgspecError):
            self._failed = {}

    def _write(self, key: ManifestKey, held: StoredManifest) -> None:
        replace_file(self._manifests / _file_name(key), msgspec.json.encode(held))
        self._held[key] = held

    def _drop(self, key: ManifestKey) -> None:
        (self._manifests / _file_name(key)).unlink(missing_ok=True)
        del self._held[key]


def _annotation(manifest: WorkManifest, name: str) -> str:
    value: Any = section(manifest, "metadata", "annotations").get(name)
    return str(value or "")


def _file_name(key: ManifestKey) -> str:
    return ",".join(quote(part, safe="") for part in (key.kind, key.group, key.namespace, key.name)) + ".json"
