"""Rules of a ManagedSeed that are those of the Seed that it becomes."""

from typing import Any

from gardenbus.common.api.document import Document
from tests.unit.api.test_rules_by_kind import fields_of

GARDENLET = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
CREDENTIALS = {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": "garden"}


def a_managed_seed() -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "berlin", "namespace": "garden"},
        "spec": {"shoot": {"name": "berlin"}, "gardenlet": {"config": GARDENLET}},
    }


def test_a_template_is_checked_for_what_its_seed_will_be():
    managed_seed = a_managed_seed()
    template: Any = {"spec": {"provider": {"type": "aws", "region": "eu1", "zones": ["a"]}}}
    template["spec"]["backup"] = {"provider": "gcp", "credentialsRef": CREDENTIALS}
    template["spec"]["settings"] = {"loadBalancerServices": {"zones": [{"name": "a"}]}}
    managed_seed["spec"] = {"shoot": {"name": "berlin"}, "seedTemplate": template}

    found = fields_of(managed_seed)

    assert "spec.seedTemplate.spec.backup.region" in found
    assert "spec.seedTemplate.spec.settings.loadBalancerServices.zones" in found
    del template["spec"]["provider"]
    assert not {"spec.seedTemplate.spec.backup.region"} & set(fields_of(managed_seed))


def test_a_new_managed_seed_takes_the_operations_that_there_are_alone():
    managed_seed = a_managed_seed()
    annotations = managed_seed["metadata"].setdefault("annotations", {})
    for operation, problems in (("reconcile", []), ("explode", ["metadata.annotations[gardener.cloud/operation]"])):
        annotations["gardener.cloud/operation"] = operation
        assert fields_of(managed_seed) == problems
