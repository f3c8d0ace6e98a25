"""NamespacedCloudProfileValidator: Gardener's own cases (`plugin/pkg/namespacedcloudprofile/validator`) as a table."""

from datetime import UTC, datetime

import pytest

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.admissions import admit
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ALLOWED: set[str] = set()
PAST, FUTURE, LATER = "2026-05-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"
PARENT = a_cloudprofile(
    spec={
        "kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.33.5", "expirationDate": PAST}]},
        "machineImages": [{"name": "gardenlinux", "updateStrategy": "major", "versions": [{"version": "1.0.0"}]}],
    }
)


def kubernetes(version: str, expiration: str | None = FUTURE, **of: object) -> Document:
    return {"kubernetes": {"versions": [{"version": version, "expirationDate": expiration, **of}]}}


def image(
    version: str | None = "1.0.0", name: str = "gardenlinux", strategy: str | None = None, **of: object
) -> Document:
    listed: list[Document] = [] if version is None else [{"version": version, **of}]
    return {"machineImages": [{"name": name, "versions": listed, **({"updateStrategy": strategy} if strategy else {})}]}


def rejected_fields(spec: Document, before: Document | None) -> set[str]:
    old = None if before is None else a_namespaced_cloudprofile(spec=before)
    related = RelatedObjects(objects={ObjectKey("cloudprofile", "", "aws"): PARENT})
    try:
        admit(a_namespaced_cloudprofile(spec=spec), old, related, user="ann", now=NOW)
    except InvalidResource as error:
        return {problem.field.removeprefix("spec.") for problem in error.problems}
    return ALLOWED


VERSION, IMAGE = "kubernetes.versions[0]", "machineImages[0].versions[0]"


@pytest.mark.parametrize(
    ("before", "spec", "rejected"),
    [
        (None, {}, ALLOWED),
        (None, {"machineTypes": [{"name": "own"}]}, ALLOWED),
        (None, {"machineTypes": [{"name": "m5.large"}]}, ALLOWED),
        ({}, {"machineTypes": [{"name": "m5.large"}], "volumeTypes": [{"name": "gp3", "class": "fast"}]}, ALLOWED),
        (None, kubernetes("1.34.1"), ALLOWED),
        (None, kubernetes("1.34.1", None), {f"{VERSION}.expirationDate"}),
        (None, kubernetes("1.31.0"), {f"{VERSION}.version"}),
        (None, kubernetes("1.34.1", classification="preview"), {f"{VERSION}.classification"}),
        (None, kubernetes("1.34.1", PAST), ALLOWED),
        (kubernetes("1.34.1"), kubernetes("1.34.1", PAST), {f"{VERSION}.expirationDate"}),
        (kubernetes("1.34.1", PAST), kubernetes("1.34.1", PAST) | {"machineTypes": [{"name": "own"}]}, ALLOWED),
        ({"machineTypes": [{"name": "own"}]}, kubernetes("1.33.5", PAST), ALLOWED),  # so it is in the parent
        (kubernetes("1.34.1"), kubernetes("1.34.1", LATER), ALLOWED),
        (None, image(expirationDate=FUTURE), ALLOWED),
        (None, image(), {f"{IMAGE}.expirationDate"}),
        (None, image("2.0.0"), ALLOWED),
        (None, image("2.0.0", architectures=["arm64"], cri=[{"name": "containerd"}]), ALLOWED),
        (None, image(name="own"), ALLOWED),
        (None, image(None, name="own"), {"machineImages[0].versions"}),
        (None, image(expirationDate=FUTURE, architectures=["amd64"]), {f"{IMAGE}.architectures"}),
        (None, image(expirationDate=FUTURE, classification="preview"), {f"{IMAGE}.classification"}),
        (None, image(expirationDate=FUTURE, cri=[{"name": "containerd"}]), {f"{IMAGE}.cri"}),
        (None, image(expirationDate=FUTURE, kubeletVersionConstraint="> 1"), {f"{IMAGE}.kubeletVersionConstraint"}),
        (None, image(expirationDate=FUTURE, inPlaceUpdates={"supported": True}), {f"{IMAGE}.inPlaceUpdates"}),
        (None, image(expirationDate=FUTURE, capabilityFlavors=[{"a": ["b"]}]), {f"{IMAGE}.capabilityFlavors"}),
        ({"machineTypes": [{"name": "own"}]}, image(expirationDate=PAST), {f"{IMAGE}.expirationDate"}),
        (image(expirationDate=FUTURE), image(expirationDate=LATER), ALLOWED),
        (image(expirationDate=FUTURE), image(expirationDate=PAST), {f"{IMAGE}.expirationDate"}),
        (image(cri=[{"name": "containerd"}]), image(cri=[{"name": "containerd"}], expirationDate=LATER), ALLOWED),
        (image(cri=[{"name": "containerd"}]), image(cri=[{"name": "docker"}]), {IMAGE}),
        (image(strategy="patch"), image(strategy="minor"), {"machineImages[0].updateStrategy"}),
        (image(strategy="patch"), image(strategy="patch") | {"limits": {"maxNodesTotal": 3}}, ALLOWED),
    ],
)
def test_a_profile_overrides_only_when_versions_of_its_parent_expire(
    before: Document | None, spec: Document, rejected: set[str]
) -> None:
    assert rejected_fields(spec, before) == rejected
