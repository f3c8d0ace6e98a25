"""ExtensionValidator and ExtensionLabels: the cases of Gardener's `plugin/pkg/global`."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import extension_labels, extension_validator
from gardenbus.apiserver.domain.related_objects import KindQuery, ObjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile, a_seed, a_shoot, merged

VALIDATOR = Admission([extension_validator.PLUGIN])
LABELS = Admission([extension_labels.PLUGIN])
POOL: Document = {
    "name": "pool",
    "machine": {"type": "m5.large", "image": {"name": "gardenlinux"}},
    "cri": {"containerRuntimes": [{"type": "gvisor"}]},
}
SHOOT = a_shoot(
    spec={
        "provider": {"type": "aws", "workers": [POOL]},
        "networking": {"type": "calico"},
        "extensions": [{"type": "cert"}, {"type": "off", "disabled": True}],
        "dns": {"providers": [{"type": "route53", "primary": True}, {"type": "other"}, {"type": "unmanaged"}]},
    }
)
NEEDED = [
    *({"kind": kind, "type": "aws"} for kind in ("ControlPlane", "Infrastructure", "Worker")),
    {"kind": "Network", "type": "calico"},
    {"kind": "DNSRecord", "type": "route53"},
    {"kind": "Extension", "type": "cert"},
    {"kind": "OperatingSystemConfig", "type": "gardenlinux"},
    {"kind": "ContainerRuntime", "type": "gvisor"},
]


def registered(*resources: Document) -> RelatedObjects:
    """Registrations of kinds and types."""
    spec = {"resources": list(resources)}
    registration: Document = {"kind": "ControllerRegistration", "metadata": {"name": "all"}, "spec": spec}
    return RelatedObjects(all_of={"controllerregistration": [registration]})


def test_a_shoot_whose_types_are_all_registered_is_taken() -> None:
    VALIDATOR.admit(SHOOT, None, registered(*NEEDED))


@pytest.mark.parametrize("missing", NEEDED, ids=lambda each: str(each["kind"]))
def test_a_shoot_with_a_type_that_nobody_registered_is_refused(missing: Document) -> None:
    others = [each for each in NEEDED if each != missing]
    with pytest.raises(Forbidden, match=f"no {missing['kind']} of the type '{missing['type']}'"):
        VALIDATOR.admit(SHOOT, None, registered(*others))
    secondary = {**missing, "primary": False}
    with pytest.raises(Forbidden, match="given Shoot uses non-registered"):
        VALIDATOR.admit(SHOOT, None, registered(*others, secondary))


def test_nothing_is_checked_without_registrations_or_a_changed_spec() -> None:
    VALIDATOR.admit(SHOOT, None, RelatedObjects())
    VALIDATOR.admit(SHOOT, SHOOT, registered(NEEDED[0]))
    deleting = merged(SHOOT, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    VALIDATOR.admit(deleting, None, registered(NEEDED[0]))
    assert VALIDATOR.related_queries(SHOOT, None) == (KindQuery("controllerregistration"),)
    assert VALIDATOR.related_queries(SHOOT, SHOOT) == ()


def test_a_shoot_without_workers_needs_no_machines() -> None:
    shoot = a_shoot(spec={"provider": {"type": "aws", "workers": []}, "networking": None})
    VALIDATOR.admit(shoot, None, registered(NEEDED[-1]))


def test_seeds_and_buckets_are_checked_too() -> None:
    seed = a_seed(spec={"backup": {"provider": "gcp"}})
    with pytest.raises(Forbidden, match=r"spec\.backup\.provider: no BackupBucket of the type 'gcp'"):
        VALIDATOR.admit(seed, None, registered({"kind": "ControlPlane", "type": "aws"}))
    bucket = {"kind": "BackupBucket", "metadata": {"name": "b"}, "spec": {"provider": {"type": "gcp"}}}
    with pytest.raises(Forbidden, match="given BackupBucket"):
        VALIDATOR.admit(bucket, None, registered({"kind": "ControlPlane", "type": "aws"}))


def labels_of(document: Document, related: RelatedObjects | None = None, old: Document | None = None) -> set[str]:
    """The labels of extensions that a document gets."""
    mutated = LABELS.mutate(document, old, related or RelatedObjects(), user="alice").document
    labels: dict[str, Any] = mutated["metadata"].get("labels") or {}
    return {name.replace(".extensions.gardener.cloud", "") for name in labels if ".extensions." in name}


def test_a_shoot_is_labelled_with_what_it_uses() -> None:
    assert labels_of(SHOOT) == {
        "provider/aws",
        "networking/calico",
        "operatingsystemconfig/gardenlinux",
        "containerruntime/gvisor",
        "dnsrecord/route53",
        "dnsrecord/other",
        "extensions/cert",
    }


def test_a_pool_that_runs_the_control_plane_is_labelled_with_what_exposes_it() -> None:
    exposed = {"controlPlane": {"exposure": {"extension": {"type": "keepalived"}}}}
    shoot = merged(SHOOT, {"spec": {"provider": {"workers": [{**POOL, **exposed}]}}})
    assert labels_of(shoot) - labels_of(SHOOT) == {"selfhostedshootexposure/keepalived"}


def test_extensions_that_come_by_themselves_are_labelled_unless_the_shoot_leaves_them_out() -> None:
    related = registered(
        {"kind": "Extension", "type": "everywhere", "globallyEnabled": True},
        {"kind": "Extension", "type": "shoots", "autoEnable": ["shoot"]},
        {"kind": "Extension", "type": "seeds", "autoEnable": ["seed"]},
        {"kind": "Extension", "type": "off", "globallyEnabled": True},
        {"kind": "Extension", "type": "asked"},
    )
    named = {label for label in labels_of(SHOOT, related) if label.startswith("extensions/")}
    assert named == {"extensions/cert", "extensions/everywhere", "extensions/shoots"}
    assert "extensions/seeds" in labels_of(a_seed(), related)


def test_labels_of_others_stay_and_those_of_the_system_are_made_anew() -> None:
    stale = {"provider.extensions.gardener.cloud/gcp": "true", "mine": "1"}
    shoot = merged(a_shoot(), {"metadata": {"labels": stale}})
    labels = LABELS.mutate(shoot, None, RelatedObjects(), user="alice").document["metadata"]["labels"]
    assert labels["mine"] == "1"
    assert "provider/gcp" not in labels_of(shoot)


def test_a_change_of_nothing_keeps_the_labels_that_are_stored() -> None:
    stored = LABELS.mutate(SHOOT, None, registered(), user="alice").document
    forged = merged(stored, {"metadata": {"labels": {"provider.extensions.gardener.cloud/gcp": "true"}}})
    assert labels_of(forged, None, stored) == labels_of(stored)
    assert LABELS.related_queries(forged, stored) == ()
    assert LABELS.mutate(stored, stored, RelatedObjects(), user="alice").document == stored


@pytest.mark.parametrize(
    ("document", "labels"),
    [
        (a_seed(spec={"backup": {"provider": "gcp"}, "dns": {"provider": {"type": "route53"}}}), 3),
        ({"kind": "SecretBinding", "metadata": {}, "provider": {"type": "aws,gcp"}}, 0),
        ({"kind": "SecretBinding", "metadata": {"name": "b"}, "provider": {"type": "aws,gcp"}}, 2),
        ({"kind": "WorkloadIdentity", "metadata": {"name": "w"}, "spec": {"targetSystem": {"type": "aws"}}}, 1),
        (a_cloudprofile(), 1),
        ({"kind": "BackupBucket", "metadata": {"name": "b"}, "spec": {"provider": {"type": "aws"}}}, 1),
        ({"kind": "BackupBucket", "metadata": {"name": "b"}, "spec": {"provider": {"type": "a/b"}}}, 0),
        ({"kind": "Project", "metadata": {"name": "b"}, "spec": {"provider": {"type": "aws"}}}, 0),
    ],
)
def test_other_kinds_are_labelled(document: Document, labels: int) -> None:
    assert len(labels_of(document)) == labels


def test_what_is_below_another_object_has_its_provider() -> None:
    profile, parent = a_namespaced_cloudprofile(), ObjectKey("cloudprofile", "", "aws")
    assert LABELS.related_queries(profile, None) == (ObjectQuery(parent),)
    assert labels_of(profile, RelatedObjects(objects={parent: a_cloudprofile()})) == {"provider/aws"}
    entry = {"kind": "BackupEntry", "metadata": {"name": "e"}, "spec": {"bucketName": "b"}}
    bucket = {"kind": "BackupBucket", "metadata": {"name": "b"}, "spec": {"provider": {"type": "gcp"}}}
    assert labels_of(entry, RelatedObjects(objects={ObjectKey("backupbucket", "", "b"): bucket})) == {"provider/gcp"}
