"""ManagedSeed, ManagedSeedShoot and ShootManagedSeed: Gardener's own cases as tables.

Source: `plugin/pkg/managedseed/{validator,shoot}/admission_test.go`, `plugin/pkg/shoot/managedseed/admission_test.go`.
"""

from typing import Any

import pytest

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seeds import seed_template_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.admissions import admit, deletion_guards, mutate
from tests.support.builders import a_seed, a_shoot, merged

ALLOWED: set[str] = set()
DOMAIN = "foo.example.com"
HOST, SHOOT = ObjectKey("seed", "", "parent-seed"), ObjectKey("shoot", "garden", "foo")
ZONES = ["region-a", "region-b"]
GARDENLET: Document = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
TEMPLATE = "spec.gardenlet.config.seedConfig.spec."
GONE: Document = {"spec": {"provider": {"workers": []}}}
CREDENTIALS = {"apiVersion": "v1", "kind": "Secret", "name": "bar", "namespace": "garden"}


def the_shoot(**changes: Any) -> Document:
    kubernetes = {"version": "1.34.1", "verticalPodAutoscaler": {"enabled": True}}
    provider = {"type": "aws", "workers": [{"name": "a", "zones": ZONES}]}
    spec = {"dns": {"domain": DOMAIN}, "kubernetes": kubernetes, "provider": provider, "seedName": HOST.name}
    return merged(a_shoot("foo", "garden", spec=spec), changes)


def managed_seed_of(seed: Document | None = None, **changes: Any) -> Document:
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "foo", "namespace": "garden"},
        "spec": {"shoot": {"name": "foo"}, "gardenlet": {"config": {**GARDENLET, "seedConfig": {"spec": seed or {}}}}},
    }
    return merged(managed_seed, changes)


def facts(shoot: Document | None, *shoots_on: Document, holder: str = "") -> RelatedObjects:
    defaults = [{"type": "dns", "domain": "example.com", "credentialsRef": CREDENTIALS}]
    objects = {HOST: a_seed(HOST.name, spec={"dns": {"defaults": defaults}})}
    held = {SHOOT: managed_seed_of(metadata={"name": holder})} if holder else {}
    return RelatedObjects(
        objects=objects if shoot is None else {**objects, SHOOT: shoot},
        managed_seeds=held,
        shoots_on={"foo": shoots_on},
    )


def rejected(document: Document, related: RelatedObjects, old: Document | None = None) -> set[str]:
    try:
        result = mutate(document, old, related, user="ann").document
        validate(result, old)
        admit(result, old, related)
    except InvalidResource as error:
        return {each.field.removeprefix(TEMPLATE) for each in error.problems}
    return ALLOWED


@pytest.mark.parametrize(
    ("managed_seed", "shoot", "holder", "expected"),
    [
        (managed_seed_of(), the_shoot(), "", ALLOWED),
        (managed_seed_of(), the_shoot(), "foo", ALLOWED),
        (managed_seed_of(), the_shoot(), "bar", {"spec.shoot.name"}),
        (managed_seed_of(), None, "", {"spec.shoot.name"}),
        (managed_seed_of(), the_shoot(spec={"dns": None}), "", {"spec.shoot.name"}),
        (managed_seed_of(), the_shoot(spec={"addons": {"nginxIngress": {"enabled": True}}}), "", {"spec.shoot.name"}),
        (
            managed_seed_of(),
            the_shoot(spec={"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}}),
            "",
            {"spec.shoot.name"},
        ),
        (managed_seed_of(), the_shoot(**GONE), "", {"spec.shoot.name"}),
        (managed_seed_of(spec={"shoot": {"name": ""}}), the_shoot(), "", {"spec.shoot.name"}),
        (managed_seed_of(metadata={"namespace": "foo"}), the_shoot(), "", {"metadata.namespace"}),
        (
            managed_seed_of(spec={"gardenlet": {"config": {"apiVersion": "v1", "kind": "Pod"}}}),
            the_shoot(),
            "",
            {"spec.gardenlet.config.apiVersion", "spec.gardenlet.config.kind"},
        ),
    ],
)
def test_a_shoot_has_to_be_fit_for_a_seed(
    managed_seed: Document, shoot: Document | None, holder: str, expected: set[str]
) -> None:
    assert rejected(managed_seed, facts(shoot, holder=holder)) == expected


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (
            {
                "ingress": {"domain": "bar.example.com", "controller": {"kind": "nginx"}},
                "networks": {"nodes": "10.251.0.0/16", "pods": "100.97.0.0/16", "services": "100.65.0.0/16"},
                "provider": {"type": "bar", "region": "bar", "zones": ["foo", "bar"]},
            },
            {
                *("ingress.domain", "networks.nodes", "networks.pods", "networks.services"),
                *("provider.type", "provider.region", "provider.zones"),
            },
        ),
        ({"settings": {"verticalPodAutoscaler": {"enabled": True}}}, {"settings.verticalPodAutoscaler.enabled"}),
        ({"settings": {"topologyAwareRouting": {"enabled": True}}}, ALLOWED),
    ],
)
def test_what_the_template_says_of_the_cluster_is_as_the_shoot_has_it(seed: Document, expected: set[str]) -> None:
    assert rejected(managed_seed_of(seed), facts(the_shoot())) == expected


def test_feature_gates_of_the_shoot_are_not_compared_with_settings_that_nothing_reads() -> None:
    """In Gardener topologyAwareRouting needs the gate TopologyAwareHints."""
    off = {"featureGates": {"TopologyAwareHints": False}}
    components = ("kubeAPIServer", "kubeControllerManager", "kubeProxy")
    shoot = the_shoot(spec={"kubernetes": dict.fromkeys(components, off)})
    assert rejected(managed_seed_of({"settings": {"topologyAwareRouting": {"enabled": True}}}), facts(shoot)) == ALLOWED


IN_USE = a_shoot("guest", spec={"seedName": "foo"})
BELOW = merged(IN_USE, {"spec": {"dns": {"domain": "guest.another-default.com"}}})
DEFAULTS = [{"type": "route53", "domain": "old-default.com"}, {"type": "clouddns", "domain": "another-default.com"}]


@pytest.mark.parametrize(
    ("before", "after", "zones", "shoots_on", "expected"),
    [
        ({"provider": {"zones": ZONES}}, {"provider": {"zones": ZONES[1:]}}, ZONES[1:], (), ALLOWED),
        (
            {"provider": {"zones": ZONES}},
            {"provider": {"zones": ZONES[1:]}},
            ZONES[1:],
            (IN_USE,),
            {"provider.zones"},
        ),
        (
            {"provider": {"zones": ZONES}},
            {"provider": {"zones": [*ZONES, "zone-foo"]}},
            [*ZONES, "zone-bar"],
            (IN_USE,),
            {"provider.zones"},
        ),
        (
            {"dns": {"internal": {"domain": "old.internal"}}},
            {"dns": {"internal": {"domain": "new.internal"}}},
            ZONES,
            (IN_USE,),
            {"dns.internal.domain"},
        ),
        ({"dns": {"defaults": DEFAULTS}}, {"dns": {"defaults": DEFAULTS[:1]}}, ZONES, (BELOW,), {"dns.defaults"}),
        ({"dns": {"defaults": DEFAULTS}}, {"dns": {"defaults": DEFAULTS[1:]}}, ZONES, (BELOW,), ALLOWED),
    ],
)
def test_what_shoots_on_the_seed_use_stays_in_its_template(
    before: Document, after: Document, zones: list[str], shoots_on: tuple[Document, ...], expected: set[str]
) -> None:
    shoot = the_shoot(spec={"provider": {"workers": [{"name": "a", "zones": zones}]}})
    old = mutate(managed_seed_of(before), None, facts(the_shoot()), user="ann").document
    changed = merged(old, {"spec": {"gardenlet": {"config": {"seedConfig": {"spec": after}}}}})
    assert rejected(changed, facts(shoot, *shoots_on), old) == expected


def test_of_zones_that_never_were_the_shoots_only_an_added_one_is_refused() -> None:
    old = managed_seed_of({"provider": {"zones": ["zone-foo", "zone-bar"]}})
    new = managed_seed_of({"provider": {"zones": ["zone-foo", "zone-bar", "zone-foobar"]}})
    with pytest.raises(InvalidResource, match="stands in zone-foobar:"):
        admit(new, old, facts(the_shoot()))
    assert rejected(merged(old, {"metadata": {"labels": {"a": "b"}}}), facts(the_shoot()), old) == ALLOWED


def template_for(shoot: Document, seed: Document | None = None) -> Document:
    mutated = mutate(managed_seed_of(seed), None, facts(shoot), user="ann").document
    return section(seed_template_of(mutated), "spec")


def test_a_template_is_filled_in_from_the_shoot() -> None:
    networks = {"nodes": "10.0.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
    assert template_for(the_shoot(), {"backup": {}}) == {
        "backup": {"provider": "aws"},
        "dns": {"provider": {"type": "dns", "credentialsRef": CREDENTIALS}},
        "ingress": {"domain": f"ingress.{DOMAIN}", "controller": {"kind": "nginx"}},
        "networks": networks,
        "provider": {"type": "aws", "region": "eu-west-1", "zones": ZONES},
        "settings": {"verticalPodAutoscaler": {"enabled": False}},
    }


@pytest.mark.parametrize(
    ("own", "binding", "expected"),
    [
        ({"credentialsRef": {**CREDENTIALS, "namespace": None}}, {}, {"credentialsRef": CREDENTIALS}),
        (
            {
                "credentialsRef": {
                    "apiVersion": "security.gardener.cloud/v1alpha1",
                    "kind": "WorkloadIdentity",
                    "name": "i",
                }
            },
            {},
            {
                "credentialsRef": {
                    "apiVersion": "security.gardener.cloud/v1alpha1",
                    "kind": "WorkloadIdentity",
                    "name": "i",
                    "namespace": "garden",
                }
            },
        ),
        ({}, {"secretBindingName": "sb"}, {}),  # in Gardener the credentials of the binding
        ({}, {"credentialsBindingName": "cb"}, {}),
    ],
)
def test_the_primary_provider_of_the_shoot_is_that_of_the_seed(
    own: Document, binding: Document, expected: Document
) -> None:
    provider = merged({"type": "type", "primary": True}, merged(own, {}))
    shoot = the_shoot(spec={"dns": {"providers": [provider]}, **binding})
    assert template_for(shoot)["dns"]["provider"] == {"type": "type", **expected}


def test_a_domain_that_is_nobodys_gives_the_seed_no_provider() -> None:
    """In Gardener such a shoot is refused."""
    shoot = the_shoot(spec={"dns": {"domain": "foo.elsewhere.org"}})
    assert "dns" not in template_for(shoot)
    assert rejected(managed_seed_of(), facts(shoot)) == ALLOWED


def test_the_labels_name_the_seed_of_the_shoot_and_no_other() -> None:
    stale = managed_seed_of(metadata={"labels": {"name.seed.gardener.cloud/foo": "true", "mine": "1"}})
    labels = mutate(stale, None, facts(the_shoot()), user="ann").document["metadata"]["labels"]
    assert labels == {"name.seed.gardener.cloud/parent-seed": "true", "mine": "1"}


@pytest.mark.parametrize("name", ["foo", "bar"])
def test_a_managed_seed_is_deleted_only_without_shoots_on_its_seed(name: str) -> None:
    (guard,) = deletion_guards(managed_seed_of(metadata={"name": name}))
    assert (guard.kind, guard.name) == ("usage", name)


POOLS = [{"name": "a", "zones": ["1", "2", "3"]}, {"name": "b", "zones": ["4", "5", "6"]}]
SIX = ["1", "2", "3", "4", "5", "6"]


def pools(*zones: str) -> Document:
    return {"provider": {"workers": [{"name": "a", "zones": list(zones)}, POOLS[1]]}}


@pytest.mark.parametrize(
    ("change", "registered", "expected"),
    [
        ({}, SIX, ALLOWED),
        ({"addons": {"nginxIngress": {"enabled": True}}}, SIX, {"spec.addons.nginxIngress.enabled"}),
        (
            {"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}},
            SIX,
            {"spec.kubernetes.verticalPodAutoscaler.enabled"},
        ),
        ({"networking": {"nodes": "10.181.0.0/16"}}, SIX, {"spec.networking.nodes"}),
        (pools("new"), SIX, {"spec.provider.workers"}),
        ({}, ["zone-a", "zone-b", "2"], ALLOWED),
        (pools("new"), SIX[3:], ALLOWED),
        (pools("1", "2", "3", "new"), SIX[3:], ALLOWED),
        (pools("new"), [], ALLOWED),  # a template without zones; without a template Gardener refuses any change
    ],
)
def test_a_shoot_keeps_what_the_managed_seed_on_it_needs(
    change: Document, registered: list[str], expected: set[str]
) -> None:
    old = merged(the_shoot(), {"spec": {"seedName": None, "provider": {"workers": POOLS}}})
    on_it = {SHOOT: managed_seed_of({"provider": {"zones": registered}})}
    related = RelatedObjects(managed_seeds=on_it)
    new = merged(old, {"spec": change})
    found = ALLOWED
    try:
        admit(new, old, related)
    except InvalidResource as error:
        found = {each.field for each in error.problems}
    assert found == expected


@pytest.mark.parametrize("name", ["foo", "bar"])
def test_a_shoot_is_deleted_only_without_a_managed_seed_on_it(name: str) -> None:
    (guard,) = deletion_guards(a_shoot(name, "garden"))
    assert (guard.kind, guard.name) == ("references", ObjectKey("shoot", "garden", name).stored)
