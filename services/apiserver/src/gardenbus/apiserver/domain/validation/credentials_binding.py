"""Rules of bindings: credentials that exist, for a provider, within Quotas.

Source: Gardener's `pkg/api/core/validation/secretbinding.go` and `pkg/apis/security/validation/credentialsbinding.go`.
"""

from collections.abc import Mapping
from typing import Any

from gardenbus.apiserver.domain.validation.credentials import check_credentials, check_named
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings


def check_credentials_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a CredentialsBinding, in what changes."""
    _check_update(manifest, old, "credentialsRef")
    if _changes(manifest, old, "credentialsRef"):
        reference = manifest.section("credentialsRef", required=True)
        if reference:
            check_credentials(reference, needs_namespace=False)
    _check_rest(manifest, old)


def check_secret_binding(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a SecretBinding, in what changes."""
    _check_update(manifest, old, "secretRef")
    if _changes(manifest, old, "secretRef"):
        check_named(manifest.section("secretRef", required=True))
    _check_rest(manifest, old)


def _check_update(manifest: FieldCursor, old: Document | None, reference: str) -> None:
    if old is None:
        return
    named, before = (_with_namespaces(content, reference) for content in (manifest.content, old))
    if named[reference] != before[reference]:
        manifest.same_as(old, reference, "make a new binding")
    if named["quotas"] != before["quotas"]:
        manifest.unchanged(old, "quotas", "make a new binding")
    manifest.same_as(old, "provider", "make a new binding")


def _check_rest(manifest: FieldCursor, old: Document | None) -> None:
    if _changes(manifest, old, "provider"):
        manifest.section("provider").text("type", required=True)
    if _changes(manifest, old, "quotas"):
        for quota in manifest.entries("quotas"):
            check_named(quota)


def _with_namespaces(binding: Mapping[str, Any], reference: str) -> Document:
    """The references of a binding; a namespace that is left out is its own."""
    own = section(binding, "metadata").get("namespace")
    named = [section(binding, reference), *mappings(binding.get("quotas"))]
    stated = [{field: value for field, value in each.items() if value not in (None, "")} for each in named]
    first, *others = ({"namespace": own, **each} for each in stated)
    return {reference: first, "quotas": others}


def _changes(manifest: FieldCursor, old: Document | None, field: str) -> bool:
    return old is None or manifest.content.get(field) != old.get(field)
