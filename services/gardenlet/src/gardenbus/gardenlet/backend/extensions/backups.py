"""BackupBuckets and BackupEntries in the seed's API: where backups of its shoots are, which extensions make.

What flows want of entries is in `wanted` while they wait for it: whoever reconciles them has the garden keep it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from gardenbus.common.api.configuration.gardenlet import BACKUP_ENTRY, BackupEntrySettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings, name_of, only_text
from gardenbus.common.api.garden.backup_references import credentials_of_bucket, generated_secret_key
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.gardenlet.backend.extensions.actor import ExtensionActor
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import MakerContext, StaleFencingToken, StepFailed
from gardenbus.gardenlet.domain.extension_objects.backups import (
    RENEWED_AFTER,
    begun,
    bucket_object,
    bucket_state,
    ended,
    entry_object,
    entry_problem,
    failed,
    generated_secret,
    is_moving,
    is_ready,
    is_responsible,
    kept_until,
    operation_type,
    path_of_core,
    pending,
    plan_backup,
    secret_name,
)
from gardenbus.gardenlet.domain.extension_objects.contract import (
    MIGRATE,
    RESTORE,
    TIMESTAMP,
    WAIT_FOR_STATE,
    LastError,
    deletion_patch,
    is_migrated,
    is_not_picked_up,
    last_error,
    request_patch,
    request_time,
    requested,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import (
    BACKUP_ENTRY_WAIT,
    ExtensionObject,
    WaitLimits,
    collection,
    path_of,
)
from gardenbus.gardenlet.domain.extension_objects.states import EXTENSIONS, entry_of
from gardenbus.gardenlet.domain.flows import EXTENSION_STATES
from gardenbus.gardenlet.domain.managed_resources.names import OPERATION, RECONCILE, annotations_of
from gardenbus.gardenlet.domain.shoot_state import state_in

_NAMESPACE = f"/api/v1/namespaces/{GARDEN_NAMESPACE}"
_FIRST_PAUSE = 0.5
RECONCILE_ERROR, DELETE_ERROR = "ReconcileError", "DeleteError"
"""Reasons of Events, as in Gardener."""


class BackupReport(NamedTuple):
    """Report about a core object: a patch of its status, an Event, and a Secret that the garden is to have."""

    status: Document
    reason: str = ""
    message: str = ""
    secret: Document | None = None


class _EntryContext(NamedTuple):
    """Facts that all entries of a bucket share: the objects in the seed by name, and the credentials of the bucket."""

    bucket: Document
    live: Mapping[str, Document]
    secrets: Mapping[str, Document]
    credentials: Document
    settings: BackupEntrySettings


class _Credentials(NamedTuple):
    """The copy of credentials in the seed: when it was written, and whether that was just now."""

    written_at: datetime | None
    is_new: bool


class SeedBackups:
    """See the module. `delete_backups` removes what the backend has of a deleted entry; `has_entries`: there are such.

    `request` is called when a flow waits for an entry, and is to have them reconciled.
    """

    def __init__(
        self,
        api: SeedAPI,
        context: MakerContext,
        delete_backups: Callable[[str], Awaitable[None]],
        *,
        has_entries: bool,
        wait: WaitLimits = BACKUP_ENTRY_WAIT,
    ) -> None:
        self._api = api
        self._garden = context.garden
        self._clock = context.clock
        self._seed_name = context.seed_name
        self._delete_backups = delete_backups
        self._wait = wait
        self._actor = ExtensionActor(api, context.clock, {BACKUP_ENTRY: wait})
        self.has_entries = has_entries
        self.request: Callable[[], None] = lambda: None
        self.wanted: dict[ObjectKey, Document] = {}
        self._entries: Mapping[ObjectKey, Document] = {}
        self._lists = 0

    # ------------------------------------------------------------------------------------------ flows

    async def bring_entry(self, key: ObjectKey, wanted: Document) -> None:
        """Wait until the garden has an entry, and it is ready here. Raises StepFailed with the codes of its error."""
        what = f"Error while waiting for BackupEntry {key.namespace}/{key.name} to become ready"
        await self._until(key, wanted, lambda entry: entry_problem(entry, self._seed_name), what)

    async def migrate_entry(self, key: ObjectKey, wanted: Document) -> None:
        """Wait until an entry has left for the seed that it is wanted on; without any, nothing. Raises StepFailed."""
        what = f"Error while waiting for BackupEntry {key.namespace}/{key.name} to be successfully migrated"
        await self._until(key, None, lambda _: None, what)
        if key not in self._entries:
            return

        def problem(entry: Document | None) -> str | None:
            return "its seed has it still" if entry is not None and is_responsible(entry, self._seed_name) else None

        await self._until(key, wanted, problem, what)

    async def release_entry(self, name: str) -> None:
        """Let go of what is here of an entry that is another seed's already. Raises StepFailed."""
        await self._actor.migrate(BACKUP_ENTRY, "", [name])
        await self._actor.delete(BACKUP_ENTRY, "", [name])
        await self._api.delete(f"{_NAMESPACE}/secrets/entry-{name}")

    async def state_of(self, name: str) -> Document | None:
        """The entry of a ShootState for the object of an entry here; None without state. Raises StepFailed."""
        try:
            live = await self._api.get(path_of(BACKUP_ENTRY, "", name))
        except GardenbusError as error:
            raise self._api.failure(error, f"BackupEntry {name} cannot be read") from error
        state = None if live is None else section(live, "status").get("state")
        return {"kind": BACKUP_ENTRY, "name": name, "state": state} if state else None

    def observe(self, entries: Mapping[ObjectKey, Document]) -> None:
        """Have flows see the entries of the seed's bucket, as the garden has them."""
        self._entries, self._lists = entries, self._lists + 1

    async def _until(
        self, key: ObjectKey, wanted: Document | None, check: Callable[[Document | None], str | None], what: str
    ) -> None:
        """Wait until an entry of a list that was made since has no problem."""
        began, with_error, lists = self._clock.monotonic(), 0.0, self._lists
        pauses = Backoff(min(_FIRST_PAUSE, self._wait.interval), self._wait.interval).pauses()
        if wanted is not None:
            self.wanted[key] = wanted
        try:
            while True:
                self.request()
                await self._clock.sleep(pause := next(pauses))
                entry = self._entries.get(key)
                problem = check(entry) if self._lists > lists else "the entries of its bucket cannot be listed"
                if problem is None:
                    return
                error = None if entry is None else last_error(entry)
                with_error += pause if error is not None else 0.0
                if self._clock.monotonic() - began >= self._wait.timeout or with_error > self._wait.severe:
                    raise StepFailed(f"{what}: {problem}", () if error is None else error.codes)
        finally:
            self.wanted.pop(key, None)

    # ------------------------------------------------------------------------------------------ buckets

    async def reconcile_bucket(self, bucket: Document) -> BackupReport:
        """Have the object of a BackupBucket be there, or be gone. Raises StaleFencingToken."""
        work = self._delete_bucket if is_deleting(bucket) else self._bring_bucket
        return await self._reported(bucket, lambda: work(bucket))

    async def _reported(self, core: Document, work: Callable[[], Awaitable[BackupReport]]) -> BackupReport:
        """The report of some work on a core object; an error of it is reported, too."""
        reason = DELETE_ERROR if is_deleting(core) else RECONCILE_ERROR
        try:
            return await work()
        except StaleFencingToken:
            raise
        except GardenbusError as error:
            what = f"{core['kind']} {name_of(core)} cannot be reconciled"
            failure = error if isinstance(error, StepFailed) else self._api.failure(error, what)
            return self._failed(core, LastError(failure.message, failure.codes), reason)

    async def _bring_bucket(self, bucket: Document) -> BackupReport:
        wanted, now = bucket_object(bucket), self._clock.now()
        data = await self._credentials(bucket, credentials_of_bucket(bucket))
        credentials = await self._copy_credentials(secret_name(bucket), data, await self._secret(bucket))
        live = await self._api.get(path_of_core(bucket))
        plan = plan_backup(live, wanted, credentials_at=credentials.written_at, now=now, renewed_after=RENEWED_AFTER)
        if plan.is_requested or (credentials.is_new and live is not None):
            await self._request(wanted)
        if plan.error is not None:
            return self._failed(bucket, plan.error, RECONCILE_ERROR)
        if not plan.is_ready or credentials.is_new or live is None:
            return BackupReport(begun(bucket, now))
        return await self._ready(bucket, live)

    async def _ready(self, bucket: Document, live: Document) -> BackupReport:
        """The report of a bucket that is there, with what its extension has made for those who use it."""
        status = section(live, "status")
        made: Document = {}
        secret = None
        if status.get("providerStatus") is not None:
            made["providerStatus"] = status["providerStatus"]
        if reference := section(status, "generatedSecretRef"):
            namespace, name = only_text(reference.get("namespace")), only_text(reference.get("name"))
            in_seed = await self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            if in_seed is None:
                raise StepFailed(f"the generated Secret {namespace}/{name} is not in the seed")
            key = generated_secret_key(bucket)
            made["generatedSecretRef"] = {"name": key.name, "namespace": key.namespace}
            wanted = generated_secret(bucket, in_seed)
            in_garden = await self._garden.get(key)
            if in_garden is None or section(in_garden, "data") != section(wanted, "data"):
                secret = wanted
        return BackupReport(ended(bucket, self._clock.now(), made), secret=secret)

    async def _delete_bucket(self, bucket: Document) -> BackupReport:
        live = await self._api.get(path_of_core(bucket))
        if live is not None:
            data = await self._credentials(bucket, credentials_of_bucket(bucket))
            await self._copy_credentials(secret_name(bucket), data, await self._secret(bucket))
            return await self._delete(bucket, live)
        await self._api.delete(f"{_NAMESPACE}/secrets/{secret_name(bucket)}")
        return BackupReport(ended(bucket, self._clock.now()))

    # ------------------------------------------------------------------------------------------ entries

    async def reconcile_entries(
        self, entries: Sequence[Document], bucket: Document, settings: BackupEntrySettings
    ) -> Sequence[BackupReport]:
        """Have the objects of BackupEntries be there, or be gone, or be migrated. Raises as `reconcile_bucket` does.

        A list of the objects, and one of the Secrets beside them, are for all.
        """
        if not entries:
            return ()
        try:
            live = await self._api.items(collection("BackupEntry", ""))
            secrets = await self._api.items(f"{_NAMESPACE}/secrets")
            credentials = await self._credentials(bucket, _generated_key(bucket) or credentials_of_bucket(bucket))
        except GardenbusError as error:
            failed_list = error

            async def fail() -> BackupReport:
                raise failed_list

            return [await self._reported(each, fail) for each in entries]
        context = _EntryContext(bucket, _by_name(live), _by_name(secrets), credentials, settings)
        return [await self._reported(each, partial(self._reconcile_entry, each, context)) for each in entries]

    async def _reconcile_entry(self, entry: Document, context: _EntryContext) -> BackupReport:
        live = context.live.get(name_of(entry))
        if is_deleting(entry):
            return await self._delete_entry(entry, live, context)
        if is_moving(entry):
            return await self._migrate_entry(entry, live)
        return await self._bring_entry(entry, live, context)

    async def _bring_entry(self, entry: Document, live: Document | None, context: _EntryContext) -> BackupReport:
        wanted, now, here = entry_object(entry, context.bucket), self._clock.now(), {"seedName": self._seed_name}
        secret = context.secrets.get(secret_name(entry))
        is_new = section(secret or {}, "data") != context.credentials
        written_at = parse_timestamp(annotations_of(secret or {}).get(TIMESTAMP))
        plan = plan_backup(live, wanted, credentials_at=written_at, now=now)
        if plan.is_requested or is_new:
            if not is_ready(context.bucket):
                return self._waits_for_bucket(entry, context.bucket)
            await self._copy_credentials(secret_name(entry), context.credentials, secret)
            if operation_type(entry) == "Restore" or (live is not None and is_migrated(live)):
                await self._restore(entry, wanted)
            else:
                await self._request(wanted)
        if plan.error is not None:
            return self._failed(entry, plan.error, RECONCILE_ERROR)
        if not plan.is_ready or is_new:
            return BackupReport(begun(entry, now, here))
        return BackupReport(ended(entry, now, here))

    def _waits_for_bucket(self, entry: Document, bucket: Document) -> BackupReport:
        """The report of an entry whose bucket is not ready: the error of the bucket, if it has one."""
        if last_error(bucket) is None:
            return BackupReport(begun(entry, self._clock.now(), {"seedName": self._seed_name}))
        return self._failed(entry, LastError(bucket_state(bucket)), RECONCILE_ERROR)

    async def _delete_entry(self, entry: Document, live: Document | None, context: _EntryContext) -> BackupReport:
        settings, now = context.settings, self._clock.now()
        hours, purposes = settings.deletion_grace_period_hours, settings.deletion_grace_period_shoot_purposes
        until = kept_until(entry, hours=hours, purposes=purposes)
        if until is not None and now <= until:
            return BackupReport(pending(entry, until, now))
        secret = context.secrets.get(secret_name(entry))
        if live is not None:
            if not is_ready(context.bucket):
                return self._waits_for_bucket(entry, context.bucket)
            await self._copy_credentials(secret_name(entry), context.credentials, secret)
            return await self._delete(entry, live)
        await self._api.delete(f"{_NAMESPACE}/secrets/{secret_name(entry)}")
        await self._delete_backups(name_of(entry))
        return BackupReport(ended(entry, now))

    async def _migrate_entry(self, entry: Document, live: Document | None) -> BackupReport:
        """Hand an entry over: nothing of it is destroyed when its object, which was migrated, is deleted."""
        now = self._clock.now()
        if live is None:
            await self._api.delete(f"{_NAMESPACE}/secrets/{secret_name(entry)}")
            return BackupReport(ended(entry, now, {"seedName": None}))
        if is_migrated(live):
            return await self._delete(entry, live)
        if (error := last_error(live)) is not None and not is_not_picked_up(live):
            problem = LastError(f"error during reconciliation: {error.description}", error.codes)
            return self._failed(entry, problem, RECONCILE_ERROR)
        if annotations_of(live).get(OPERATION) != MIGRATE:
            await self._api.patch(path_of_core(entry), request_patch(MIGRATE, request_time(now)))
        return BackupReport(begun(entry, now))

    # ------------------------------------------------------------------------------------------ both

    async def _delete(self, core: Document, live: Document) -> BackupReport:
        """Delete an object, once, or report why it is there still."""
        path = path_of_core(core)
        if not is_deleting(live):
            if await self._api.patch(path, deletion_patch(request_time(self._clock.now()))) is not None:
                await self._api.delete(path)
        elif (error := last_error(live)) is not None:
            return self._failed(core, error, DELETE_ERROR)
        return BackupReport(begun(core, self._clock.now()))

    async def _request(self, wanted: ExtensionObject, operation: str = RECONCILE) -> None:
        at = request_time(self._clock.now())
        path = f"{collection(wanted.kind, '')}/{wanted.name}"
        await self._api.write(path, lambda live: requested(live, wanted, operation, at))

    async def _restore(self, entry: Document, wanted: ExtensionObject) -> None:
        """Request a restoration, once an object without state has what the ShootState has of it."""
        saved = await self._saved_entry(entry)
        if saved is not None:
            await self._request(wanted, WAIT_FOR_STATE)
            await self._actor.write_state(wanted, saved)
        await self._request(wanted, RESTORE)

    async def _saved_entry(self, entry: Document) -> Document | None:
        """Entry in the ShootState of its shoot, which is stored before it moves; None without a state."""
        metadata = section(entry, "metadata")
        owners = [each for each in mappings(metadata.get("ownerReferences")) if each.get("kind") == "Shoot"]
        owner: Document = owners[0] if owners else {}
        key = ObjectKey("shootstate", only_text(metadata.get("namespace")), only_text(owner.get("name")))
        try:
            found = await self._garden.get(key) if key.name else None
        except GardenbusError as error:
            raise StepFailed(f"ShootState {key.namespace}/{key.name} cannot be read: {error.message}") from error
        states = state_in(found, only_text(owner.get("uid"))) or {}
        saved = entry_of(mappings(states.get(EXTENSION_STATES, {}).get(EXTENSIONS)), BACKUP_ENTRY, name_of(entry))
        return saved if saved is not None and saved.get("state") is not None else None

    async def _secret(self, core: Document) -> Document | None:
        return await self._api.get(f"{_NAMESPACE}/secrets/{secret_name(core)}")

    async def _credentials(self, bucket: Document, key: ObjectKey | None) -> Document:
        """The data of the Secret with the credentials of a bucket. Raises StepFailed."""
        if key is None or key.kind != "secret":
            raise StepFailed(f"BackupBucket {name_of(bucket)}: its credentials are {key or 'missing'}, and no Secret")
        where = f"Failed to get backup secret {key.namespace}/{key.name}"
        try:
            found = await self._garden.get(key)
        except GardenbusError as error:
            raise StepFailed(f"{where}: {error.message}") from error
        if found is None:
            raise StepFailed(f'{where}: secret "{key.name}" not found')
        return section(found, "data")

    async def _copy_credentials(self, name: str, data: Document, live: Document | None) -> _Credentials:
        """Have the copy of credentials be in the seed, where `live` is."""
        path = f"{_NAMESPACE}/secrets/{name}"
        written_at = parse_timestamp(annotations_of(live or {}).get(TIMESTAMP))
        if live is not None and written_at is not None and section(live, "data") == data:
            return _Credentials(written_at, is_new=False)
        if live is None:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GARDEN_NAMESPACE}}
            await self._api.apply(_NAMESPACE, namespace)
        at = self._clock.now()

        def build(before: Document | None) -> Document:
            metadata = section(before or {}, "metadata")
            annotations = {**section(metadata, "annotations"), TIMESTAMP: timestamp(at)}
            metadata = {**metadata, "name": name, "namespace": GARDEN_NAMESPACE, "annotations": annotations}
            return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": dict(data)}

        await self._api.write(path, build)
        return _Credentials(parse_timestamp(timestamp(at)), is_new=True)

    def _failed(self, core: Document, error: LastError, reason: str) -> BackupReport:
        status = failed(core, error, self._clock.now())
        return BackupReport(status, reason, error.description) if "lastError" in status else BackupReport(status)


def _generated_key(bucket: Document) -> ObjectKey | None:
    """The Secret with credentials that were generated for a bucket; None without such."""
    return generated_secret_key(bucket) if section(bucket, "status").get("generatedSecretRef") else None


def _by_name(objects: Sequence[Document]) -> Mapping[str, Document]:
    return {name_of(each): each for each in objects}
