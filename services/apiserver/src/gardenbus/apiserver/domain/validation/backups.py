"""Rules of BackupBuckets and BackupEntries: where backups are, and whose they are.

Source: Gardener's `pkg/api/core/validation/backupbucket.go` and `backupentry.go`.
"""

from gardenbus.apiserver.domain.validation.credentials import check_credentials
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import label_problem
from gardenbus.apiserver.domain.validation.stored_problems import check_new, has_spec
from gardenbus.common.api.document import Document, section

_SHOOT = ("core.gardener.cloud/v1beta1", "Shoot")


def check_bucket(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a BackupBucket; its provider and seed stay."""
    spec, before = manifest.section("spec", required=has_spec(old)), section(old or {}, "spec")
    if old is not None and spec:
        for field in ("provider", "seedName"):
            spec.unchanged(before, field, "make a new bucket")
    check_new(spec, before, _check_bucket)


def _check_bucket(spec: FieldCursor) -> None:
    provider = spec.section("provider", required=True)
    for field in ("type", "region"):
        provider.text(field, required=True)
    check_credentials(spec.section("credentialsRef", required=True))
    _check_home(spec)


def check_entry(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a BackupEntry; a shoot that it belongs to is of its namespace."""
    spec, before = manifest.section("spec", required=has_spec(old)), section(old or {}, "spec")
    check_new(spec, before, _check_entry)
    if spec.has("seedName"):
        return
    namespace, own = spec.section("shootRef").content.get("namespace"), section(manifest.content, "metadata")
    if namespace and namespace != own.get("namespace") and namespace != section(before, "shootRef").get("namespace"):
        spec.add_error("shootRef.namespace", "must be the namespace of the BackupEntry")


def _check_entry(spec: FieldCursor) -> None:
    spec.text("bucketName", required=True)
    _check_home(spec)


def _check_home(spec: FieldCursor) -> None:
    """Backups are made for a seed, or for a shoot that hosts itself."""
    spec.text("seedName", filled=True, rule=label_problem)
    if not spec:
        return
    if spec.has("seedName") == spec.has("shootRef"):
        spec.add_error("seedName", "is needed, or shootRef of a shoot that hosts itself: state one of them")
        return
    shoot = spec.section("shootRef")
    for field, value in zip(("apiVersion", "kind"), _SHOOT, strict=True):
        shoot.choice(field, (value,), required=True)
    for field in ("name", "namespace"):
        shoot.text(field, required=True)
