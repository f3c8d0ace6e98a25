"""The rules of a Shoot's DNS providers. Source: Gardener's `validateDNS` in `pkg/api/core/validation/shoot.go`."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_reference
from gardenbus.common.api.garden.named_references import CREDENTIAL_KINDS
from gardenbus.common.api.garden.shoots import UNMANAGED_DNS


def check_providers(dns: FieldCursor) -> None:
    """Note every problem of the providers of a new or changed `spec.dns`, whose fields have their types."""
    providers = dns.entries("providers")
    taken: set[tuple[object, object]] = set()
    for provider in providers:
        kind, secret = provider.content.get("type"), provider.content.get("secretName")
        if provider.content.get("credentialsRef") is not None:
            check_reference(provider.section("credentialsRef"), CREDENTIAL_KINDS)
        if kind == UNMANAGED_DNS and secret:
            provider.add_error("secretName", f"must not be set when the type is {UNMANAGED_DNS}")
        elif secret and not kind:
            provider.add_error("type", "is required beside secretName")
        elif isinstance(kind, str) and isinstance(secret, str) and kind and secret:
            if (kind, secret) in taken:
                provider.add_error("secretName", "is there already with the same type")
            taken.add((kind, secret))
    _check_primary(dns, [provider for provider in providers if provider.content.get("primary") is True])


def _check_primary(dns: FieldCursor, primaries: Sequence[FieldCursor]) -> None:
    for provider in primaries[1:]:
        provider.add_error("primary", "one provider alone is primary")
    kinds = [provider.content.get("type") or UNMANAGED_DNS for provider in primaries]
    if kinds and kinds[0] != UNMANAGED_DNS and not dns.content.get("domain"):
        dns.add_error("domain", "is required beside a primary provider; leave primary out to get one of the seed")
