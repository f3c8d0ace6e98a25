"""Rules of bindings: credentials that exist, for a provider, within Quotas.

Source: Gardener's `pkg/api/core/validation/secretbinding.go` and `pkg/apis/security/validation/credentialsbinding.go`.
"""

from gardenbus.apiserver.domain.validation.credentials import check_credentials, check_named
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document


def check_credentials_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a CredentialsBinding, in what changes."""
    if _changes(manifest, old, "credentialsRef"):
        reference = manifest.section("credentialsRef", required=True)
        if reference:
            check_credentials(reference, needs_namespace=False)
    _check_rest(manifest, old, "credentialsRef")


def check_secret_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a SecretBinding, in what changes."""
    if _changes(manifest, old, "secretRef"):
        check_named(manifest.section("secretRef", required=True))
    _check_rest(manifest, old, "secretRef")


def _check_rest(manifest: FieldCursor, old: Document | None, reference: str) -> None:
    if old is not None:
        for field in (reference, "provider"):
            manifest.same_as(old, field, "make a new binding")
        manifest.unchanged(old, "quotas", "make a new binding")
    if _changes(manifest, old, "provider"):
        manifest.section("provider").text("type", required=True)
    if _changes(manifest, old, "quotas"):
        for quota in manifest.entries("quotas"):
            check_named(quota)


def _changes(manifest: FieldCursor, old: Document | None, field: str) -> bool:
    return old is None or manifest.content.get(field) != old.get(field)
