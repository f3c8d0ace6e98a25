"""What a set's templates become."""

from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seed_sets import (
    ordinal_of,
    replica_managed_seed,
    replica_name,
    replica_shoot,
    revision_hash,
    template_seed,
    templates_of,
    with_templates,
)
from gardenbus.common.api.garden.seed_management import REVISION_LABEL
from gardenbus.common.api.garden.seeds import document_is_ready
from tests.support.builders import a_shoot, merged


def a_set(**changes: Any) -> Document:
    managed_seed_set: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeedSet",
        "metadata": {"name": "crowd", "namespace": "garden", "uid": "uid-of-set"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"set": "crowd"}},
            "template": {
                "metadata": {"labels": {"set": "crowd"}, "annotations": {"note": "grown"}},
                "spec": {
                    "gardenlet": {
                        "config": {
                            "resources": {"capacity": {"shoots": 10}, "reserved": {"shoots": "2"}},
                            "seedConfig": {
                                "metadata": {"labels": {"set": "crowd"}},
                                "spec": {"ingress": {"domain": "replica-name.ingress.example.com"}},
                            },
                        }
                    }
                },
            },
            "shootTemplate": {
                "metadata": {"labels": {"set": "crowd"}},
                "spec": merged(a_shoot()["spec"], {"dns": {"domain": "replica-name.example.com"}}),
            },
        },
    }
    return merged(managed_seed_set, changes)


def test_a_replica_is_called_as_its_set_and_its_ordinal():
    assert replica_name(a_set(), 7) == "crowd-7"
    assert ordinal_of("crowd-7") == 7
    assert ordinal_of("crowd-x7") == -1
    assert ordinal_of("crowd") == -1


def test_the_shoot_of_a_replica_has_the_templates_content_and_its_own_domain():
    managed_seed_set = a_set()

    shoot = replica_shoot(managed_seed_set, "crowd-3", revision="abc")

    assert (shoot["kind"], shoot["metadata"]["name"], shoot["metadata"]["namespace"]) == ("Shoot", "crowd-3", "garden")
    assert shoot["spec"]["dns"]["domain"] == "crowd-3.example.com"
    assert shoot["metadata"]["labels"] == {"set": "crowd", REVISION_LABEL: "abc"}
    (owner,) = shoot["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("ManagedSeedSet", "uid-of-set", True)
    assert managed_seed_set == a_set(), "the templates stay as they are"


def test_the_managed_seed_of_a_replica_stands_on_its_shoot_and_has_its_own_ingress():
    managed_seed = replica_managed_seed(a_set(), "crowd-3", revision="abc")

    assert managed_seed["spec"]["shoot"] == {"name": "crowd-3"}
    assert managed_seed["metadata"]["annotations"] == {"note": "grown"}
    seed_config = managed_seed["spec"]["gardenlet"]["config"]["seedConfig"]
    assert seed_config["spec"]["ingress"]["domain"] == "crowd-3.ingress.example.com"
    assert seed_config["metadata"]["labels"] == {"set": "crowd"}


def test_the_name_is_also_put_where_older_manifests_have_their_ingress_and_into_seed_templates():
    template = {
        "gardenlet": None,
        "seedTemplate": {"spec": {"dns": {"ingress": {"domain": "replica-name.in.example.com"}}}},
    }

    managed_seed = replica_managed_seed(a_set(spec={"template": {"spec": template}}), "crowd-3")

    assert managed_seed["spec"]["seedTemplate"]["spec"]["dns"]["ingress"]["domain"] == "crowd-3.in.example.com"


def test_a_revision_is_named_after_the_templates_alone():
    one, other = a_set(), a_set(spec={"shootTemplate": {"spec": {"purpose": "production"}}})

    assert revision_hash(templates_of(one)) == revision_hash(templates_of(a_set(spec={"replicas": 9})))
    assert revision_hash(templates_of(one)) != revision_hash(templates_of(other))
    assert revision_hash(templates_of(one)) != revision_hash(templates_of(one), 1)
    assert templates_of(with_templates(other, templates_of(one))) == templates_of(one)


def test_an_unstated_revision_is_that_of_the_templates():
    shoot = replica_shoot(a_set(), "crowd-3")

    assert shoot["metadata"]["labels"][REVISION_LABEL] == revision_hash(templates_of(a_set()))


def test_the_seed_to_come_is_ready_stands_where_its_shoot_does_and_offers_what_is_not_reserved():
    seed = template_seed(a_set(), "crowd-3")

    assert document_is_ready(seed)
    assert seed["metadata"]["name"] == "crowd-3"
    assert section(seed, "metadata", "labels")["set"] == "crowd"
    assert seed["spec"]["provider"] == {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}
    assert seed["spec"]["networks"]["nodes"] == "10.0.0.0/16"
    assert seed["spec"]["ingress"]["domain"] == "crowd-3.ingress.example.com"
    assert seed["status"]["capacity"] == {"shoots": 10}
    assert seed["status"]["allocatable"] == {"shoots": "8"}


def test_without_a_stated_capacity_a_new_seed_takes_250_shoots():
    no_resources = {"template": {"spec": {"gardenlet": {"config": {"resources": None}}}}}

    assert template_seed(a_set(spec=no_resources), "crowd-3")["status"]["allocatable"] == {"shoots": "250"}
