"""BackupBuckets in the seed's API: where backups of its shoots are, which extensions make."""

from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, name_of, only_text
from gardenbus.common.api.garden.backup_references import credentials_of_bucket, generated_secret_key
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock, parse_timestamp, timestamp
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import GardenReader, StaleFencingToken, StepFailed
from gardenbus.gardenlet.domain.extension_objects.backups import (
    BUCKET_DELETED,
    BUCKET_RECONCILED,
    RENEWED_AFTER,
    begun,
    bucket_object,
    ended,
    failed,
    generated_secret,
    plan_backup,
    secret_name,
)
from gardenbus.gardenlet.domain.extension_objects.contract import (
    TIMESTAMP,
    LastError,
    deletion_patch,
    last_error,
    request_time,
    requested,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject, path_of
from gardenbus.gardenlet.domain.managed_resources.names import RECONCILE, annotations_of

_NAMESPACE = f"/api/v1/namespaces/{GARDEN_NAMESPACE}"
RECONCILE_ERROR, DELETE_ERROR = "ReconcileError", "DeleteError"
"""Reasons of Events, as in Gardener."""


class BackupReport(NamedTuple):
    """Report about a core object: a patch of its status, an Event, and a Secret that the garden is to have."""

    status: Document
    reason: str = ""
    message: str = ""
    secret: Document | None = None


class _Credentials(NamedTuple):
    """The copy of credentials in the seed: when it was written, and whether that was just now."""

    written_at: datetime | None
    is_new: bool


class SeedBackups:
    """See the module."""

    def __init__(self, api: SeedAPI, garden: GardenReader, clock: Clock) -> None:
        self._api = api
        self._garden = garden
        self._clock = clock

    async def reconcile_bucket(self, bucket: Document) -> BackupReport:
        """Have the object of a BackupBucket be there, or be gone. Raises StaleFencingToken."""
        reason = DELETE_ERROR if is_deleting(bucket) else RECONCILE_ERROR
        try:
            return await (self._delete_bucket(bucket) if is_deleting(bucket) else self._bring_bucket(bucket))
        except StaleFencingToken:
            raise
        except GardenbusError as error:
            what = f"BackupBucket {name_of(bucket)} cannot be reconciled"
            failure = error if isinstance(error, StepFailed) else self._api.failure(error, what)
            return self._failed(bucket, LastError(failure.message, failure.codes), reason)

    async def _bring_bucket(self, bucket: Document) -> BackupReport:
        wanted, now = bucket_object(bucket), self._clock.now()
        credentials = await self._copy_credentials(secret_name(bucket), await self._credentials(bucket))
        live = await self._api.get(path_of(wanted.kind, "", wanted.name))
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
            if section(await self._garden.get(key) or {}, "data") != section(wanted, "data"):
                secret = wanted
        return BackupReport(ended(bucket, BUCKET_RECONCILED, self._clock.now(), made), secret=secret)

    async def _delete_bucket(self, bucket: Document) -> BackupReport:
        path = path_of("BackupBucket", "", name_of(bucket))
        live = await self._api.get(path)
        if live is not None:
            await self._copy_credentials(secret_name(bucket), await self._credentials(bucket))
            if not is_deleting(live):
                if await self._api.patch(path, deletion_patch(request_time(self._clock.now()))) is not None:
                    await self._api.delete(path)
            elif (error := last_error(live)) is not None:
                return self._failed(bucket, error, DELETE_ERROR)
            return BackupReport(begun(bucket, self._clock.now()))
        await self._api.delete(f"{_NAMESPACE}/secrets/{secret_name(bucket)}")
        return BackupReport(ended(bucket, BUCKET_DELETED, self._clock.now()))

    async def _request(self, wanted: ExtensionObject) -> None:
        at = request_time(self._clock.now())
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        await self._api.write(path, lambda live: requested(live, wanted, RECONCILE, at))

    async def _credentials(self, bucket: Document) -> Document:
        """The data of the Secret that a bucket names. Raises StepFailed."""
        key = credentials_of_bucket(bucket)
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

    async def _copy_credentials(self, name: str, data: Document) -> _Credentials:
        """Have the copy of credentials be in the seed."""
        path = f"{_NAMESPACE}/secrets/{name}"
        live = await self._api.get(path)
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
