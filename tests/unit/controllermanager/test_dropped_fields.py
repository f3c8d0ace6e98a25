"""Fields that an update of Kubernetes takes out. Cases as in Gardener's maintenance reconciler test."""

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.kubernetes_features import DROPPED_FIELDS
from gardenbus.controllermanager.domain.dropped_fields import without_dropped_fields

REFERRING: Document = {"type": "x", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}
FULL: Document = {
    "addons": {"nginxIngress": {"enabled": False}},
    "dns": {"domain": "a.example.org", "providers": [{"type": "x", "secretName": "s"}, {"type": "y"}]},
    "kubernetes": {
        "version": "1.35.0",
        "kubeControllerManager": {"podEvictionTimeout": "2m", "nodeCIDRMaskSize": 24},
        "clusterAutoscaler": {"maxEmptyBulkDelete": 10, "ignoreTaints": ["example.org/old"]},
        "kubeAPIServer": {
            "enableAnonymousAuthentication": False,
            "watchCacheSizes": {"default": 100, "resources": [{"resource": "secrets", "size": 500}]},
        },
        "kubeScheduler": {"kubeMaxPDVols": "20"},
    },
}


def test_an_update_across_all_versions_takes_out_all_of_them() -> None:
    cleaned = without_dropped_fields(FULL, "1.31.9")
    assert cleaned.spec == {
        "dns": {"domain": "a.example.org", "providers": [REFERRING, {"type": "y"}]},
        "kubernetes": {
            "version": "1.35.0",
            "kubeControllerManager": {"nodeCIDRMaskSize": 24},
            "clusterAutoscaler": {},
            "kubeAPIServer": {"watchCacheSizes": {"resources": [{"resource": "secrets", "size": 500}]}},
            "kubeScheduler": {},
        },
    }
    assert len(cleaned.operations) == len(DROPPED_FIELDS)
    assert "`" not in "".join(cleaned.operations)
    assert FULL["addons"], "the spec that was given is as it was"


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ("1.32.1", "1.33.0", ["podEvictionTimeout", "maxEmptyBulkDelete"]),
        ("1.33.1", "1.33.5", []),
        ("1.33.1", "1.34.0", []),
        ("1.35.0", "1.36.0", []),
        (None, "1.31.0", []),
    ],
)
def test_only_the_version_that_drops_a_field_takes_it_out(before: str | None, after: str, paths: list[str]) -> None:
    spec: Document = {**FULL, "kubernetes": {**section(FULL, "kubernetes"), "version": after}}
    cleaned = without_dropped_fields(spec, before)
    assert [operation.split(" ")[0].rpartition(".")[2] for operation in cleaned.operations] == paths
    assert (cleaned.spec is spec) is (not paths)


def test_what_is_not_there_is_not_spoken_of() -> None:
    spec: Document = {"kubernetes": {"version": "1.35.0"}}
    assert without_dropped_fields(spec, "1.32.0") == (spec, ())
