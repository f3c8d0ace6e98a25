"""The rules of a Shoot's DNS providers. Source: Gardener's `validateDNS` in `pkg/api/core/validation/shoot.go`."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import subdomain_problem
from gardenbus.apiserver.domain.validation.shared import check_reference
from gardenbus.common.api.garden.expirable_versions import Numbers
from gardenbus.common.api.garden.named_references import CREDENTIAL_KINDS
from gardenbus.common.api.garden.shoots import UNMANAGED_DNS

_SECRET = ("v1", "Secret")
_WITHOUT_SECRET_NAMES = (1, 35)


def check_providers(dns: FieldCursor, version: Numbers) -> None:
    """Note every problem of the providers of a new or changed `spec.dns`, whose fields have their types.

    Credentials are named by `credentialsRef`; a Secret also, or alone, by `secretName`, before Kubernetes 1.35.
    """
    providers = dns.entries("providers")
    taken: set[tuple[object, ...]] = set()
    for provider in providers:
        field = "credentialsRef" if provider.content.get("credentialsRef") is not None else "secretName"
        _check_credentials(provider, version)
        kind, credentials = provider.content.get("type"), _credentials_of(provider)
        if kind == UNMANAGED_DNS and credentials:
            provider.add_error(field, f"must not be set when the type is {UNMANAGED_DNS}")
        elif credentials and not kind:
            provider.add_error("type", f"is required beside {field}")
        elif isinstance(kind, str) and kind and credentials:
            if (kind, *credentials) in taken:
                provider.add_error(field, "is there already with the same type")
            taken.add((kind, *credentials))
    _check_primary(dns, [provider for provider in providers if provider.content.get("primary") is True])
    _check_additional(providers)


def _check_credentials(provider: FieldCursor, version: Numbers) -> None:
    """Note names that no object could have, and two fields that name different ones."""
    secret, reference = provider.content.get("secretName"), provider.section("credentialsRef")
    if not reference:
        provider.text("secretName", filled=True, rule=subdomain_problem)
        return
    check_reference(reference, CREDENTIAL_KINDS)
    reference.text("name", rule=subdomain_problem)
    if not secret or version[:2] >= _WITHOUT_SECRET_NAMES:
        return
    if _kind_of(reference) != _SECRET:
        provider.add_error("secretName", "must be left out where credentialsRef names no Secret")
    elif secret != reference.content.get("name"):
        provider.add_error("secretName", "must name the Secret of credentialsRef, or be left out")


def _credentials_of(provider: FieldCursor) -> tuple[object, ...]:
    """Kind and name of the credentials of a provider; () where there are none."""
    if reference := provider.section("credentialsRef"):
        return (*_kind_of(reference), str(reference.content.get("name")))
    secret = provider.content.get("secretName")
    return (*_SECRET, secret) if isinstance(secret, str) and secret else ()


def _kind_of(reference: FieldCursor) -> tuple[str, str]:
    return str(reference.content.get("apiVersion")), str(reference.content.get("kind"))


def _check_additional(providers: Sequence[FieldCursor]) -> None:
    """Note providers without credentials beside the primary one, which is the first where none is called so."""
    rest = [provider for provider in providers if provider.content.get("primary") is not True]
    if len(rest) == len(providers):
        rest = rest[1:]
    for provider in rest:
        if not _credentials_of(provider):
            provider.add_error("credentialsRef", "is needed: a provider that is not primary does nothing without")


def _check_primary(dns: FieldCursor, primaries: Sequence[FieldCursor]) -> None:
    for provider in primaries[1:]:
        provider.add_error("primary", "one provider alone is primary")
    kinds = [provider.content.get("type") or UNMANAGED_DNS for provider in primaries]
    if kinds and kinds[0] != UNMANAGED_DNS and not dns.content.get("domain"):
        dns.add_error("domain", "is required beside a primary provider; leave primary out to get one of the seed")
