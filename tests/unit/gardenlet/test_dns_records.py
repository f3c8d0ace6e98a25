"""DNSRecords of a shoot: which there are, in whose domain, and by whose credentials."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.domain.extension_objects.dns_records import (
    Domains,
    dns_records,
    domains,
    has_own_domains,
    record_type,
)
from gardenbus.gardenlet.domain.extension_objects.specs import ShootFacts

SEED = "aws-eu1"
INTERNAL = {"type": "route53", "domain": "example.org", "credentialsRef": {"kind": "Secret", "name": "route53"}}
DEFAULT = {"type": "clouddns", "domain": "shoots.example.com", "zone": "z"}
OWN = {"domain": "apollo.example.net", "providers": [{"type": "azure-dns", "primary": True}]}


def a_domain_secret(role: str, domain: str, **annotations: str) -> Document:
    annotations |= {"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": "designate"}
    given = {f"dns.gardener.cloud/{name}" if "/" not in name else name: value for name, value in annotations.items()}
    return {"metadata": {"name": f"of-{domain}", "labels": {"gardener.cloud/role": role}, "annotations": given}}


def records(
    spec: Document, seed_spec: Document | None = None, *secrets: Document, address: str = "203.0.113.10"
) -> Any:
    facts = ShootFacts("shoot--dev--apollo", "apollo", spec)
    found = dns_records(facts, "garden-dev", domains(SEED, seed_spec or {}, secrets), address)
    return {
        record.name: (record.spec["name"], record.spec["type"], record.spec.get("zone"), credentials)
        for record, credentials in found
    }


def test_a_seed_without_domains_has_no_records() -> None:
    assert records({}) == {}
    assert domains(SEED, {}, [a_domain_secret("monitoring", "example.org")]) == Domains(None, [])


def test_the_internal_name_has_the_project_and_says_that_it_is_internal() -> None:
    key = ObjectKey("secret", "garden", "route53")
    assert records({}, {"dns": {"internal": INTERNAL}}) == {
        "apollo-internal": ("api.apollo.dev.internal.example.org", "route53", None, key)
    }
    with_it = {**INTERNAL, "domain": "internal.example.org"}
    (found,) = records({}, {"dns": {"internal": with_it}}).values()
    assert found[0] == "api.apollo.dev.internal.example.org"


def test_domains_of_the_landscape_count_where_the_seed_has_none_of_its_own() -> None:
    secrets = (
        a_domain_secret("internal-domain", "internal.example.org", zone="z1"),
        a_domain_secret("default-domain", "example.com"),
    )
    spec: Document = {"dns": {"domain": "apollo.dev.example.com"}}
    own = f"seed-{SEED}"
    assert records(spec, {}, *secrets) == {
        "apollo-internal": (
            "api.apollo.dev.internal.example.org",
            "designate",
            "z1",
            ObjectKey("secret", own, "of-internal.example.org"),
        ),
        "apollo-external": (
            "api.apollo.dev.example.com",
            "designate",
            None,
            ObjectKey("secret", own, "of-example.com"),
        ),
    }
    of_seed: Document = {"dns": {"internal": INTERNAL, "defaults": [DEFAULT]}}
    assert has_own_domains(of_seed)
    assert not has_own_domains({"dns": {"internal": INTERNAL}})
    assert records({}, of_seed, *secrets)["apollo-internal"][1] == "route53"


def test_a_domain_of_ones_own_is_for_the_primary_provider() -> None:
    own = {"domain": "apollo.example.net"}
    provider: Document = {"type": "azure-dns", "primary": True}
    named = records({"dns": {**own, "providers": [{"type": "other"}, {**provider, "secretName": "dns"}]}})
    assert named["apollo-external"] == (
        "api.apollo.example.net",
        "azure-dns",
        None,
        ObjectKey("secret", "garden-dev", "dns"),
    )
    referred = {**provider, "credentialsRef": {"kind": "WorkloadIdentity", "name": "dns"}, "zones": {"include": ["z"]}}
    assert records({"dns": {**own, "providers": [referred]}})["apollo-external"][2:] == (
        "z",
        ObjectKey("workloadidentity", "garden-dev", "dns"),
    )
    assert records({"dns": OWN})["apollo-external"][3] is None, "those of the shoot"


@pytest.mark.parametrize("providers", [[], [{"type": "azure-dns"}]])
def test_a_domain_that_nobody_makes_records_in_is_an_error_that_names_it(providers: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"apollo\.example\.net is below no default domain: name a primary provider"):
        records({"dns": {"domain": "apollo.example.net", "providers": providers}})


@pytest.mark.parametrize(
    ("spec", "seed_spec"),
    [
        ({"dns": {"domain": "a.example.net", "providers": [{"type": "unmanaged", "primary": True}]}}, {}),
        ({}, {"dns": {"internal": {**INTERNAL, "type": "unmanaged"}}}),
        ({"hibernation": {"enabled": True}, "dns": OWN}, {"dns": {"internal": INTERNAL}}),
    ],
)
def test_what_nothing_manages_and_what_sleeps_has_no_records(spec: Document, seed_spec: Document) -> None:
    assert records(spec, seed_spec) == {}


@pytest.mark.parametrize(
    ("address", "expected"), [("203.0.113.10", "A"), ("2001:db8::1", "AAAA"), ("lb.example.org", "CNAME")]
)
def test_the_type_of_a_record_is_that_of_its_address(address: str, expected: str) -> None:
    assert record_type(address) == expected


@pytest.mark.parametrize(
    ("families", "expected"), [(None, "ipv4"), (["IPv6"], "ipv6"), (["IPv4", "IPv6"], "dual-stack")]
)
def test_a_record_says_of_which_families_it_is(families: list[str] | None, expected: str) -> None:
    spec: Document = {"networking": {"ipFamilies": families}}
    found = dns_records(
        ShootFacts("shoot--dev--apollo", "apollo", spec),
        "garden-dev",
        domains(SEED, {"dns": {"internal": INTERNAL}}, ()),
        "203.0.113.10",
    )
    assert [dict(record.annotations) for record, _ in found] == [{"dns.gardener.cloud/ip-stack": expected}]
