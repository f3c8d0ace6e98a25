"""Gardener's own example manifests go through the whole of admission."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gardenbus.apiserver.domain.merging import apply_three_way
from gardenbus.apiserver.domain.named_objects import named_object_queries
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document, split
from gardenbus.common.api.garden.managed_seeds import seed_of
from gardenbus.common.api.garden.profile_parts import binding_keys, profile_key
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.errors import InvalidResource, Unsupported
from tests.support.admissions import admit, mutate
from tests.support.builders import CORE, a_cloudprofile, a_shoot

EXAMPLES = Path(os.environ.get("GARDENBUS_SHARED", Path(__file__).resolve().parents[4] / "shared")) / "examples"
CONFIGURATIONS = ("admissionconfig.yaml", "componentconfig-")
SKELETONS = ("managedseedset.yaml",)
"""Shows the frame of a set and leaves its shoots' spec to another file."""


@pytest.fixture
def examples() -> Path:
    if not EXAMPLES.is_dir():
        if "GARDENBUS_SHARED" in os.environ:
            pytest.fail(f"Gardener's example manifests are not at {EXAMPLES}, where GARDENBUS_SHARED says they are")
        pytest.skip(f"Gardener's example manifests are not at {EXAMPLES}")
    return EXAMPLES


_PLACEHOLDER = re.compile(rb"<some-([a-z-]+)>")
"""What people replace before they apply an example: a name takes its place."""


def objects_in(examples: Path) -> Iterator[tuple[str, Document]]:
    for path in sorted(examples.glob("*.yaml")):
        if not path.name.startswith(CONFIGURATIONS):
            for document in parse(_PLACEHOLDER.sub(rb"\1", path.read_bytes())):
                yield path.name, document


def facts_for(document: Document) -> RelatedObjects:
    """What an object names: they lie around without it."""
    if document["kind"] == "Shoot":
        spec, namespace = document["spec"], document["metadata"]["namespace"]
        profile = {**a_cloudprofile(), "spec": {"type": spec["provider"]["type"]}}
        keys = [key for key in (profile_key(spec, namespace), *binding_keys(spec, namespace)) if key is not None]
        return RelatedObjects(objects=dict.fromkeys(keys, profile))
    if document["kind"] == "Bastion":
        spec, namespace = document["spec"], document["metadata"]["namespace"]
        placed = {"seedName": spec.get("seedName", "aws-cork")}
        shoot = a_shoot(spec["shootRef"]["name"], namespace, uid="u1", spec=placed)
        shoot["spec"]["provider"]["type"] = spec.get("providerType", "aws")
        return RelatedObjects(objects={ObjectKey("shoot", namespace, spec["shootRef"]["name"]): shoot})
    if document["kind"] != "ManagedSeed":
        requested = [query.key for query in named_object_queries(document, None) if isinstance(query, ObjectQuery)]
        return RelatedObjects(objects={key: {"kind": key.kind} for key in requested})
    name = document["spec"]["shoot"]["name"]
    dns = {"domain": f"{name}.example.org"}
    shoot = mutate(a_shoot(name, "garden", spec={"dns": dns}), None, RelatedObjects(), user="ann").document
    return RelatedObjects(objects={ObjectKey("shoot", "garden", name): shoot})


def admitted(document: Document) -> Document:
    key_of(document)
    given = apply_three_way(None, None, document)
    related = facts_for(document)
    result = mutate(given, None, related, user="ann").document
    validate(result, None)
    if result["kind"] != "NamespacedCloudProfile":
        admit(result, None, related)
    return result


def test_every_object_is_taken_and_none_of_its_fields_is_lost(examples: Path) -> None:
    kinds: set[str] = set()
    for name, document in objects_in(examples):
        if name in SKELETONS:
            continue
        result = admitted(document)
        if document["kind"] == "Project":  # who created it is what the server says
            document["spec"]["createdBy"] = result["spec"]["createdBy"]
            document["spec"]["members"] = result["spec"]["members"]  # the owner is one of them
        assert apply_three_way(result, document, document) == result, name
        split(result)
        kinds.add(document["kind"])
    assert {"Shoot", "Seed", "CloudProfile", "ManagedSeed", "ManagedSeedSet", "ConfigMap", "Quota", "Bastion"} <= kinds


def test_a_skeleton_is_told_what_it_lacks(examples: Path) -> None:
    for name, document in objects_in(examples):
        if name in SKELETONS:
            with pytest.raises(InvalidResource, match=r"spec\.shootTemplate\.spec\.provider"):
                admitted(document)


def test_a_managed_seed_takes_over_from_its_shoot_what_it_leaves_open(examples: Path) -> None:
    by_file = {name: document for name, document in objects_in(examples) if document["kind"] == "ManagedSeed"}
    assert len(by_file) == 2
    for document in by_file.values():
        seed = seed_of(admitted(document))
        name = document["spec"]["shoot"]["name"]
        assert seed["spec"]["ingress"]["domain"] == f"ingress.{name}.example.org"
        assert seed["spec"]["provider"] == {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}
        validate(mutate(seed, None, RelatedObjects(), user="ann").document, None)


def test_the_shoot_of_a_set_gets_the_autoscaler_that_its_seed_needs(examples: Path) -> None:
    for _, document in objects_in(examples):
        if document["kind"] == "ManagedSeedSet" and document["spec"]["shootTemplate"]["spec"].get("provider"):
            metadata = {"name": "my-mss-0", "namespace": "garden"}
            template = document["spec"]["shootTemplate"]
            shoot = {"apiVersion": CORE, "kind": "Shoot", "metadata": metadata, "spec": template["spec"]}
            assert admitted(shoot)["spec"]["kubernetes"]["verticalPodAutoscaler"] == {"enabled": True}


def test_component_configurations_are_no_objects(examples: Path) -> None:
    for path in sorted(examples.glob("componentconfig-*.yaml")):
        with pytest.raises(Unsupported, match="configuration file"):
            key_of(parse(path.read_bytes())[0])
