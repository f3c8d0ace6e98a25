"""FinalizerRemoval: Gardener's own cases (`plugin/pkg/global/finalizerremoval/admission_test.go`) as tables."""

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import finalizer_removal
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from tests.support.builders import CORE, a_cloudprofile, a_namespaced_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.plants import a_plant

CHAIN = Admission([finalizer_removal.PLUGIN])
OURS, OTHER = "gardener", "irrelevant-finalizer"
DONE = {"type": "Delete", "state": "Succeeded", "progress": 100}
RUNNING = {**DONE, "type": "Reconcile"}


def with_finalizers(document: Document, *finalizers: str) -> Document:
    return merged(document, {"metadata": {"finalizers": list(finalizers)}})


def a_binding(kind: str, version: str = CORE) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "one", "namespace": "garden-dev"}}


@pytest.mark.parametrize(
    ("before", "after", "status", "is_rejected"),
    [
        ((OURS, OTHER), (OURS,), {"technicalID": "id", "lastOperation": RUNNING}, False),
        ((OURS,), (), {"technicalID": "id", "lastOperation": DONE}, False),
        ((OURS,), (), {"technicalID": "id", "lastOperation": RUNNING}, True),
        ((OURS,), (), {"technicalID": "id"}, False),
        ((OURS,), (), {"lastOperation": RUNNING}, False),
        ((OURS,), (), {"technicalID": "id", "lastOperation": {**DONE, "progress": 99}}, True),
        ((OURS,), (), {"technicalID": "id", "lastOperation": {**DONE, "state": "Processing"}}, True),
        ((OTHER,), (), {"technicalID": "id", "lastOperation": RUNNING}, False),
    ],
)
def test_a_shoot_keeps_its_finalizer_until_its_deletion_is_done(
    before: tuple[str, ...], after: tuple[str, ...], status: Document, is_rejected: bool
) -> None:
    stored = a_shoot(status=status)
    old, new = with_finalizers(stored, *before), with_finalizers(stored, *after)
    if not is_rejected:
        CHAIN.admit(new, old, RelatedObjects())
        return
    with pytest.raises(Forbidden, match=r"metadata\.finalizers: gardener is taken off by the gardenlet"):
        CHAIN.admit(new, old, RelatedObjects())


@pytest.mark.parametrize(
    ("stored", "users"),
    [
        (a_binding("SecretBinding"), ObjectKey("secretbinding", "garden-dev", "one")),
        (
            a_binding("CredentialsBinding", "security.gardener.cloud/v1alpha1"),
            ObjectKey("credentialsbinding", "garden-dev", "one"),
        ),
        (a_cloudprofile(), ObjectKey("cloudprofile", "", "aws")),
        (a_namespaced_cloudprofile(), ObjectKey("namespacedcloudprofile", "garden-dev", "own")),
        (a_project(), ObjectKey("namespace", "", "garden-dev")),
    ],
)
def test_what_is_in_use_keeps_its_finalizer(stored: Document, users: ObjectKey) -> None:
    """What uses it is counted in the write; of profiles, projects and the like this is ours."""
    kept = with_finalizers(stored, OURS)
    (guard,) = CHAIN.write_guards(with_finalizers(stored), kept, RelatedObjects())
    assert (guard.kind, guard.name) == ("references", users.stored)
    assert guard.message.endswith("is in use")
    assert CHAIN.write_guards(kept, with_finalizers(stored, OURS, OTHER), RelatedObjects()) == ()
    assert CHAIN.write_guards(with_finalizers(stored), with_finalizers(stored, OTHER), RelatedObjects()) == ()


@pytest.mark.parametrize(
    "finalizer",
    [OURS, "gardener.cloud/gardener", "gardener.cloud/reference-protection", "core.gardener.cloud/plant"],
)
@pytest.mark.parametrize("kind", ["Secret", "InternalSecret", "ConfigMap", "WorkloadIdentity"])
def test_what_shoots_seeds_and_bindings_name_keeps_its_finalizers(kind: str, finalizer: str) -> None:
    stored = a_binding(kind, "v1")
    kept = with_finalizers(stored, finalizer, OTHER)
    by_bindings, by_names = CHAIN.write_guards(with_finalizers(stored, OTHER), kept, RelatedObjects())
    key = ObjectKey(kind.lower(), "garden-dev", "one").stored
    assert (by_bindings.name, by_names.name) == (key, f"named/{key}")
    assert CHAIN.write_guards(with_finalizers(stored, finalizer), kept, RelatedObjects()) == ()
    assert CHAIN.write_guards(kept, with_finalizers(stored, OTHER), RelatedObjects()) == ()


def test_a_shoot_a_seed_and_a_plant_refer_to_what_they_name() -> None:
    resources = {"resources": [{"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "a"}}]}
    assert f"named/{ObjectKey('secret', 'garden-dev', 'a').stored}" in index_keys_of(a_shoot(spec=resources)).references
    assert index_keys_of(a_seed(spec=resources)).references == (f"named/{ObjectKey('secret', 'garden', 'a').stored}",)
    (reference,) = index_keys_of(a_plant("fern", secret="a")).references
    assert reference == f"named/{ObjectKey('secret', 'garden-dev', 'a').stored}"
