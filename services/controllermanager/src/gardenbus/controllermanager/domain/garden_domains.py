"""Domains of the landscape: by Secrets of the namespace `garden`, or by the Seed.

Source: Gardener's `pkg/utils/gardener/{garden,dns}.go`.
"""

from collections.abc import Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.extensions import DNSDomain

INTERNAL_DOMAIN = "internal-domain"
DEFAULT_DOMAIN = "default-domain"
"""Values of the label `gardener.cloud/role`."""

_DOMAIN = "dns.gardener.cloud/domain"
_PROVIDER = "dns.gardener.cloud/provider"


def domain_of(annotations: Mapping[str, str]) -> DNSDomain | None:
    """The domain that a Secret's annotations describe; None where they are incomplete."""
    domain, provider = annotations.get(_DOMAIN), annotations.get(_PROVIDER)
    return DNSDomain(domain, provider) if domain and provider else None


def internal_domain(seed_spec: Document, of_garden: Sequence[DNSDomain]) -> DNSDomain | None:
    """The internal domain of a seed's shoots: the Seed's own, else the landscape's."""
    own = _of_seed(section(seed_spec, "dns", "internal"))
    return own or next(iter(of_garden), None)


def default_domains(seed_spec: Document, of_garden: Sequence[DNSDomain]) -> Sequence[DNSDomain]:
    """The default domains of a seed's shoots: the Seed's own, else the landscape's."""
    own = [_of_seed(each) for each in mappings(section(seed_spec, "dns").get("defaults"))]
    return [each for each in own if each is not None] or of_garden


def _of_seed(stated: Document) -> DNSDomain | None:
    domain, provider = only_text(stated.get("domain")), only_text(stated.get("type"))
    return DNSDomain(domain, provider) if domain and provider else None
