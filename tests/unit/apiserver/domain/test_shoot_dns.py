"""ShootDNS: Gardener's own cases (`plugin/pkg/shoot/dns/admission_test.go`), with default domains of the seed."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission, Mutated
from gardenbus.apiserver.domain.plugins import shoot_dns
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit, all_related_queries
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged

ADMISSION = Admission((shoot_dns.PLUGIN,))
SEED = a_seed(spec={"dns": {"defaults": [{"domain": "example.com"}, {"domain": "example.org"}]}})
ON_SEED = ObjectKey("seed", "", SEED["metadata"]["name"])
OWN, DEFAULT = "shop.my-private-domain.com", "apollo.dev.example.com"
FIRST: Document = {"type": "aws-route53"}
FULL: Document = {"type": "aws-route53", "secretName": "key"}
OTHER: Document = {"type": "aws-route53", "secretName": "key2"}
BY_REFERENCE: Document = {**FIRST, "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key"}}
PRIMARY: Document = {"primary": True}


def related_to(seed: Document = SEED) -> RelatedObjects:
    return RelatedObjects(objects={ON_SEED: seed}, projects={"garden-dev": a_project()})


def a_placed(dns: Document | None, *, is_placed: bool = True) -> Document:
    spec: Document = {"seedName": ON_SEED.name} if is_placed else {}
    return a_shoot(spec={**spec, **({"dns": dns} if dns is not None else {})})


def mutated(shoot: Document, old: Document | None = None, seed: Document = SEED) -> Mutated:
    return ADMISSION.mutate(shoot, old, related_to(seed), user="ann")


def dns_of(dns: Document | None, old: Document | None = None, *, is_placed: bool = True, seed: Document = SEED) -> Any:
    before = None if old is None else a_placed(old, is_placed=is_placed)
    return mutated(a_placed(dns, is_placed=is_placed), before, seed).document["spec"].get("dns")


def problems(dns: Document, old: Document | None = None, *, is_placed: bool = True, seed: Document = SEED) -> set[str]:
    before = None if old is None else a_placed(old, is_placed=is_placed)
    document = mutated(a_placed(dns, is_placed=is_placed), before, seed).document
    try:
        ADMISSION.admit(document, before, related_to(seed))
    except InvalidResource as error:
        return {problem.field.removeprefix("spec.dns.") for problem in error.problems}
    return set()


@pytest.mark.parametrize(
    ("dns", "expected"),
    [
        (None, {"domain": DEFAULT}),
        ({"providers": [FULL]}, {"domain": DEFAULT, "providers": [FULL]}),
        ({"domain": DEFAULT}, {"domain": DEFAULT}),
        ({"domain": OWN, "providers": [FIRST]}, {"domain": OWN, "providers": [FIRST | PRIMARY]}),
        ({"domain": OWN, "providers": [FIRST, FULL]}, {"domain": OWN, "providers": [FIRST | PRIMARY, FULL]}),
        (
            {"domain": OWN, "providers": [OTHER, FULL | PRIMARY]},
            {"domain": OWN, "providers": [OTHER, FULL | PRIMARY]},
        ),
        ({"domain": DEFAULT, "providers": [FULL]}, {"domain": DEFAULT, "providers": [FULL]}),
        ({"providers": [{"type": "unmanaged"}]}, {"providers": [{"type": "unmanaged", "primary": True}]}),
    ],
)
def test_a_shoot_gets_domain_and_primary_provider_with_its_seed(dns: Document | None, expected: Document) -> None:
    assert dns_of(dns) == expected
    assert problems(dns or {}) == set()


def test_without_a_seed_nothing_is_settled_yet() -> None:
    given = {"domain": OWN, "providers": [FIRST, FULL, FIRST]}
    assert dns_of(given, is_placed=False) == given
    assert dns_of(None, is_placed=False) is None
    assert problems(given, is_placed=False) == set()


def test_a_seed_without_default_domains_gives_none() -> None:
    assert dns_of(None, seed=a_seed()) is None
    assert dns_of({"providers": [FULL]}, seed=a_seed()) == {"providers": [FULL]}
    assert dns_of({"domain": DEFAULT, "providers": [FULL]}, seed=a_seed())["providers"] == [FULL | PRIMARY]


@pytest.mark.parametrize(
    ("dns", "old", "expected"),
    [
        ([OTHER, FULL], [OTHER, FULL | PRIMARY], [OTHER, FULL | PRIMARY]),
        ([OTHER | PRIMARY, FULL], [OTHER, FULL | PRIMARY], [OTHER | PRIMARY, FULL]),
        ([OTHER], [FULL | PRIMARY], [OTHER]),
        ([FULL, OTHER], [FULL, OTHER], [FULL, OTHER]),
    ],
)
def test_a_manifest_that_lost_the_mark_of_the_primary_provider_gets_it_again(
    dns: list[Document], old: list[Document], expected: list[Document]
) -> None:
    found = dns_of({"domain": OWN, "providers": dns}, {"domain": OWN, "providers": old}, is_placed=False)
    assert found["providers"] == expected
    placed = dns_of({"domain": OWN, "providers": dns}, {"domain": OWN, "providers": old})
    has_primary = dns == old or any("primary" in each for each in expected)
    assert placed["providers"] == (expected if has_primary else [{**expected[0], "primary": True}, *expected[1:]])


def test_the_first_default_domain_is_that_of_a_shoot_without_one_in_any_order() -> None:
    """In Gardener the order of default domains in Secrets is their priority; those of a seed have none there either."""
    backwards = a_seed(spec={"dns": {"defaults": [{"domain": "example.org"}, {"domain": "example.com"}]}})
    assert dns_of(None, seed=backwards) == {"domain": "apollo.dev.example.org"}


def test_a_placed_shoot_without_domain_keeps_to_that_and_gets_a_primary_provider_with_one_of_its_own() -> None:
    """In Gardener its next change would give it a domain, once its seed has a default one."""
    assert dns_of(None, {"providers": [FULL]}) is None
    assert dns_of({"domain": OWN, "providers": [FIRST, FULL]}, {}) == {
        "domain": OWN,
        "providers": [FIRST | PRIMARY, FULL],
    }
    assert dns_of({"domain": DEFAULT, "providers": [FULL]}, {})["providers"] == [FULL]


STOLEN: Document = {"domain": "apollo.other-project.example.com"}
PROFILE = ObjectKey("cloudprofile", "", "aws")


@pytest.mark.parametrize(
    ("dns", "old", "rejected"),
    [
        ({"domain": DEFAULT}, None, ""),
        (STOLEN, None, "lies below its default domain"),
        ({"domain": f"x.{DEFAULT}"}, None, "lies below its default domain"),
        (STOLEN, STOLEN, ""),
        (STOLEN, {}, r"spec\.dns\.domain: .*lies below its default domain"),
        ({"domain": DEFAULT}, {}, ""),
        ({"domain": OWN}, {}, ""),
    ],
)
def test_a_domain_below_a_default_one_is_made_of_shoot_and_project(
    dns: Document, old: Document | None, rejected: str
) -> None:
    related = RelatedObjects(objects={ON_SEED: SEED, PROFILE: a_cloudprofile()}, projects={"garden-dev": a_project()})
    new, before = a_placed(dns), None if old is None else a_placed(old)
    assert (ObjectQuery(ON_SEED) in all_related_queries(new, before)) == (dns != old)
    if not rejected:
        admit(new, before, related)
        return
    with pytest.raises((Forbidden, InvalidResource), match=rejected):
        admit(new, before, related)


def test_a_shoot_is_placed_only_where_its_namespace_has_a_project_whose_name_the_domain_has() -> None:
    with pytest.raises(Forbidden, match="garden-dev belongs to no Project"):
        admit(a_placed(None), None, RelatedObjects(objects={ON_SEED: SEED, PROFILE: a_cloudprofile()}))


@pytest.mark.parametrize(
    ("dns", "old", "expected"),
    [
        ({"domain": OWN, "providers": [FIRST, FULL, {"secretName": "key"}]}, None, {"providers[2].type"}),
        ({"domain": OWN, "providers": [FIRST, FULL, FIRST]}, None, {"providers[2].credentialsRef"}),
        ({"providers": [FIRST]}, None, {"providers[0].credentialsRef"}),
        ({"domain": OWN, "providers": [FIRST, BY_REFERENCE]}, None, set[str]()),
        ({"domain": DEFAULT, "providers": [FULL | PRIMARY]}, None, {"providers[0].primary"}),
        ({"providers": [FULL | PRIMARY]}, None, {"providers[0].primary"}),
        (
            {"domain": OWN, "providers": [FIRST, FIRST | PRIMARY, FIRST]},
            {"domain": OWN, "providers": [FIRST | PRIMARY]},
            {"providers[0].credentialsRef", "providers[2].credentialsRef"},
        ),
        (
            {"domain": OWN, "providers": [FIRST | PRIMARY, FIRST]},
            {"domain": OWN, "providers": [FIRST | PRIMARY, FIRST]},
            set[str](),
        ),
    ],
)
def test_providers_without_a_function_and_a_primary_one_beside_a_default_domain_are_rejected(
    dns: Document, old: Document | None, expected: set[str]
) -> None:
    assert problems(dns, old) == expected


def test_providers_that_will_have_no_function_are_warned_of_before() -> None:
    warned = mutated(a_placed({"domain": OWN, "providers": [FIRST, FULL, FIRST]}, is_placed=False)).warnings
    assert len(warned) == 1
    assert warned[0].startswith("spec.dns.providers[2].credentialsRef: is required")


def test_a_shoot_that_is_being_deleted_is_not_rejected() -> None:
    old = a_placed({"domain": OWN, "providers": [FIRST | PRIMARY]})
    leaving = merged(old, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    changed = merged(leaving, {"spec": {"dns": {"providers": [FIRST | PRIMARY, FIRST]}}})
    ADMISSION.admit(changed, leaving, related_to())


def test_the_seed_is_read_only_where_it_decides() -> None:
    placed, unplaced = a_placed({"domain": OWN, "providers": [FULL]}), a_placed(None, is_placed=False)
    assert ObjectQuery(ON_SEED) in ADMISSION.related_queries(placed, None)
    assert ObjectQuery(ON_SEED) in ADMISSION.related_queries(placed, unplaced)
    assert ADMISSION.related_queries(placed, placed) == ADMISSION.related_queries(unplaced, None) == ()
    assert ADMISSION.related_queries(placed, a_placed({"domain": OWN})) == (ObjectQuery(ON_SEED),)


@pytest.mark.parametrize(
    ("dns", "problem"),
    [
        ({"domain": OWN, "providers": [FULL | PRIMARY, OTHER | PRIMARY]}, r"providers\[1\]\.primary: one provider"),
        ({"providers": [FULL | PRIMARY]}, r"spec\.dns\.domain: is required beside a primary provider"),
        ({"providers": [{"type": "unmanaged", "secretName": "key"}]}, r"providers\[0\]\.secretName: must not be set"),
        ({"providers": [{"secretName": "key"}]}, r"providers\[0\]\.type: is required beside secretName"),
        ({"domain": OWN, "providers": [FULL, FULL]}, r"providers\[1\]\.secretName: is there already"),
    ],
)
def test_providers_of_a_new_or_changed_dns_are_valid(dns: Document, problem: str) -> None:
    shoot = a_placed(dns, is_placed=False)
    with pytest.raises(InvalidResource, match=problem):
        validate(shoot, None)
    with pytest.raises(InvalidResource, match=problem):
        validate(shoot, a_placed({"domain": OWN}, is_placed=False))
    validate(shoot, shoot)
