"""Handles reports of gardenlets and member agents: statuses, registrations, Events.

Reports of one object are handled in order and merged into one write. A report that its sender may not make is put on
the dead letter. Stamps decide which of two reports is the newer (report_stamps.py), never the order of handling.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from gardenbus.apiserver import spans
from gardenbus.apiserver.access.report_authorization import (
    authorize_apply,
    authorize_delete,
    authorize_report,
    is_own_object,
    own_seed,
    with_gardenlet_finalizer,
)
from gardenbus.apiserver.domain import report_admission
from gardenbus.apiserver.domain.fields.unknown import check_unknown_status
from gardenbus.apiserver.domain.member_reports import CLUSTER_KIND, check_member, cluster_of
from gardenbus.apiserver.domain.report_messages import RejectedReport, Report, read_report
from gardenbus.apiserver.domain.report_stamps import is_set_by, merge_report
from gardenbus.apiserver.domain.request_subjects import parse_report_subject
from gardenbus.apiserver.domain.senders import UserOf, as_stated, check_sender
from gardenbus.apiserver.domain.unknown_objects import FORGETTABLE_KINDS, adoptable_manifest
from gardenbus.apiserver.domain.validation.manifest import validate_status
from gardenbus.apiserver.messages.inventories import take_inventory
from gardenbus.apiserver.messages.member_reports import (
    register,
    reporter_name,
    with_agent_finalizer,
    withdraw,
)
from gardenbus.apiserver.metrics import UNKNOWN_OBJECTS
from gardenbus.apiserver.registry.preconditions import version_in
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion, UnmetDependency, cause_of
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import with_finalizer
from gardenbus.common.api.garden.migration_feasibility import is_older_state
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.api.identity.principals import SEED_USER_PREFIX, Principal
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, NotFound, Terminal, Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, QueueMessage, WorkQueue
from gardenbus.common.ports.store import EventRecord, Store, UnknownObject
from gardenbus.common.side_thread import beside_loop

_log = structlog.stdlib.get_logger()

ATTEMPTS = 25
GARDENLET_USER = "gardener.cloud:system:seed:"


@dataclass(kw_only=True)
class ReportHandler:
    """Handles batches of reports."""

    bus: Bus
    store: Store
    subjects: Subjects
    queue: WorkQueue
    writer: Writer
    manifests: ManifestCache
    dead_letter: DeadLetter
    concurrency: int
    user_of: UserOf = as_stated

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)
        self._incarnation = StreamIncarnation(self.bus, self.store, self.subjects.stream("REPORTS"))
        self._unknown_lines = RepeatedLines("object.unknown", time.monotonic)

    async def refresh(self) -> None:
        """Read which incarnation of REPORTS this is: at the start and after every reconnect."""
        await self._incarnation.refresh()

    async def handle(self, queued_messages: Sequence[QueueMessage]) -> None:
        """Handle a batch and acknowledge it. Raises Unavailable; a second time has the same result."""
        reports, rejected = await self._read(queued_messages)
        reads = ReadCache(self.store, self.manifests)
        await reads.fetch(report.key for report in reports)
        by_key: dict[ObjectKey, list[Report]] = {}
        for report in reports:
            by_key.setdefault(report.key, []).append(report)
        results = await asyncio.gather(
            *(self._handle_in_order(of_one, reads) for of_one in by_key.values()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
            rejected += result
        for kept in await asyncio.gather(*(self._reject(each, reads) for each in rejected), return_exceptions=True):
            if kept is not None:
                raise kept
        await self.queue.ack_many(queued_messages)

    # ------------------------------------------------------------------------------------------ reading

    async def _read(self, queued_messages: Sequence[QueueMessage]) -> tuple[list[Report], list[RejectedReport]]:
        reports: list[Report] = []
        rejected: list[RejectedReport] = []
        is_current: dict[tuple[str, str], bool] = {}
        incarnations = await self._incarnation.of(queued_messages)
        for queued, incarnation in zip(queued_messages, incarnations, strict=True):
            try:
                seed, key = parse_report_subject(queued.message.subject, self.subjects)
                reporter = seed if cluster_of(seed) else f"{SEED_USER_PREFIX}{seed}"
                check_sender(queued.message.headers, reporter, self.user_of)
                token = queued.message.headers.get(Header.FENCING_TOKEN, "")
                sender = (seed, token)
                if sender not in is_current:
                    is_current[sender] = await self._is_current(*sender)
                if not is_current[sender]:
                    raise Forbidden(_not_current(seed, token))
                if token:
                    is_current[seed, ""] = False
                read = partial(read_report, queued, seed, key, incarnation)
                reports.append(await beside_loop(len(queued.message.body), read))
            except Terminal as error:
                rejected.append(RejectedReport(queued, error))
        return reports, rejected

    async def _is_current(self, seed: str, fencing_token: str) -> bool:
        """True unless the gardenlet that sent this fencing token has been replaced.

        Without a token: while no gardenlet of the seed has ever sent one. Agents of member clusters have none.
        """
        if cluster_of(seed):
            return True
        if not fencing_token:
            return not await self.store.has_fencing_token(seed)
        created, _, number = fencing_token.partition(".")
        if not (created.isdecimal() and number.isdecimal() and len(fencing_token) <= 40):  # noqa: PLR2004 - two 64-bit numbers
            raise BadRequest(f"{Header.FENCING_TOKEN}: must be <created>.<sequence> of the Lease")
        if await self.store.accept_fencing_token(seed, int(created), int(number)):
            return True
        last = await self.bus.position(self.subjects.stream("LEASES"))  # it may have gone back
        return await self.store.accept_fencing_token(seed, int(created), int(number), last=last)

    # ------------------------------------------------------------------------------------------ handling

    async def _handle_in_order(self, reports: Sequence[Report], reads: ReadCache) -> list[RejectedReport]:
        async with self._slots:
            rejected: list[RejectedReport] = []
            statuses: list[Report] = []
            for report in reports:
                if report.verb == "status":
                    statuses.append(report)
                    continue
                rejected += await self._merge_statuses(statuses, reads)
                statuses = []
                try:
                    await self._handle_other(report, reads)
                except (UnmetDependency, Terminal, NotFound, StaleVersion) as error:
                    rejected.append(RejectedReport(report.queued, cause_of(error), report.key))
                except Conflict as error:
                    raise Unavailable(error.message) from error
            return rejected + await self._merge_statuses(statuses, reads)

    async def _merge_statuses(self, reports: Sequence[Report], reads: ReadCache) -> list[RejectedReport]:
        """Merge the statuses reported of one object, and write once."""
        if not reports:
            return []
        span = spans.status_report(reports)
        if span is tracing.NOT_TRACED:
            return await self._merge_and_write(reports, reads)
        try:
            with tracing.within(spans.traceparent_for_gardenlet(reports, span)):
                rejected = await self._merge_and_write(reports, reads)
        except BaseException as error:
            span.end(failed=str(error) or type(error).__name__)
            raise
        span.end(failed=rejected[0].error.message if rejected else "")
        about, seed = str(reports[0].key), reports[0].seed
        _log.info("status.merged", object=about, seed=seed, rejected=len(rejected), **tracing.fields(span.traceparent))
        return rejected

    async def _merge_and_write(self, reports: Sequence[Report], reads: ReadCache) -> list[RejectedReport]:
        key = reports[0].key
        for _ in range(ATTEMPTS):
            stored = await reads.get(key)
            document, stamps, rejected = await self._merge_all(reports, stored, reads)
            if stored is None or document is None or stamps == stored.report_stamps:
                await self.store.confirm_reads()
                return rejected
            try:
                reads.record(key, await self._write(stored, document, stamps))
            except (Conflict, NotFound):
                reads.invalidate(key)
            except Forbidden as error:  # the store rejects one of them
                if len(reports) == 1:
                    return [RejectedReport(reports[0].queued, error, key)]
                return [rejection for report in reports for rejection in await self._merge_statuses([report], reads)]
            else:
                return rejected
        raise Unavailable(f"{key} keeps changing")

    async def _merge_all(
        self, reports: Sequence[Report], stored: StoredObject | None, reads: ReadCache
    ) -> tuple[Document | None, bytes, list[RejectedReport]]:
        """The object and its stamps after all these reports, and those that are rejected."""
        document = stored.document() if stored is not None else None
        stamps = stored.report_stamps if stored is not None else b""
        rejected: list[RejectedReport] = []
        for report in reports:
            try:
                document, stamps = await self._merge(report, stored, document, stamps, reads)
            except Terminal as error:
                if not self._was_merged(report, stored):
                    rejected.append(RejectedReport(report.queued, error, report.key))
        return document, stamps, rejected

    def _was_merged(self, report: Report, stored: StoredObject | None) -> bool:
        """True when a rejected report was redelivered, and is the one that removed the object or handed it over."""
        if report.queued.deliveries == 1:
            return False
        return stored is None or is_set_by(
            stored.report_stamps, "seedName", incarnation=report.incarnation, sequence=report.sequence
        )

    async def _merge(
        self, report: Report, stored: StoredObject | None, document: Document | None, stamps: bytes, reads: ReadCache
    ) -> tuple[Document, bytes]:
        """The object and its stamps after one report. Raises Terminal."""
        what = str(report.key)
        report_admission.check_object(stored, uid=report.uid, reported_at=report.at, what=what)
        assert document is not None
        await authorize_report(report, document, reads)
        status = report_admission.reported_status(report.body)
        if report.key.kind == "shoot":
            report_admission.check_seed_claim(document, status)
        if report.key.kind == "backupentry":
            report_admission.check_own_claim(status, report.seed)
        stamped = merge_report(
            section(document, "status"), stamps, report=status, incarnation=report.incarnation, sequence=report.sequence
        )
        if not stamped.is_changed:
            return document, stamps
        check_unknown_status(document, status, stamped.status)
        validate_status({**document, "status": stamped.status}, document)
        new_status = report_admission.with_highest_observed_generation(section(document, "status"), stamped.status)
        merged = report_admission.finish_deletion({**document, "status": new_status})
        if report.key.kind == "managedseed":
            merged = await with_gardenlet_finalizer(merged, reads)
        if report.key.kind in ("backupbucket", "backupentry"):
            merged = with_finalizer(merged)
        if report.key.kind == "bastion":
            merged = report_admission.with_bastion_finalizer(merged)
        if report.key.kind in ("seed", CLUSTER_KIND):
            merged = report_admission.without_met_renewal(merged, document)
        if report.key.kind == CLUSTER_KIND:
            merged = with_agent_finalizer(merged)
        return with_status_label(merged) if report.key.kind == "shoot" else merged, stamped.stamps

    async def _write(self, stored: StoredObject, document: Document, stamps: bytes) -> StoredObject | None:
        if stored.is_deleting and not section(document, "metadata").get("finalizers"):
            await self.writer.agent_credentials.end_with(stored)
        bumps = stored.key.kind == "shoot" and report_admission.bumps_generation(stored.document(), document)
        written = await self.store.update(stored, document, report_stamps=stamps, bump_generation=bumps)
        assert isinstance(written, StoredObject)
        is_removed = stored.is_deleting and not written.parts.finalizers
        _log.debug("report.merged", object=str(stored.key), version=written.version, removed=is_removed)
        return None if is_removed else written

    async def _handle_other(self, report: Report, reads: ReadCache) -> None:
        if cluster := cluster_of(report.seed):
            check_member(report, cluster)
            if report.verb == "apply":
                await register(report, cluster, reads, self.writer)
                return
            if report.verb == "delete":
                await withdraw(report, reads, self.writer)
                return
        match report.verb:
            case "exists":
                manifest = adoptable_manifest(report.body, report.key, uid=report.uid, seed=report.seed)
                unknown = UnknownObject(
                    key=report.key, uid=report.uid, seed=report.seed, manifest=manifest, runs=bool(report.body)
                )
                is_named = bool(report.uid) or report.key.kind == "work"
                kept = unknown if report.key.kind in FORGETTABLE_KINDS and is_named else None
                is_own = await is_own_object(report, reads)
                if not await self.store.reannounce_object(report.key, report.seed, report.uid, kept, is_own=is_own):
                    await self._warn_of_unknown(report, reads)
            case "gone":
                await self._remove_tombstone(report)
            case "inventory":
                await take_inventory(report, self.store)
            case "apply":
                await self._apply(report, reads)
            case "delete":
                await self._delete(report, reads)
            case _:
                await self._record_event(report, reads)

    async def _warn_of_unknown(self, report: Report, reads: ReadCache) -> None:
        """Report of an object on a seed that it is kept until somebody decides: the store cannot know that it left."""
        UNKNOWN_OBJECTS.labels(report.key.kind).inc()
        key = str(report.key)
        self._unknown_lines.warn(report.seed, key, object=key, uid=report.uid, seed=report.seed)
        cluster = cluster_of(report.seed)
        seed = await reads.get(ObjectKey(CLUSTER_KIND, "", cluster) if cluster else ObjectKey("seed", "", report.seed))
        if seed is not None:
            text = f"{report.key} runs here; the store does not have it here, nor remembers that it left: it is kept"
            await self.store.record_event(
                EventRecord(seed.key, seed.uid, "Warning", "ObjectUnknown", text, "apiserver", "Keep")
            )

    async def _remove_tombstone(self, report: Report) -> None:
        """Remove the tombstone that the gardenlet has observed, and nothing that was published after it.

        The purge is bounded by its sequence, so that a binding announced since stays.
        """
        stream = self.subjects.stream("BINDINGS")
        subject = (
            self.subjects.binding(report.seed, report.key.namespace, report.key.name)
            if report.key.kind == "shoot"
            else self.subjects.view(report.seed, report.key)
        )
        last = await self.bus.last(stream, subject)
        if last is None or last.sequence != report.tombstone_sequence or last.headers.get(Header.VERB) != "deleted":
            return
        await self.bus.purge(stream, subject, upto_sequence=report.tombstone_sequence)

    async def _apply(self, report: Report, reads: ReadCache) -> None:
        """Store the manifest of a Seed or a ShootState while its precondition holds."""
        for _ in range(ATTEMPTS):
            condition = await authorize_apply(report, reads)
            stored = await reads.get(report.key)
            if report.key == own_seed(report) and report.queued.deliveries > 1 and stored is None:
                _log.info("registration.dropped", seed=report.seed)  # the Seed may have been registered and removed
                return  # since; a waiting gardenlet registers it again
            if report.key == own_seed(report) and stored is None:
                await self.writer.agent_credentials.check_registration(Principal("gardenlet", report.seed))
            manifest = report.body
            if report.key.kind == "shootstate" and stored is not None:
                if is_older_state(manifest, stored.document()):
                    _log.info("state.dropped", object=str(report.key), seed=report.seed)  # a newer one was first
                    return
                manifest = report_admission.at_version_of(manifest, stored)
            if report.key.kind == "seed" and stored is not None and not version_in(manifest):
                manifest = report_admission.at_version_of(manifest, stored)  # one that is gone is not made again
            try:
                await self.writer.apply(
                    manifest,
                    reads,
                    user=GARDENLET_USER + report.seed,
                    condition=condition,
                    post_merge=report_admission.with_operator_settings_kept,
                )
            except StaleVersion:
                reads.invalidate(report.key)
                reads.invalidate(condition.key)
                if await authorize_apply(report, reads) == condition and await reads.get(report.key) == stored:
                    raise  # it is the manifest that is stale
            else:
                return
        raise Unavailable(f"what allows {report.key} keeps changing")

    async def _delete(self, report: Report, reads: ReadCache) -> None:
        """Delete the Seed of a ManagedSeed that is being deleted and is hosted here, or the bucket of such a Seed.

        While shoots are on it, or BackupEntries in it, it stays and an Event is recorded: the gardenlet retries.
        """
        on_behalf_of = await authorize_delete(report, reads)
        try:
            await self.writer.delete(report.key, reads)
        except UnmetDependency as unmet:
            _log.info("seed.kept", object=str(report.key), seed=report.seed, reason=unmet.error.message)
            await self.store.record_event(
                EventRecord(
                    about=on_behalf_of.key,
                    uid=on_behalf_of.uid,
                    type="Warning",
                    reason="SeedInUse" if report.key.kind == "seed" else "ResourceReferenced",
                    message=unmet.error.message,
                    reporter=f"gardenlet-{report.seed}",
                    action="Delete",
                )
            )

    async def _record_event(self, report: Report, reads: ReadCache) -> None:
        stored = report_admission.check_object(
            await reads.get(report.key), uid=report.uid, reported_at=report.at, what=str(report.key)
        )
        document = stored.document()
        if report.key.kind != "shoot" or not report_admission.concerns(document, report.seed):
            await authorize_report(report, document, reads)
        kind, reason, message, action = report_admission.reported_event(report.body)
        await self.store.record_event(
            EventRecord(
                about=report.key,
                uid=stored.uid,
                type=kind,
                reason=reason,
                message=message,
                reporter=reporter_name(report.seed),
                action=action,
            )
        )

    async def _reject(self, rejection: RejectedReport, reads: ReadCache) -> None:
        async with self._slots:  # a flood of one sender is over the sooner: others' reports wait behind it
            about = await reads.get(rejection.about) if rejection.about is not None else None
            await self.dead_letter.reject(rejection.queued.message, rejection.error, about=about, action="Report")


def _not_current(seed: str, fencing_token: str) -> str:
    if fencing_token:
        return f"another gardenlet of seed {seed} is active by now: fence {fencing_token} is too old"
    return f"{Header.FENCING_TOKEN}: is needed, for the gardenlet of seed {seed} has sent one before"
