"""Domains of the landscape: by Secrets of the namespace `garden`, or by the Seed.

Source: Gardener's `pkg/utils/gardener/{garden,dns,shoot}.go`.
"""

from collections.abc import Iterable, Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.extensions import DNSDomain
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

INTERNAL_DOMAIN = "internal-domain"
DEFAULT_DOMAIN = "default-domain"
"""Values of the label `gardener.cloud/role`."""

_DOMAIN = "dns.gardener.cloud/domain"
_PROVIDER = "dns.gardener.cloud/provider"
_ZONE = "dns.gardener.cloud/zone"


def domain_of(annotations: Mapping[str, str], credentials: ObjectKey | None = None) -> DNSDomain | None:
    """The domain that the annotations of a Secret, `credentials`, describe; None where they are incomplete."""
    domain, provider = annotations.get(_DOMAIN), annotations.get(_PROVIDER)
    return DNSDomain(domain, provider, annotations.get(_ZONE, ""), credentials) if domain and provider else None


def internal_domain(seed_spec: Document, of_garden: Sequence[DNSDomain]) -> DNSDomain | None:
    """The internal domain of a seed's shoots: the Seed's own, else the landscape's."""
    own = _of_seed(section(seed_spec, "dns", "internal"))
    return own or next(iter(of_garden), None)


def default_domains(seed_spec: Document, of_garden: Sequence[DNSDomain]) -> Sequence[DNSDomain]:
    """The default domains of a seed's shoots: the Seed's own, else the landscape's."""
    own = [_of_seed(each) for each in mappings(section(seed_spec, "dns").get("defaults"))]
    return [each for each in own if each is not None] or of_garden


def default_domain_of(domain: str, defaults: Iterable[DNSDomain]) -> DNSDomain | None:
    """The default domain that a shoot's domain is below; None for a domain of its own."""
    return next((each for each in defaults if domain.endswith(f".{each.domain}")), None)


def referred_credentials(reference: Document, namespace: str) -> ObjectKey | None:
    """The object with credentials that a reference names; None for an empty one."""
    kind, name = only_text(reference.get("kind")) or "Secret", only_text(reference.get("name"))
    return ObjectKey(kind.lower(), only_text(reference.get("namespace")) or namespace, name) if name else None


def _of_seed(stated: Document) -> DNSDomain | None:
    domain, provider = only_text(stated.get("domain")), only_text(stated.get("type"))
    if not domain or not provider:
        return None
    credentials = referred_credentials(section(stated, "credentialsRef"), GARDEN_NAMESPACE)
    return DNSDomain(domain, provider, only_text(stated.get("zone")), credentials)
