"""BackupBuckets and BackupEntries: the seed, bucket and credentials that they name.

They are stored as they were sent: what cannot be a name of an object is no reference.
"""

from collections.abc import Iterator

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.credentials_bindings import CREDENTIALS_KINDS, name_of, referred
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

GENERATED_PREFIX = "generated-bucket-"
"""Name of the Secret in the garden with credentials that an extension has made for a bucket, up to the bucket's."""


def generated_secret_key(bucket: Document) -> ObjectKey:
    """The Secret in the garden with credentials that an extension has made for a BackupBucket."""
    return ObjectKey("secret", GARDEN_NAMESPACE, f"{GENERATED_PREFIX}{section(bucket, 'metadata').get('name')}")


def is_generated(key: ObjectKey) -> bool:
    """True for a Secret with credentials that an extension has made for a BackupBucket."""
    return key.kind == "secret" and key.namespace == GARDEN_NAMESPACE and key.name.startswith(GENERATED_PREFIX)


def credentials_of_bucket(bucket: Document) -> ObjectKey | None:
    """The credentials that a BackupBucket names; None where nothing can be read."""
    return next((key for path, key in backup_references(bucket) if path == "spec.credentialsRef"), None)


def credentials_in_garden(bucket: Document) -> ObjectKey | None:
    """The credentials that stay as long as a BackupBucket names them; None of other namespaces than `garden`.

    A gardenlet writes its own bucket, and could protect any project's Secret.
    """
    credentials = credentials_of_bucket(bucket)
    return credentials if credentials is not None and credentials.namespace == GARDEN_NAMESPACE else None


def needed_by_backup(document: Document) -> ObjectKey | None:
    """The object that stays as long as a BackupBucket or BackupEntry names it: its credentials, or its bucket."""
    return bucket_of(document) if document.get("kind") == "BackupEntry" else credentials_in_garden(document)


def bucket_of(entry: Document) -> ObjectKey | None:
    """The BackupBucket of a BackupEntry; None where nothing can be read, and of other kinds."""
    if entry.get("kind") != "BackupEntry":
        return None
    return _cluster_scoped("backupbucket", section(entry, "spec").get("bucketName"))


def bucket_name(entry: Document) -> str:
    """The name of the bucket of a BackupEntry; "" where nothing can be read."""
    return name_of(section(entry, "spec").get("bucketName"))


def seed_name(backup: Document) -> str:
    """The seed that a BackupBucket or a BackupEntry is for; "" where nothing can be read."""
    return name_of(section(backup, "spec").get("seedName"))


def backup_references(document: Document) -> Iterator[tuple[str, ObjectKey]]:
    """Yield each object that a BackupBucket or BackupEntry names, behind the path of the field."""
    spec = section(document, "spec")
    if seed := _cluster_scoped("seed", spec.get("seedName")):
        yield "spec.seedName", seed
    if document.get("kind") == "BackupEntry":
        if bucket := bucket_of(document):
            yield "spec.bucketName", bucket
        return
    reference = section(spec, "credentialsRef")
    kind = str(reference.get("kind") or "Secret").lower()
    if kind in CREDENTIALS_KINDS and (credentials := referred(kind, reference, "")):
        yield "spec.credentialsRef", credentials


def backup_identity(document: Document) -> tuple[str, ObjectKey] | None:
    """The provider type of the backup of a Seed or a BackupBucket, and its WorkloadIdentity; None without one."""
    spec = section(document, "spec")
    backup = section(spec, "backup") if document.get("kind") == "Seed" else spec
    reference = section(backup, "credentialsRef")
    key = referred("workloadidentity", reference, "") if reference.get("kind") == "WorkloadIdentity" else None
    provider: object = section(spec, "provider").get("type") if backup is spec else backup.get("provider")
    return None if key is None else (str(provider or ""), key)


def _cluster_scoped(kind: str, name: object) -> ObjectKey | None:
    found = name_of(name)
    return ObjectKey(kind, "", found) if found else None
