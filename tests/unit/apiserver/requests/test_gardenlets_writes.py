"""Writes, lists and watches of a gardenlet by requests, as Gardener's sends them; the landscape is that of its graph.

Source: `pkg/admissioncontroller/webhook/auth/seed/authorizer.go` and
`pkg/admissioncontroller/webhook/admission/seedrestriction`.
"""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import CORDONED_BY
from gardenbus.common.api.kinds import by_word
from tests.support.authorized_apiserver import AuthorizedApiserver
from tests.support.builders import a_seed
from tests.unit.apiserver.requests.test_cases_of_seed_authorizer import (
    OURS,
    THEIRS,
    a_resource,
    an_object,
    key_of,
    landscape,
    shoot_on,
    with_any_extensions,
)

APPLY, PATCH, DELETE, STATUS = "apply", "patch", "delete", "status"
EVERY = (APPLY, PATCH, DELETE, STATUS)
CREDENTIALS = {"apiVersion": "v1", "kind": "Secret", "name": "of-bucket", "namespace": "garden-keys"}
BUCKET: Document = {
    "seedName": OURS,
    "provider": {"type": "aws", "region": "eu-west-1"},
    "credentialsRef": CREDENTIALS,
}
WRITTEN: dict[str, tuple[str, tuple[str, ...], Document]] = {
    "its Seed": (f"seed._.{OURS}", (APPLY, PATCH, STATUS), a_seed(OURS)),
    "the Seed of a ManagedSeed here": ("seed._.child", (), a_seed("child")),
    "its Gardenlet": (f"gardenlet.garden.{OURS}", (APPLY, PATCH, STATUS), {"spec": {}}),
    "a shoot here": ("shoot.garden-dev.apollo", (PATCH, STATUS), {}),
    "a ManagedSeed here": ("managedseed.garden.child", (PATCH, STATUS), {}),
    "an installation here": ("controllerinstallation._.installation", (PATCH, STATUS), {}),
    "a Bastion here": ("bastion.garden-dev.bastion", (PATCH, STATUS), {}),
    "a BackupBucket of its": ("backupbucket._.bucket", EVERY, {"spec": BUCKET}),
    "a new BackupBucket": ("backupbucket._.bucket-2", (APPLY,), {"spec": BUCKET}),
    "a BackupEntry of its": ("backupentry.garden-dev.entry", EVERY, {"spec": {"seedName": OURS, "bucketName": "b"}}),
    "the state of a shoot here": ("shootstate.garden-dev.apollo", (APPLY, PATCH, DELETE), {"spec": {}}),
    "a kubeconfig of a shoot here": ("secret.garden-dev.apollo.kubeconfig", (APPLY, PATCH, DELETE), {"data": {}}),
    "keys of a shoot here": ("secret.garden-dev.apollo.ssh-keypair.old", (APPLY, PATCH, DELETE), {"data": {}}),
    "an authority of a shoot here": ("internalsecret.garden-dev.apollo.ca-client", (APPLY, PATCH, DELETE), {}),
    "a certificate of a shoot here": ("configmap.garden-dev.apollo.ca-cluster", (APPLY, PATCH, DELETE), {}),
    "what a shoot here names": ("secret.garden-dev.webhook", (PATCH,), {}),
    "what it may not even read": ("secret.garden-prod.foreign", (), {}),
    "a kubeconfig of no shoot": ("secret.garden-dev.zeus.kubeconfig", (), {}),
    "its namespace": (f"namespace._.seed-{OURS}", (), {}),
    "a copy in its namespace": (f"secret.seed-{OURS}.copied", (PATCH,), {}),
    "another Seed": (f"seed._.{THEIRS}", (), a_seed(THEIRS)),
    "a Project": ("project._.dev", (), {}),
    "a profile": ("cloudprofile._.aws", (), {}),
    "a role": ("clusterrolebinding._.seed-bootstrapper-child", (), {}),
    "an account": ("serviceaccount.garden.gardenlet-bootstrap-child", (), {}),
    "its Lease": (f"lease.gardener-system-seed-lease.{OURS}", (), {}),
}
"""Objects, and what the gardenlet of OURS may do to them."""


async def written(apiserver: AuthorizedApiserver, seed: str, tail: str, verb: str, given: Document) -> int:
    """403 where a write is rejected by the authorizer, 200 where it is accepted or rejected for other reasons."""
    key = key_of(tail)
    body = {
        **an_object(by_word(key.kind).kind, key.name, key.namespace),
        **{k: given[k] for k in given if k != "metadata"},
    }
    bodies: dict[str, Any] = {
        APPLY: body,
        PATCH: {"metadata": {"finalizers": ["example.org/held"]}},
        DELETE: {},
        STATUS: {"status": {"observedGeneration": 1}},
    }
    response = await apiserver.response(f"seed:{seed}", verb if verb == APPLY else f"{verb}.{tail}", bodies[verb])
    if response["ok"]:
        return 200
    error: Document = response.get("error") or response["result"][0]["error"]
    is_of_authorizer = f'user "seed:{seed}" cannot' in error["message"]
    return 403 if is_of_authorizer else 200


@pytest.mark.parametrize("verb", EVERY)
@pytest.mark.parametrize("case", WRITTEN)
async def test_a_gardenlet_writes_what_is_of_its_seed_and_no_other_does(case: str, verb: str) -> None:
    tail, verbs, given = WRITTEN[case]
    apiserver = await landscape(shoot_on(OURS))
    assert await written(apiserver, THEIRS, tail, verb, given) == (
        200 if case == "another Seed" and verb in (APPLY, PATCH, STATUS) else 403
    )
    assert await written(apiserver, OURS, tail, verb, given) == (200 if verb in verbs else 403)


CHANGED: dict[str, tuple[str, Document]] = {
    "a cordon of its Seed": (f"seed._.{OURS}", {"metadata": {"annotations": {CORDONED_BY: "itself"}}}),
    "a version of a shoot": ("shoot.garden-dev.apollo", {"spec": {"kubernetes": {"version": "1.33.6"}}}),
    "the seed of a shoot": ("shoot.garden-dev.apollo", {"spec": {"seedName": THEIRS}}),
    "what a shoot names": ("shoot.garden-dev.apollo", {"spec": {"resources": [a_resource("Secret", "other")]}}),
    "the shoot of a ManagedSeed": ("managedseed.garden.child", {"spec": {"shoot": {"name": "other"}}}),
    "the deployment of an installation": (
        "controllerinstallation._.installation",
        {"spec": {"deploymentRef": {"name": "other"}}},
    ),
    "the seed of a Bastion": ("bastion.garden-dev.bastion", {"spec": {"seedName": THEIRS}}),
    "the seed of a bucket": ("backupbucket._.bucket", {"spec": {"seedName": THEIRS}}),
    "what is in a Secret that a shoot names": ("secret.garden-dev.webhook", {"data": {"a": "Yg=="}}),
    "a label of a Secret that a shoot names": ("secret.garden-dev.webhook", {"metadata": {"labels": {"a": "b"}}}),
    "a Secret into which tokens are written": (
        "secret.garden-dev.apollo.kubeconfig",
        {"metadata": {"labels": {"resources.gardener.cloud/purpose": "token-requestor"}}},
    ),
    "a Secret by which somebody comes in": (
        "secret.garden-dev.apollo.kubeconfig",
        {"metadata": {"labels": {"gardenbus.io/purpose": "credentials"}}},
    ),
}


@pytest.mark.parametrize("case", CHANGED)
async def test_a_gardenlet_changes_nothing_by_which_it_would_read_or_decide_more(case: str) -> None:
    tail, patch = CHANGED[case]
    apiserver = await landscape(shoot_on(OURS))
    before = await apiserver.store.get(key_of(tail))
    assert await apiserver.code(f"seed:{OURS}", f"patch.{tail}", patch) == 403
    assert await apiserver.store.get(key_of(tail)) == before


async def test_a_gardenlet_changes_networks_and_metadata_of_a_shoot() -> None:
    apiserver = await landscape(shoot_on(OURS))
    await with_any_extensions(apiserver.store)
    shoot = "patch.shoot.garden-dev.apollo"
    for patch in (
        {"metadata": {"annotations": {"example.org/a": "b"}, "finalizers": ["gardener"]}},
        {"spec": {"networking": {"nodes": "10.250.0.0/16"}}},
    ):
        assert await apiserver.code(f"seed:{OURS}", shoot, patch) == 200


@pytest.mark.parametrize(("moves_to", "responsible"), [(OURS, THEIRS), (THEIRS, OURS)])
async def test_a_status_is_of_the_seed_that_a_shoot_has_not_left_yet(moves_to: str, responsible: str) -> None:
    shoot = shoot_on(OURS)
    shoot["spec"]["seedName"], shoot["status"] = moves_to, {"seedName": responsible}
    apiserver = await landscape(shoot)
    operation = {"type": "Migrate", "state": "Processing", "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    for progress, seed in enumerate((OURS, THEIRS)):
        expected = 200 if seed == responsible else 403
        status = {"status": {"lastOperation": {**operation, "progress": progress}}}
        assert await apiserver.code(f"seed:{seed}", "status.shoot.garden-dev.apollo", status) == expected


async def test_a_gardenlet_records_events_about_what_it_reads() -> None:
    apiserver = await landscape(shoot_on(OURS))
    event = {"type": "Normal", "reason": "Reconciled", "message": "It is."}
    for seed, expected in ((OURS, 200), (THEIRS, 403)):
        assert await apiserver.code(f"seed:{seed}", "event.shoot.garden-dev.apollo", event) == expected


SEED_LABEL = f"name.seed.gardener.cloud/{OURS}=true"
LISTS: dict[str, tuple[Document, int]] = {
    "shoots by label": ({"kind": "shoots", "labelSelector": SEED_LABEL}, 200),
    "shoots by seed": ({"kind": "shoots", "fieldSelector": f"spec.seedName={OURS}"}, 200),
    "all shoots": ({"kind": "shoots"}, 403),
    "shoots of another seed": ({"kind": "shoots", "labelSelector": f"name.seed.gardener.cloud/{THEIRS}=true"}, 403),
    "shoots of any seed": ({"kind": "shoots", "labelSelector": f"name.seed.gardener.cloud/{OURS}"}, 403),
    "managed seeds by label": ({"kind": "managedseeds", "labelSelector": SEED_LABEL}, 200),
    "managed seeds": ({"kind": "managedseeds"}, 403),
    "backup buckets": ({"kind": "backupbuckets"}, 200),
    "its Lease": (
        {"kind": "leases", "namespace": "gardener-system-seed-lease", "fieldSelector": f"metadata.name={OURS}"},
        200,
    ),
    "all Leases": ({"kind": "leases", "namespace": "gardener-system-seed-lease"}, 403),
    "its Gardenlet": ({"kind": "gardenlets", "namespace": "garden", "fieldSelector": f"metadata.name={OURS}"}, 200),
    "its namespace": ({"kind": "namespaces", "fieldSelector": f"metadata.name=seed-{OURS}"}, 200),
    "a Project by name": ({"kind": "projects", "fieldSelector": "metadata.name=dev"}, 200),
    "Projects": ({"kind": "projects"}, 403),
    "accounts in its namespace": ({"kind": "serviceaccounts", "namespace": f"seed-{OURS}"}, 200),
    "a Secret by a name of a shoot's": (
        {"kind": "secrets", "namespace": "garden-dev", "fieldSelector": "metadata.name=webhook"},
        200,
    ),
    "a Secret by another name": (
        {"kind": "secrets", "namespace": "garden-prod", "fieldSelector": "metadata.name=foreign"},
        403,
    ),
    "Secrets that are not of one name": (
        {"kind": "secrets", "namespace": "garden-dev", "fieldSelector": "metadata.name!=webhook"},
        403,
    ),
}


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("case", LISTS)
async def test_a_gardenlet_lists_and_watches_by_selectors_of_its_seed(case: str, verb: str) -> None:
    review, expected = LISTS[case]
    apiserver = await landscape(shoot_on(OURS))
    found = await apiserver.response(f"seed:{OURS}", "can-i", {"verb": verb, **review})
    assert found["result"]["allowed"] is (expected == 200), found
