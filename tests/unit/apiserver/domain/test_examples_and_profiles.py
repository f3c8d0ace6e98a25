"""The shoots of our own examples are what their profiles offer."""

from datetime import UTC, datetime

import pytest

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.manifests.parser import parse
from tests.support.admissions import admit_profile
from tests.support.example_files import example_manifests

DOCUMENTS = [document for path in example_manifests() for document in parse(path.read_bytes())]
PROFILES = RelatedObjects(
    objects={
        ObjectKey("cloudprofile", "", document["metadata"]["name"]): document
        for document in DOCUMENTS
        if document["kind"] == "CloudProfile"
    }
)


def shoots() -> list[Document]:
    """All shoots, and those that sets would make."""
    templates = [
        {"kind": "Shoot", "metadata": {"name": each["metadata"]["name"], "namespace": "garden"}}
        | {"spec": section(each, "spec", "shootTemplate")["spec"]}
        for each in DOCUMENTS
        if each["kind"] == "ManagedSeedSet"
    ]
    return [document for document in DOCUMENTS if document["kind"] == "Shoot"] + templates


@pytest.mark.parametrize("shoot", shoots(), ids=lambda shoot: str(shoot["metadata"]["name"]))
def test_a_profile_offers_all_that_a_shoot_names(shoot: Document) -> None:
    admit_profile(shoot, None, PROFILES, now=datetime.now(UTC))


def test_there_are_shoots_and_profiles() -> None:
    assert len(shoots()) > 60
    assert len(PROFILES.objects) > 2
