"""DNSRecords of a shoot: the names of its API server, in the domain of the landscape and in its own.

Source: Gardener's `pkg/gardenlet/operation/botanist/dnsrecord.go` and `pkg/utils/gardener/{dns,shoot}.go`.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.domains import (
    DEFAULT_DOMAIN,
    INTERNAL_DOMAIN,
    default_domain_of,
    default_domains,
    domain_of,
    internal_domain,
    referred_credentials,
)
from gardenbus.common.api.garden.extensions import UNMANAGED, DNSDomain
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.keys import ObjectKey, seed_namespace
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject
from gardenbus.gardenlet.domain.extension_objects.specs import ShootFacts

INTERNAL, EXTERNAL = "internal", "external"
_IP_STACK = "dns.gardener.cloud/ip-stack"
_ROLE = "gardener.cloud/role"
_RECORD_ROLE = "role"
_IP_STACKS: Mapping[tuple[str, ...], str] = {("IPv4",): "ipv4", ("IPv6",): "ipv6"}
_DUAL_STACK = "dual-stack"
_TTL_SECONDS = 120
_INTERNAL_PART = "internal"


class NamedRecord(NamedTuple):
    """A DNSRecord, and the object with the credentials for it; None where they are those of the shoot."""

    record: ExtensionObject
    credentials: ObjectKey | None


class Domains(NamedTuple):
    """Domains for the shoots of a seed."""

    internal: DNSDomain | None
    defaults: Sequence[DNSDomain]


def domains(seed: str, seed_spec: Document, secrets: Iterable[Document]) -> Domains:
    """The domains for a seed's shoots: its own, else those of the landscape by Secrets in the seed's namespace."""
    found: dict[str, list[DNSDomain]] = {INTERNAL_DOMAIN: [], DEFAULT_DOMAIN: []}
    for secret in secrets:
        metadata = section(secret, "metadata")
        role = only_text(section(metadata, "labels").get(_ROLE))
        key = ObjectKey("secret", seed_namespace(seed), only_text(metadata.get("name")))
        if role in found and (domain := domain_of(section(metadata, "annotations"), key)) is not None:
            found[role].append(domain)
    return Domains(
        internal_domain(seed_spec, found[INTERNAL_DOMAIN]), default_domains(seed_spec, found[DEFAULT_DOMAIN])
    )


def has_own_domains(seed_spec: Document) -> bool:
    """True if a Seed names both kinds of domains, so that those of the landscape are no matter."""
    return internal_domain(seed_spec, ()) is not None and bool(default_domains(seed_spec, ()))


def dns_records(facts: ShootFacts, namespace: str, of_seed: Domains, address: str) -> Sequence[NamedRecord]:
    """The DNSRecords of a shoot in a namespace of the garden; none while it sleeps. `address`: of its API server.

    Raises ValueError for a domain that nobody can make records in.
    """
    if is_hibernation_enabled(facts.spec):
        return ()
    project = namespace.removeprefix("garden-")
    records: list[NamedRecord] = []
    if (internal := of_seed.internal) is not None and internal.provider != UNMANAGED:
        middle = "" if _INTERNAL_PART in internal.domain else f"{_INTERNAL_PART}."
        name = f"{facts.name}.{project}.{middle}{internal.domain}"
        records.append(_record(facts, INTERNAL, internal._replace(domain=name), address))
    external = _external_domain(facts.spec, namespace, of_seed.defaults)
    if external is not None and external.provider != UNMANAGED:
        records.append(_record(facts, EXTERNAL, external, address))
    return records


def _external_domain(spec: Document, namespace: str, defaults: Sequence[DNSDomain]) -> DNSDomain | None:
    """The domain of a shoot, and who makes records in it; no credentials where those of the shoot are meant."""
    dns = section(spec, "dns")
    domain = only_text(dns.get("domain"))
    if not domain:
        return None
    if (default := default_domain_of(domain, defaults)) is not None:
        return default._replace(domain=domain)
    provider = next((each for each in mappings(dns.get("providers")) if each.get("primary") is True), None)
    if provider is None:
        raise ValueError(f"spec.dns.domain {domain} is below no default domain: name a primary provider of it")
    reference = section(provider, "credentialsRef") or {"name": provider.get("secretName")}
    included: list[object] = section(provider, "zones").get("include") or []
    zone = only_text(included[0]) if len(included) == 1 else ""
    return DNSDomain(domain, only_text(provider.get("type")), zone, referred_credentials(reference, namespace))


def _record(facts: ShootFacts, purpose: str, domain: DNSDomain, address: str) -> NamedRecord:
    name = f"{facts.name}-{purpose}"
    spec: Document = {
        "type": domain.provider,
        "secretRef": {"name": f"dnsrecord-{name}", "namespace": facts.namespace},
        "name": f"api.{domain.domain}",
        "recordType": record_type(address),
        "values": [address],
        "ttl": _TTL_SECONDS,
        **({"zone": domain.zone} if domain.zone else {}),
    }
    families: list[str] = section(facts.spec, "networking").get("ipFamilies") or ["IPv4"]
    return NamedRecord(
        ExtensionObject(
            "DNSRecord",
            facts.namespace,
            name,
            spec,
            labels={_RECORD_ROLE: purpose, _ROLE: "controlplane"},
            annotations={_IP_STACK: _IP_STACKS.get(tuple(families), _DUAL_STACK)},
        ),
        domain.credentials,
    )


def record_type(address: str) -> str:
    """The type of a record that leads to an address: A, AAAA, or CNAME to a host name."""
    try:
        return "AAAA" if ip_address(address).version == 6 else "A"  # noqa: PLR2004 - a version of the protocol
    except ValueError:
        return "CNAME"
