"""What gardenlets and member clusters' agents observed, taken from REPORTS: statuses, what they register, Events.

Reports of one object are taken in order and merged into one write. What a reporter may not say is put on
`garden.rejected`. Which of two reports is the newer is told by the stream, never by the order of taking
(report_fences.py).
"""

import asyncio
from collections.abc import Sequence

import structlog

from gardenbus.apiserver.decide.validation import validate_status
from gardenbus.apiserver.reconcilers import report_rules, spans
from gardenbus.apiserver.reconcilers.attempts import Contingent, StaleVersion
from gardenbus.apiserver.reconcilers.member_reports import (
    CLUSTER_KIND,
    check_member,
    cluster_of,
    held_or_left,
    register,
    reporter_name,
    withdraw,
)
from gardenbus.apiserver.reconcilers.preconditions import version_in
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.apiserver.reconcilers.report_fences import has_set, take_report
from gardenbus.apiserver.reconcilers.report_messages import Refused, Report, read_report
from gardenbus.apiserver.reconcilers.report_permissions import (
    admit_applied,
    admit_deleted,
    check_reporter,
    held_or_released,
    own_seed,
)
from gardenbus.apiserver.reconcilers.speaking import reporter_and_key
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, NotFound, Terminal, Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Work, WorkQueue
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.common.resources.migrating import is_older_state
from gardenbus.common.resources.shoot_status import with_status_label

_log = structlog.stdlib.get_logger()

ATTEMPTS = 25
GARDENLET_USER = "gardener.cloud:system:seed:"


class Reports:
    """Takes batches of reports."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        bus: Bus,
        store: Store,
        subjects: Subjects,
        queue: WorkQueue,
        writer: Writer,
        library: Library,
        rejections: Rejections,
        concurrency: int,
    ) -> None:
        self._bus = bus
        self._store = store
        self._subjects = subjects
        self._queue = queue
        self._writer = writer
        self._library = library
        self._rejections = rejections
        self._slots = asyncio.Semaphore(concurrency)
        self._created = 0

    async def refresh(self) -> None:
        """Read which incarnation of REPORTS this is: at the start and after every reconnect."""
        self._created = (await self._bus.position(self._subjects.stream("REPORTS"))).created

    async def handle(self, works: Sequence[Work]) -> None:
        """Take a batch and acknowledge it. Raises Unavailable; taken again it ends the same."""
        if not self._created:
            await self.refresh()
        reports, refused = await self._read(works)
        reads = Reads(self._store, self._library)
        await reads.fetch(report.key for report in reports)
        by_key: dict[ObjectKey, list[Report]] = {}
        for report in reports:
            by_key.setdefault(report.key, []).append(report)
        results = await asyncio.gather(
            *(self._take_in_order(of_one, reads) for of_one in by_key.values()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
            refused += result
        for refusal in refused:
            await self._reject(refusal, reads)
        await self._queue.ack_many(works)

    # ------------------------------------------------------------------------------------------ reading

    async def _read(self, works: Sequence[Work]) -> tuple[list[Report], list[Refused]]:
        reports: list[Report] = []
        refused: list[Refused] = []
        fences: dict[tuple[str, str], bool] = {}
        for work in works:
            try:
                seed, key = reporter_and_key(work.message.subject, self._subjects)
                fence = (seed, work.message.headers.get(Header.FENCE, ""))
                if fence not in fences:
                    fences[fence] = await self._is_current(*fence)
                if not fences[fence]:
                    raise Forbidden(f"another gardenlet of seed {seed} is active by now: fence {fence[1]} is too old")
                reports.append(read_report(work, seed, key))
            except Terminal as error:
                refused.append(Refused(work, error))
        return reports, refused

    async def _is_current(self, seed: str, fence: str) -> bool:
        """Whether the gardenlet that sent this fencing number is not known to be replaced; none is none to compare."""
        if not fence:
            return True
        created, _, number = fence.partition(".")
        if not (created.isdecimal() and number.isdecimal() and len(fence) <= 40):  # noqa: PLR2004 - two 64-bit numbers
            raise BadRequest(f"{Header.FENCE}: must be <created>.<sequence> of the Lease")
        return await self._store.accept_fence(seed, int(created), int(number))

    # ------------------------------------------------------------------------------------------ taking

    async def _take_in_order(self, reports: Sequence[Report], reads: Reads) -> list[Refused]:
        async with self._slots:
            refused: list[Refused] = []
            statuses: list[Report] = []
            for report in reports:
                if report.verb == "status":
                    statuses.append(report)
                    continue
                refused += await self._take_statuses(statuses, reads)
                statuses = []
                try:
                    await self._take_other(report, reads)
                except Contingent as contingent:
                    refused.append(Refused(report.work, contingent.error, report.key))
                except (Terminal, NotFound, StaleVersion) as error:
                    refused.append(Refused(report.work, error, report.key))
                except Conflict as error:
                    raise Unavailable(error.message) from error
            return refused + await self._take_statuses(statuses, reads)

    async def _take_statuses(self, reports: Sequence[Report], reads: Reads) -> list[Refused]:
        """Merge the statuses reported of one object, and write once."""
        if not reports:
            return []
        span = spans.reported(reports)
        if span is tracing.NOT_TRACED:
            return await self._merge_and_write(reports, reads)
        try:
            with tracing.within(spans.followed_by_work(reports, span)):
                refused = await self._merge_and_write(reports, reads)
        except BaseException as error:
            span.end(failed=str(error) or type(error).__name__)
            raise
        span.end(failed=refused[0].error.message if refused else "")
        about, seed = str(reports[0].key), reports[0].seed
        _log.info("status.taken", object=about, seed=seed, refused=len(refused), **tracing.fields(span.traceparent))
        return refused

    async def _merge_and_write(self, reports: Sequence[Report], reads: Reads) -> list[Refused]:
        key = reports[0].key
        for _ in range(ATTEMPTS):
            stored = await reads.get(key)
            document, fences, refused = await self._merge_all(reports, stored, reads)
            if stored is None or document is None or fences == stored.report_fences:
                return refused
            try:
                reads.note(key, await self._write(stored, document, fences))
            except (Conflict, NotFound):
                reads.forget(key)
            except Forbidden as error:  # the store speaks against what one of them says
                if len(reports) == 1:
                    return [Refused(reports[0].work, error, key)]
                return [refusal for report in reports for refusal in await self._take_statuses([report], reads)]
            else:
                return refused
        raise Unavailable(f"{key} is changed by others all the time")

    async def _merge_all(
        self, reports: Sequence[Report], stored: StoredObject | None, reads: Reads
    ) -> tuple[Document | None, bytes, list[Refused]]:
        """The object and its fences after all these reports, and which of them are refused."""
        document = stored.document() if stored is not None else None
        fences = stored.report_fences if stored is not None else b""
        refused: list[Refused] = []
        for report in reports:
            try:
                document, fences = await self._merge(report, stored, document, fences, reads)
            except Terminal as error:
                if not self._was_taken(report, stored):
                    refused.append(Refused(report.work, error, report.key))
        return document, fences, refused

    def _was_taken(self, report: Report, stored: StoredObject | None) -> bool:
        """Whether a report that is refused comes again, and is what removed the object or handed it over."""
        if report.work.deliveries == 1:
            return False
        return stored is None or has_set(
            stored.report_fences, "seedName", incarnation=self._created, sequence=report.sequence
        )

    async def _merge(
        self, report: Report, stored: StoredObject | None, document: Document | None, fences: bytes, reads: Reads
    ) -> tuple[Document, bytes]:
        """The object and its fences after one report. Raises Terminal."""
        what = str(report.key)
        report_rules.check_object(stored, uid=report.uid, reported_at=report.at, what=what)
        assert document is not None
        await check_reporter(report, document, reads)
        status = report_rules.reported_status(report.body)
        if report.key.kind == "shoot":
            report_rules.check_seed_claim(document, status)
        taken = take_report(
            section(document, "status"), fences, report=status, incarnation=self._created, sequence=report.sequence
        )
        if not taken.taken:
            return document, fences
        validate_status({**document, "status": taken.status})
        new_status = report_rules.never_fallen(section(document, "status"), taken.status)
        merged = report_rules.finish_deletion({**document, "status": new_status})
        if report.key.kind == "managedseed":
            merged = await held_or_released(merged, reads)
        if report.key.kind == CLUSTER_KIND:
            merged = held_or_left(merged)
        return with_status_label(merged) if report.key.kind == "shoot" else merged, taken.fences

    async def _write(self, stored: StoredObject, document: Document, fences: bytes) -> StoredObject | None:
        bumps = stored.key.kind == "shoot" and report_rules.bumps_generation(stored.document(), document)
        written = await self._store.update(stored, document, report_fences=fences, bump_generation=bumps)
        assert isinstance(written, StoredObject)
        is_removed = stored.is_deleting and not written.parts.finalizers
        _log.debug("report.taken", object=str(stored.key), version=written.version, removed=is_removed)
        return None if is_removed else written

    async def _take_other(self, report: Report, reads: Reads) -> None:
        if cluster := cluster_of(report.seed):
            check_member(report, cluster)
            if report.verb == "apply":
                await register(report, cluster, reads, self._writer)
                return
            if report.verb == "delete":
                await withdraw(report, reads, self._writer)
                return
        match report.verb:
            case "exists":
                await self._store.announce_again(report.key, report.seed)
            case "gone":
                await self._remove_tombstone(report)
            case "apply":
                await self._apply(report, reads)
            case "delete":
                await self._delete(report, reads)
            case _:
                await self._record_event(report, reads)

    async def _remove_tombstone(self, report: Report) -> None:
        """Take the tombstone away that the gardenlet has obeyed, and nothing that was said after it.

        The purge is bounded by its sequence, so that a binding announced meanwhile is left alone.
        """
        stream = self._subjects.stream("BINDINGS")
        subject = (
            self._subjects.binding(report.seed, report.key.namespace, report.key.name)
            if report.key.kind == "shoot"
            else self._subjects.view(report.seed, report.key)
        )
        last = await self._bus.last(stream, subject)
        if last is None or last.sequence != report.obeyed or last.headers.get(Header.VERB) != "deleted":
            return
        await self._bus.purge(stream, subject, upto_sequence=report.obeyed)

    async def _apply(self, report: Report, reads: Reads) -> None:
        """Store the manifest of a Seed or a ShootState, as long as what allows it holds."""
        for _ in range(ATTEMPTS):
            condition = await admit_applied(report, reads)
            stored = await reads.get(report.key)
            if report.key == own_seed(report) and report.work.deliveries > 1 and stored is None:
                _log.info("registration.dropped", seed=report.seed)  # it may have been taken, and the Seed removed
                return  # since; a gardenlet that waits for its Seed registers it again
            manifest = report.body
            if report.key.kind == "shootstate" and stored is not None:
                if is_older_state(manifest, stored.document()):
                    _log.info("state.dropped", object=str(report.key), seed=report.seed)  # a newer one came first
                    return
                manifest = report_rules.based_on(manifest, stored)
            if report.key.kind == "seed" and stored is not None and not version_in(manifest):
                manifest = report_rules.based_on(manifest, stored)  # one that is removed meanwhile is not made anew
            try:
                await self._writer.apply(
                    manifest,
                    reads,
                    user=GARDENLET_USER + report.seed,
                    condition=condition,
                    settle=report_rules.beyond_gardenlets,
                )
            except StaleVersion:
                reads.forget(report.key)
                reads.forget(condition.key)
                if await admit_applied(report, reads) == condition and await reads.get(report.key) == stored:
                    raise  # it is the manifest that is stale
            else:
                return
        raise Unavailable(f"what allows {report.key} is changed by others all the time")

    async def _delete(self, report: Report, reads: Reads) -> None:
        """Delete the Seed of a ManagedSeed that is deleting and whose shoot stands here.

        While shoots are on it an Event says so, and it stays: its host cannot know of them, and asks again.
        """
        managed_seed = await admit_deleted(report, reads)
        try:
            await self._writer.delete(report.key, reads)
        except Contingent as contingent:
            _log.info("seed.kept", object=str(report.key), seed=report.seed, reason=contingent.error.message)
            await self._store.record_event(
                EventRecord(
                    about=managed_seed.key,
                    uid=managed_seed.uid,
                    type="Warning",
                    reason="SeedInUse",
                    message=contingent.error.message,
                    reporter=f"gardenlet-{report.seed}",
                    action="Delete",
                )
            )

    async def _record_event(self, report: Report, reads: Reads) -> None:
        stored = report_rules.check_object(
            await reads.get(report.key), uid=report.uid, reported_at=report.at, what=str(report.key)
        )
        document = stored.document()
        if report.key.kind != "shoot" or not report_rules.concerns(document, report.seed):
            await check_reporter(report, document, reads)
        kind, reason, message, action = report_rules.reported_event(report.body)
        await self._store.record_event(
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

    async def _reject(self, refusal: Refused, reads: Reads) -> None:
        about = await reads.get(refusal.about) if refusal.about is not None else None
        await self._rejections.reject(refusal.work.message, refusal.error, about=about, action="Report")
