"""SeedValidator, SeedMutator and BackupBucketValidator: Gardener's own cases as tables.

Source: `plugin/pkg/seed/{validator,mutator}/admission_test.go`, `plugin/pkg/backupbucket/validator/admission_test.go`.
"""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import seed_validator
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import deletion_guards, mutate
from tests.support.builders import CORE, a_seed, a_shoot, merged

CHAIN = Admission([seed_validator.PLUGIN, seed_validator.BUCKET_PLUGIN])
ALLOWED: set[str] = set()
IDENTITY = ObjectKey("workloadidentity", "garden-dev", "identity")
SECURITY = "security.gardener.cloud/v1alpha1"
CREDENTIALS: Document = {
    "apiVersion": SECURITY,
    "kind": "WorkloadIdentity",
    "namespace": "garden-dev",
    "name": "identity",
}
PLAIN = a_shoot(spec={"seedName": "aws-eu1"})


def guest(domain: str) -> Document:
    return merged(PLAIN, {"spec": {"dns": {"domain": domain}}})


def defaults(*domains: tuple[str, str]) -> Document:
    return {"dns": {"defaults": [{"type": kind, "domain": domain} for kind, domain in domains]}}


ONE, TWO, NEW = ("aws-route53", "example.com"), ("gcp-clouddns", "test.com"), ("azure-dns", "new.com")
INTERNAL: tuple[Document, ...] = (
    {"dns": {"internal": {"domain": "foo.bar"}}},
    {"dns": {"internal": {"domain": "bar.foo"}}},
)


def zones(*names: str) -> Document:
    return {"provider": {"zones": list(names)}}


@pytest.mark.parametrize(
    ("before", "after", "shoots_on", "rejected"),
    [
        (zones("1", "2"), zones("2"), (), ALLOWED),
        (zones("1", "2"), zones("2"), (PLAIN,), {"spec.provider.zones"}),
        (*INTERNAL, (), ALLOWED),
        (*INTERNAL, (PLAIN,), {"spec.dns.internal.domain"}),
        (defaults(ONE, TWO), defaults(ONE, NEW), (), ALLOWED),
        (defaults(ONE, TWO), defaults(ONE, NEW), (PLAIN,), ALLOWED),
        (defaults(ONE, TWO), defaults(ONE), (), ALLOWED),
        (defaults(ONE, TWO), defaults(ONE), (guest("my-shoot.unused.com"),), ALLOWED),
        (defaults(ONE, TWO), defaults(ONE), (guest("my-shoot.test.com"),), {"spec.dns.defaults"}),
        (
            defaults(ONE, TWO),
            defaults(("cloudflare", "example.com"), TWO),
            (guest("my-shoot.other.com"), guest("my-shoot.example.com")),
            ALLOWED,
        ),
    ],
)
def test_a_seed_keeps_what_the_shoots_on_it_use(
    before: Document, after: Document, shoots_on: tuple[Document, ...], rejected: set[str]
) -> None:
    old, new = a_seed(spec=before), a_seed(spec=after)
    found = ALLOWED
    try:
        CHAIN.admit(new, old, RelatedObjects(shoots_on={"aws-eu1": shoots_on}))
    except InvalidResource as error:
        found = {each.field for each in error.problems}
    assert found == rejected


def test_a_seed_is_deleted_without_shoots_whatever_buckets_name_it() -> None:
    """Those that move away count: the store keeps them in the usage of both seeds."""
    assert [(guard.kind, guard.name) for guard in deletion_guards(a_seed())] == [("usage", "aws-eu1")]


def backed_up(kind: str, provider: str, credentials: Document = CREDENTIALS) -> Document:
    if kind == "Seed":
        return a_seed(spec={"backup": {"provider": provider, "credentialsRef": credentials}})
    spec: Document = {"provider": {"type": provider}, "credentialsRef": credentials}
    return {"apiVersion": CORE, "kind": kind, "metadata": {"name": "bucket"}, "spec": spec}


def facts(**spec: Any) -> RelatedObjects:
    identity = {"apiVersion": SECURITY, "kind": "WorkloadIdentity", "metadata": {"name": "identity"}, "spec": spec}
    return RelatedObjects(objects={IDENTITY: identity})


@pytest.mark.parametrize("kind", ["Seed", "BackupBucket"])
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(("provider", "is_rejected"), [("provider", False), ("another", True)])
def test_a_workload_identity_of_backups_is_for_their_provider(
    kind: str, is_new: bool, provider: str, is_rejected: bool
) -> None:
    document, related = backed_up(kind, provider), facts(targetSystem={"type": "provider"})
    old = None if is_new else backed_up(kind, "before")
    assert CHAIN.related_queries(document, old) == (ObjectQuery(IDENTITY),)
    if not is_rejected:
        CHAIN.admit(document, old, related)
        return
    with pytest.raises(Forbidden, match="is for provider, and the backup is at another"):
        CHAIN.admit(document, old, related)


@pytest.mark.parametrize("kind", ["Seed", "BackupBucket"])
def test_other_credentials_and_unchanged_ones_are_not_looked_at(kind: str) -> None:
    secret = backed_up(kind, "x", {**CREDENTIALS, "apiVersion": "v1", "kind": "Secret"})
    unchanged = backed_up(kind, "x")
    assert CHAIN.related_queries(secret, None) == CHAIN.related_queries(unchanged, unchanged) == ()
    CHAIN.admit(secret, None, RelatedObjects())
    CHAIN.admit(unchanged, None, RelatedObjects())  # ResourceReferenceManager decides what has to be there


@pytest.mark.parametrize("old", [None, a_seed()])
@pytest.mark.parametrize("stale", [{}, {"name.seed.gardener.cloud/foo": "true"}])
def test_a_seed_has_the_label_of_its_own_name_alone(old: Document | None, stale: dict[str, str]) -> None:
    """In Gardener also that of the seed which its shoot is on, as its ManagedSeed has here."""
    seed = a_seed(metadata={"labels": {"mine": "1", **stale}})
    labels = mutate(seed, old, RelatedObjects(), user="ann").document["metadata"]["labels"]
    assert labels["mine"] == "1"
    assert {name for name in labels if name.startswith("name.seed.")} == {"name.seed.gardener.cloud/aws-eu1"}


def test_a_seed_with_shoots_is_rejected_in_words_that_an_example_of_a_shoot_can_follow():
    (guard,) = seed_validator.deletion_guards(a_seed("earth"))

    assert (guard.kind, guard.name) == ("usage", "earth")
    assert guard.message.endswith(": shoots are scheduled on the seed")  # the store adds "(1, for example lab/apollo)"
