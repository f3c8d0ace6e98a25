"""ExtensionValidator and ExtensionLabels: Gardener's own cases (`plugin/pkg/global/extension{validation,labels}`)."""

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
EXPOSED: Document = {**POOL, "controlPlane": {"exposure": {"extension": {"type": "keepalived"}}}}
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
    for document in (SHOOT, SEED_WITH_EXTENSION, STORE, ENTRY):  # in Gardener refused
        VALIDATOR.admit(document, None, RelatedObjects())
    VALIDATOR.admit(SHOOT, SHOOT, registered(NEEDED[0]))
    deleting = merged(SHOOT, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    VALIDATOR.admit(deleting, None, registered(NEEDED[0]))
    assert VALIDATOR.related_queries(SHOOT, None) == (KindQuery("controllerregistration"),)
    assert VALIDATOR.related_queries(SHOOT, SHOOT) == ()


def test_a_shoot_without_workers_needs_no_machines() -> None:
    shoot = a_shoot(spec={"provider": {"type": "aws", "workers": []}, "networking": None})
    VALIDATOR.admit(shoot, None, registered(NEEDED[-1]))


def extension(name: str, **registration: object) -> Document:
    return {"kind": "Extension", "type": name, **registration}


SHOOTS, SEEDS, BOTH = (
    {"clusterCompatibility": clusters} for clusters in (["shoot"], ["seed"], ["shoot", "seed", "garden"])
)
WORKERLESS = a_shoot(spec={"provider": {"type": "aws", "workers": []}, "extensions": [{"type": "x"}]})
WITH_WORKERS = a_shoot(spec={"provider": {"type": "aws", "workers": [POOL]}, "extensions": [{"type": "x"}]})
SEED_WITH_EXTENSION = a_seed(spec={"extensions": [{"type": "x"}, {"type": "off", "disabled": True}]})
NOT_FOR_SHOOTS = r"spec\.extensions\[0\]\.type: no Extension of the type 'x' for a shoot"
NOT_FOR_SEEDS = r"spec\.extensions\[0\]\.type: no Extension of the type 'x' for a seed"


@pytest.mark.parametrize(
    ("document", "registration", "rejection"),
    [
        (WITH_WORKERS, {}, None),
        (WITH_WORKERS, SHOOTS, None),
        (WITH_WORKERS, BOTH, None),
        (WITH_WORKERS, SEEDS, NOT_FOR_SHOOTS),
        (WITH_WORKERS, {"workerlessSupported": False}, None),
        (WORKERLESS, {"workerlessSupported": True}, None),
        (WORKERLESS, {"workerlessSupported": True, **BOTH}, None),
        (WORKERLESS, {"workerlessSupported": True, **SEEDS}, NOT_FOR_SHOOTS),
        (WORKERLESS, {"workerlessSupported": False}, f"{NOT_FOR_SHOOTS} without workers"),
        (WORKERLESS, {}, f"{NOT_FOR_SHOOTS} without workers"),
        (SEED_WITH_EXTENSION, SEEDS, None),
        (SEED_WITH_EXTENSION, BOTH, None),
        (SEED_WITH_EXTENSION, SHOOTS, NOT_FOR_SEEDS),
        (SEED_WITH_EXTENSION, {}, NOT_FOR_SEEDS),
        (SEED_WITH_EXTENSION, {**SEEDS, "primary": False}, NOT_FOR_SEEDS),
    ],
)
def test_an_extension_is_for_kinds_of_clusters(
    document: Document, registration: Document, rejection: str | None
) -> None:
    related = registered(*NEEDED, extension("x", **registration))
    if rejection is None:
        VALIDATOR.admit(document, None, related)
    else:
        with pytest.raises(Forbidden, match=rejection):
            VALIDATOR.admit(document, None, related)


def a_registered(kind: str, **fields: object) -> Document:
    return {"kind": kind, "type": "gcp", **fields}


STORE: Document = {"kind": "BackupBucket", "metadata": {"name": "b"}, "spec": {"provider": {"type": "gcp"}}}
ENTRY: Document = {"kind": "BackupEntry", "metadata": {"name": "e"}, "spec": {"bucketName": "b"}}
SEED = a_seed(
    spec={
        "provider": {"type": "gcp"},
        "backup": {"provider": "gcp"},
        "ingress": {"domain": "ingress.example.org"},
        "dns": {"provider": {"type": "gcp"}},
    }
)
OF_SEED = ("ControlPlane", "BackupBucket", "BackupEntry", "DNSRecord")


@pytest.mark.parametrize(
    ("document", "kinds", "field"),
    [
        (STORE, ("BackupBucket",), "spec.provider.type"),
        (ENTRY, ("BackupEntry",), "spec.bucketName"),
        (SEED, OF_SEED, "spec."),
        (merged(SEED, {"spec": {"ingress": None}}), OF_SEED[:3], "spec."),
        (merged(SEED, {"spec": {"ingress": None, "backup": None}}), OF_SEED[:1], "spec."),
    ],
)
def test_seeds_and_their_backups_name_types_that_are_registered(
    document: Document, kinds: tuple[str, ...], field: str
) -> None:
    def admit(*resources: Document, old: Document | None = None) -> None:
        facts = RelatedObjects(
            objects={ObjectKey("backupbucket", "", "b"): STORE}, all_of=registered(*resources).all_of
        )
        VALIDATOR.admit(document, old, facts)

    admit(*map(a_registered, kinds))
    admit(old=document)
    for missing in kinds:
        others = [a_registered(kind) for kind in OF_SEED if kind != missing]
        for instead in ((), (a_registered(missing, primary=False),), ({"kind": missing, "type": "other"},)):
            with pytest.raises(
                Forbidden, match=rf"given {document['kind']} .*{field}.*: no {missing} of the type 'gcp'"
            ):
                admit(*others, *instead)


def test_an_entry_is_checked_with_its_bucket() -> None:
    assert VALIDATOR.related_queries(ENTRY, None) == (
        KindQuery("controllerregistration"),
        ObjectQuery(ObjectKey("backupbucket", "", "b")),
    )
    assert VALIDATOR.related_queries(ENTRY, ENTRY) == ()
    VALIDATOR.admit(ENTRY, None, registered(a_registered("ControlPlane")))  # another plug-in misses the bucket


def test_what_exposes_a_control_plane_is_registered() -> None:
    shoot = merged(SHOOT, {"spec": {"provider": {"workers": [EXPOSED]}}})
    exposure = {"kind": "SelfHostedShootExposure", "type": "keepalived"}
    VALIDATOR.admit(shoot, None, registered(*NEEDED, exposure))
    with pytest.raises(Forbidden, match=r"workers\[0\]\.controlPlane\.exposure\.extension\.type: no SelfHosted"):
        VALIDATOR.admit(shoot, None, registered(*NEEDED))


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
    shoot = merged(SHOOT, {"spec": {"provider": {"workers": [EXPOSED]}}})
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


def named(shoot: Document, old: Document | None = None) -> set[str]:
    """Extensions that a shoot is labelled with where five are registered."""
    related = registered(
        extension("auto", autoEnable=["shoot"]),
        extension("auto-off", autoEnable=["shoot"]),
        extension("auto-workerless", autoEnable=["shoot"], workerlessSupported=True),
        extension("stated"),
        extension("other"),
    )
    return {label.removeprefix("extensions/") for label in labels_of(shoot, related, old) if label[:4] == "exte"}


STATED: list[Document] = [{"type": "auto-off", "disabled": True}, {"type": "stated"}]
CHANGED: list[Document] = [{"type": "auto-off", "disabled": False}, {"type": "other"}]


@pytest.mark.parametrize(
    ("workers", "before", "after", "labels"),
    [
        ([POOL], None, STATED, {"auto", "auto-workerless", "stated"}),
        ([POOL], STATED, CHANGED, {"auto", "auto-workerless", "auto-off", "other"}),
        ([], None, STATED, {"auto-workerless", "stated"}),
        ([], STATED, [*STATED, {"type": "other"}], {"auto-workerless", "stated", "other"}),
    ],
)
def test_extensions_of_a_shoot_that_are_stated_or_come_by_themselves(
    workers: list[Document], before: list[Document] | None, after: list[Document], labels: set[str]
) -> None:
    def with_extensions(extensions: list[Document]) -> Document:
        return a_shoot(spec={"provider": {"type": "aws", "workers": workers}, "extensions": extensions})

    assert named(with_extensions(after), with_extensions(before) if before else None) == labels


def test_two_pools_share_labels_and_a_third_adds_its_own() -> None:
    pools: list[Document] = [POOL, {**POOL, "name": "two", "cri": {"containerRuntimes": [{"type": "gvisor"}] * 2}}]
    third: Document = {
        "name": "three",
        "machine": {"image": {"name": "ubuntu"}},
        "cri": {"containerRuntimes": [{"type": "kata"}]},
    }
    before = merged(SHOOT, {"spec": {"provider": {"workers": pools}}})
    after = merged(SHOOT, {"spec": {"provider": {"workers": [*pools, third]}}})
    assert labels_of(before) == labels_of(SHOOT)
    assert labels_of(after, None, before) - labels_of(before) == {
        "operatingsystemconfig/ubuntu",
        "containerruntime/kata",
    }


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (
            a_seed(spec={"backup": {"provider": "aws"}, "dns": {"provider": {"type": "route53"}}}),
            a_seed(spec={"backup": {"provider": "gcp"}, "dns": {"provider": {"type": "route53"}}}),
            {"provider/aws", "provider/gcp", "dnsrecord/route53"},
        ),
        (
            {"kind": "SecretBinding", "metadata": {"name": "b"}},
            {"kind": "SecretBinding", "metadata": {"name": "b"}, "provider": {"type": "aws,gcp"}},
            {"provider/aws", "provider/gcp"},
        ),
        (
            {"kind": "CredentialsBinding", "metadata": {"name": "b"}},
            {"kind": "CredentialsBinding", "metadata": {"name": "b"}, "provider": {"type": "gcp"}},
            {"provider/gcp"},
        ),
        (
            {"kind": "WorkloadIdentity", "metadata": {"name": "w"}},
            {"kind": "WorkloadIdentity", "metadata": {"name": "w"}, "spec": {"targetSystem": {"type": "gcp"}}},
            {"provider/gcp"},
        ),
        (a_cloudprofile(), merged(a_cloudprofile(), {"spec": {"type": "gcp"}}), {"provider/gcp"}),
    ],
    ids=["Seed", "SecretBinding", "CredentialsBinding", "WorkloadIdentity", "CloudProfile"],
)
def test_a_change_makes_the_labels_anew(old: Document, new: Document, labels: set[str]) -> None:
    stored = LABELS.mutate(old, None, RelatedObjects(), user="alice").document
    changed = merged(new, {"metadata": {"labels": stored["metadata"].get("labels") or {}}})
    assert labels_of(changed, None, stored) == labels


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
        ({"kind": "SecretBinding", "metadata": {"name": "b"}}, 0),
        ({"kind": "SecretBinding", "metadata": {"name": "b"}, "provider": {"type": "aws"}}, 1),
        ({"kind": "CredentialsBinding", "metadata": {"name": "b"}, "provider": {"type": "aws"}}, 1),
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
    other = merged(bucket, {"metadata": {"name": "c"}, "spec": {"provider": {"type": "aws"}}})
    keys = (ObjectKey("backupbucket", "", name) for name in ("b", "c"))
    facts = RelatedObjects(objects=dict(zip(keys, (bucket, other), strict=True)))
    assert labels_of(entry, facts) == {"provider/gcp"}
    assert labels_of(merged(entry, {"spec": {"bucketName": "c"}}), facts, entry) == {"provider/aws"}
