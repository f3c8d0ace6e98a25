"""Rules of bindings: credentials that exist, for a provider, within Quotas.

Source: Gardener's `pkg/api/core/validation/secretbinding.go` and `pkg/apis/security/validation/credentialsbinding.go`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_reference
from gardenbus.common.api.document import Document

CREDENTIALS = (
    ("v1", "Secret"),
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
    ("core.gardener.cloud/v1beta1", "InternalSecret"),
)


def check_credentials_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a CredentialsBinding, in what changes."""
    if _changes(manifest, old, "credentialsRef"):
        reference = manifest.section("credentialsRef", required=True)
        if reference:
            check_reference(reference, CREDENTIALS)
    _check_rest(manifest, old, "credentialsRef")


def check_secret_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a SecretBinding, in what changes."""
    if _changes(manifest, old, "secretRef"):
        manifest.section("secretRef", required=True).text("name", required=True)
    _check_rest(manifest, old, "secretRef")


def _check_rest(manifest: FieldCursor, old: Document | None, reference: str) -> None:
    if old is not None:
        for field in (reference, "provider"):
            manifest.same_as(old, field, "make a new binding")
        manifest.unchanged(old, "quotas", "make a new binding")
    if _changes(manifest, old, "quotas"):
        for quota in manifest.entries("quotas"):
            quota.text("name", required=True)


def _changes(manifest: FieldCursor, old: Document | None, field: str) -> bool:
    return old is None or manifest.content.get(field) != old.get(field)
