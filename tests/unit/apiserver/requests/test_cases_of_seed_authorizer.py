"""What a gardenlet may read and write: the vertices of Gardener's graph of seeds, and the kinds of SeedRestriction.

Source: `pkg/admissioncontroller/webhook/auth/seed/{authorizer,graph/graph}_test.go` and
`pkg/admissioncontroller/webhook/admission/seedrestriction/handler_test.go`.
Writes by requests are in `test_gardenlets_writes`.
"""

from typing import Any

import msgspec
import pytest

from gardenbus.apiserver.domain.request_subjects import reported_object
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.connections import Connections
from tests.support.authorized_apiserver import AuthorizedApiserver, a_binding, a_secret
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
    a_shoot_state,
)
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

OURS, THEIRS = "seed-1", "seed-2"
SECURITY = "security.gardener.cloud/v1alpha1"


def an_object(kind: str, name: str, namespace: str = "", **more: Any) -> Document:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | more.pop("metadata", {})
    return {"apiVersion": KINDS[kind.lower()].api_version, "kind": kind, "metadata": metadata, **more}


def a_reference(kind: str, name: str, namespace: str = "") -> Document:
    version = SECURITY if kind == "WorkloadIdentity" else "v1"
    return {"apiVersion": version, "kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


def a_resource(kind: str, name: str) -> Document:
    return {"name": name, "resourceRef": a_reference(kind, name)}


API_SERVER: Document = {
    "auditConfig": {"auditPolicy": {"configMapRef": {"name": "audit"}}},
    "structuredAuthentication": {"configMapName": "authn"},
    "structuredAuthorization": {"configMapName": "authz", "kubeconfigs": [{"secretName": "webhook"}]},
}
FIELDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "cloudProfile": (
        {"kind": "NamespacedCloudProfile", "name": "own"},
        ("namespacedcloudprofile.garden-dev.own",),
    ),
    "secretBindingName": ("b1", ("secretbinding.garden-dev.b1", "secret.garden-keys.of-b1")),
    "credentialsBindingName": (
        "b2",
        ("credentialsbinding.garden-dev.b2", "workloadidentity.garden-keys.of-b2", "quota.garden-keys.limit"),
    ),
    "kubernetes": (
        {"version": "1.34.1", "kubeAPIServer": API_SERVER},
        (
            *(f"configmap.garden-dev.{name}" for name in ("audit", "authn", "authz")),
            "secret.garden-dev.webhook",
        ),
    ),
    "dns": (
        {"providers": [{"secretName": "dns-1"}, {"credentialsRef": a_reference("WorkloadIdentity", "dns-2")}]},
        ("secret.garden-dev.dns-1", "workloadidentity.garden-dev.dns-2"),
    ),
    "resources": (
        [a_resource("Secret", "r-1"), a_resource("ConfigMap", "r-2")],
        ("secret.garden-dev.r-1", "configmap.garden-dev.r-2"),
    ),
}
"""Fields of a shoot, and what they lead to."""

OF_SHOOT = ("shoot.garden-dev.apollo", "shootstate.garden-dev.apollo", "namespace._.garden-dev", "project._.dev")
OF_SEED = (
    *("backupbucket._.bucket", "backupentry.garden-dev.entry", "bastion.garden-dev.bastion"),
    *("controllerinstallation._.installation", f"lease.gardener-system-seed-lease.{OURS}"),
    *("controllerdeployment._.deployment", "lease.extension-installation.gardener-extension-heartbeat"),
    *(f"namespace._.seed-{OURS}", f"secret.seed-{OURS}.copied"),
    *("secret.garden.backup", "secret.garden.seed-dns", "secret.garden.r-3", "configmap.garden.r-4"),
    f"gardenlet.garden.{OURS}",
)
OF_MANAGED_SEED = ("managedseed.garden.child", "lease.gardener-system-seed-lease.child", "secret.garden.child-backup")
EVERY_GARDENLETS = ("controllerregistration._.registration",)
PUBLIC = ("configmap.kube-system.cluster-identity", "configmap.gardener-system-public.gardener-info")
EVERYBODYS = ("cloudprofile._.aws", "exposureclass._.public", f"seed._.{OURS}", f"seed._.{THEIRS}", *PUBLIC)

CALLED_AFTER_SHOOT = (
    *(f"secret.garden-dev.apollo.{suffix}" for suffix in ("kubeconfig", "ca-cluster", "ssh-keypair", "monitoring")),
    *("internalsecret.garden-dev.apollo.ca-client", "configmap.garden-dev.apollo.ca-cluster"),
)

NARROWER = {
    "credentials of backups are in garden": ("secret.garden-keys.of-bucket", "secret.garden-keys.generated"),
    "an entry is of the seed that it names": ("backupentry.garden-dev.elsewhere", "backupbucket._.elsewhere"),
    "nothing acts on what Gardenlets name": ("secret.garden.gardenlet-backup",),
    "issuers are not published": ("secret.gardener-system-shoot-issuer.dev--uid",),
    "tokens are handed over once": ("secret.kube-system.bootstrap-token-2d9418",),
    "a Seed is written by its gardenlet": ("secret.garden-prod.foreign",),
}
"""Vertices that Gardener's graph leads to and the one here does not, by the reason."""


def key_of(tail: str) -> ObjectKey:
    kind, namespace, name = tail.split(".", 2)
    return ObjectKey(kind, namespace.removeprefix("_"), name)


def shoot_on(seed: str, left_out: str = "") -> Document:
    spec = {field: value for field, (value, _) in FIELDS.items() if field != left_out}
    spec.setdefault("cloudProfile", {"kind": "CloudProfile", "name": "aws"})
    return a_shoot(spec={**spec, "seedName": seed, "exposureClassName": "public"}, status={"seedName": seed})


def of_bindings() -> list[Document]:
    reference = a_reference("WorkloadIdentity", "of-b2", "garden-keys")
    quotas = [{"name": "limit", "namespace": "garden-keys"}]
    return [
        a_binding("b1", "of-b1", secret_namespace="garden-keys"),
        an_object("CredentialsBinding", "b2", "garden-dev", credentialsRef=reference, quotas=quotas),
    ]


def of_backups() -> list[Document]:
    secret = {"secretRef": {"name": "of-bucket", "namespace": "garden-keys"}}
    generated = {"generatedSecretRef": {"name": "generated", "namespace": "garden-keys"}}
    owner = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "apollo", "uid": "u"}
    return [
        an_object("BackupBucket", "bucket", spec={"seedName": OURS, **secret}, status=generated),
        an_object("BackupBucket", "elsewhere", spec={"seedName": THEIRS, **secret}),
        an_object("BackupEntry", "entry", "garden-dev", spec={"seedName": OURS, "bucketName": "elsewhere"}),
        an_object(
            "BackupEntry",
            "elsewhere",
            "garden-dev",
            metadata={"ownerReferences": [owner]},
            spec={"seedName": THEIRS, "bucketName": "bucket"},
        ),
    ]


def of_seeds() -> list[Document]:
    def backup(name: str, namespace: str = "garden") -> Document:
        return {"backup": {"credentialsRef": a_reference("Secret", name, namespace)}}

    config: Document = {"seedConfig": {"spec": backup("child-backup")}}
    dns = {"provider": {"type": "x", "secretRef": {"name": "seed-dns", "namespace": "garden"}}}
    defaults = [
        {"type": "x", "domain": "example.org", "credentialsRef": a_reference("Secret", "foreign", "garden-prod")}
    ]
    resources = [a_resource("Secret", "r-3"), a_resource("ConfigMap", "r-4")]
    refs = {"registrationRef": {"name": "registration"}, "deploymentRef": {"name": "deployment"}}
    gardenlet = {"config": {"seedConfig": {"spec": backup("gardenlet-backup")}}}
    return [
        a_seed(OURS, spec={**backup("backup"), "dns": {**dns, "defaults": defaults}, "resources": resources}),
        a_seed(THEIRS),
        a_shoot("host", "garden", spec={"seedName": OURS}, status={"seedName": OURS}),
        an_object("ManagedSeed", "child", "garden", spec={"shoot": {"name": "host"}, "gardenlet": {"config": config}}),
        an_object("ControllerInstallation", "installation", spec={"seedRef": {"name": OURS}, **refs}),
        an_object("Bastion", "bastion", "garden-dev", spec={"seedName": OURS, "shootRef": {"name": "apollo"}}),
        an_object("Gardenlet", OURS, "garden", spec=gardenlet),
    ]


KIND_NAMES = {
    "secret": "Secret",
    "configmap": "ConfigMap",
    "internalsecret": "InternalSecret",
    "workloadidentity": "WorkloadIdentity",
    "namespace": "Namespace",
    "quota": "Quota",
    "lease": "Lease",
    "exposureclass": "ExposureClass",
    "controllerregistration": "ControllerRegistration",
    "controllerdeployment": "ControllerDeployment",
}
VERTICES = (
    *(tail for _, tails in FIELDS.values() for tail in tails),
    *(*OF_SHOOT, *CALLED_AFTER_SHOOT, *OF_SEED, *OF_MANAGED_SEED, *EVERY_GARDENLETS, *EVERYBODYS),
    *(tail for tails in NARROWER.values() for tail in tails),
)


async def landscape(shoot: Document) -> AuthorizedApiserver:
    """All vertices, and all edges of Gardener's graph."""
    apiserver = AuthorizedApiserver()
    await apiserver.create([
        a_cloudprofile(),
        a_namespaced_cloudprofile(),
        a_project(),
        a_project("garden", "garden"),
        *of_seeds(),
        shoot,
        a_shoot_state(),
        *of_bindings(),
        *of_backups(),
    ])  # fmt: skip
    for key in map(key_of, VERTICES):
        if key.kind in KIND_NAMES and await apiserver.store.get(key) is None:
            spec: Document = {"spec": {}} if KINDS[key.kind].has_spec else {}
            await apiserver.create([an_object(KIND_NAMES[key.kind], key.name, key.namespace, **spec)])
    for key in map(key_of, VERTICES):
        assert await apiserver.store.get(key) is not None, key
    return apiserver


async def with_any_extensions(store: MemoryStore) -> None:
    """Remove the registration: with none, extensions of any type are there."""
    registration = await store.get(key_of("controllerregistration._.registration"))
    assert registration is not None
    await store.delete(registration)


async def readable(apiserver: AuthorizedApiserver, tails: tuple[str, ...], seed: str = OURS) -> set[str]:
    codes = {tail: await apiserver.code(f"seed:{seed}", f"get.{tail}") for tail in tails}
    heartbeats = {404 for tail in tails if tail.startswith("lease.")}  # allowed, and nobody has sent one
    assert set(codes.values()) <= {200, 403} | heartbeats, codes
    return {tail for tail, code in codes.items() if code != 403}


async def test_a_gardenlet_reads_what_gardeners_graph_leads_to_but_for_what_is_stated() -> None:
    apiserver = await landscape(shoot_on(OURS))
    stated = {tail for tails in NARROWER.values() for tail in tails}
    assert await readable(apiserver, VERTICES) == set(VERTICES) - stated


async def test_another_seeds_gardenlet_reads_none_of_it() -> None:
    apiserver = await landscape(shoot_on(OURS))
    its_own = {"backupbucket._.elsewhere", "backupentry.garden-dev.elsewhere"}
    assert await readable(apiserver, VERTICES, THEIRS) == {*EVERYBODYS, *EVERY_GARDENLETS, *its_own}


async def test_a_gardenlet_lists_the_installations_of_its_seed_alone() -> None:
    apiserver = await landscape(shoot_on(OURS))
    tail = "list.controllerinstallation"
    for seed, selected, expected in ((OURS, OURS, 200), (THEIRS, OURS, 403), (THEIRS, "", 403)):
        query = {"fieldSelector": f"spec.seedRef.name={selected}"} if selected else {}
        response = await apiserver.response(f"seed:{seed}", tail, query)
        assert (200 if response["ok"] else response["error"]["code"]) == expected
    ours = await apiserver.response(f"seed:{OURS}", tail, {"fieldSelector": f"spec.seedRef.name={OURS}"})
    assert [each["metadata"]["name"] for each in ours["result"]["items"]] == ["installation"]
    theirs = await apiserver.response(f"seed:{THEIRS}", tail, {"fieldSelector": f"spec.seedRef.name={THEIRS}"})
    assert theirs["result"]["items"] == []
    assert await apiserver.code(f"seed:{THEIRS}", "list.controllerregistration") == 200
    assert await apiserver.code(f"seed:{THEIRS}", "list.controllerdeployment") == 403


async def test_a_gardenlet_lists_the_bastions_of_its_seed_alone() -> None:
    apiserver = await landscape(shoot_on(OURS))
    query = {"fieldSelector": f"spec.seedName={OURS}"}
    ours = await apiserver.response(f"seed:{OURS}", "list.bastion", query)
    assert [each["metadata"]["name"] for each in ours["result"]["items"]] == ["bastion"]
    for seed, selector in ((THEIRS, query), (OURS, {})):
        response = await apiserver.response(f"seed:{seed}", "list.bastion", selector)
        assert response["error"]["code"] == 403


async def test_the_entries_in_a_bucket_are_listed_by_its_name() -> None:
    apiserver = await landscape(shoot_on(OURS))
    response = await apiserver.response(f"seed:{OURS}", "list.backupentry", {"fieldSelector": "spec.bucketName=bucket"})
    assert [each["metadata"]["name"] for each in response["result"]["items"]] == ["elsewhere"]


async def test_a_gardenlet_lists_the_secrets_of_its_seeds_namespace_alone() -> None:
    apiserver = await landscape(shoot_on(OURS))
    ours = await apiserver.response(f"seed:{OURS}", f"list.secret.seed-{OURS}")
    assert [each["metadata"]["name"] for each in ours["result"]["items"]] == ["copied"]
    for tail in (f"list.secret.seed-{THEIRS}", "list.secret.garden", "list.secret", f"list.configmap.seed-{OURS}"):
        assert await apiserver.code(f"seed:{OURS}", tail) == 403


@pytest.mark.parametrize("field", FIELDS)
async def test_an_edge_goes_with_the_field_that_makes_it(field: str) -> None:
    apiserver = await landscape(shoot_on(OURS, left_out=field))
    kept = {tail for other, (_, tails) in FIELDS.items() if other != field for tail in tails}
    assert await readable(apiserver, (*FIELDS[field][1], *kept)) == kept


@pytest.mark.parametrize(
    ("spec", "status", "ours"),
    [(OURS, None, True), (None, OURS, True), (THEIRS, OURS, True), (THEIRS, THEIRS, False), (None, None, False)],
)
async def test_a_shoot_is_of_the_seed_in_its_spec_and_of_the_one_in_its_status(
    spec: str | None, status: str | None, *, ours: bool
) -> None:
    shoot = shoot_on(OURS)
    shoot["spec"].pop("seedName")
    shoot["spec"] |= {"seedName": spec} if spec else {}
    shoot["status"] = {"seedName": status} if status else {}
    apiserver = await landscape(shoot)
    tails = ("shoot.garden-dev.apollo", "shootstate.garden-dev.apollo", "secret.garden-keys.of-b1", "project._.dev")
    assert await readable(apiserver, tails) == (set(tails) if ours else set())


# ------------------------------------------------------------------------------------------------ SeedRestriction


@pytest.mark.parametrize("name", [OURS, THEIRS])
async def test_a_certificate_is_asked_for_by_csr_create_and_by_no_manifest(name: str) -> None:
    apiserver = await landscape(shoot_on(OURS))
    request = an_object("CertificateSigningRequest", "mine", spec={"username": f"seed:{name}"})
    assert await apiserver.code(f"seed:{OURS}", "apply", request) == 403


class Reports:
    """Reports of gardenlets, and an apiserver that accepts or rejects them."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.bus = MemoryBus(FakeClock())
        self.subjects = Subjects()

    async def send(self, seed: str, verb: str, document: Document) -> bool:
        """Send one; whether it was accepted."""
        queue = await self.bus.work_queue("REPORTS", "apiserver", "garden.report.>")
        connections = Connections(self.store, self.bus, self.subjects)
        handler = ReportHandler(
            bus=self.bus,
            store=self.store,
            subjects=self.subjects,
            queue=queue,
            writer=Writer(self.store, FakeClock()),
            manifests=ManifestCache(self.store),
            dead_letter=DeadLetter(connections, reporter="apiserver", object_of=reported_object(self.subjects)),
            concurrency=1,
        )
        metadata = document["metadata"]
        key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
        body = {"status": document["status"]} if verb == "status" else document
        await self.bus.publish(Message(self.subjects.report(seed, key), encode(body), {Header.VERB: verb}))
        await handler.handle(await queue.fetch(10, 0))
        return not self.bus.server.stream("REJECTED").messages


def a_seed_of(name: str) -> Document:
    return a_seed(name, ready=False)


CHILD = ObjectKey("managedseed", "garden", "child")
BUCKET = "uid-of-a-seed"
"""Stands for the uid that a Seed has been given."""
SHOOT = "uid-of-a-shoot"


def a_bucket(**spec: Any) -> Document:
    wanted = {
        "provider": {"type": "aws", "region": "eu-west-1"},
        "credentialsRef": a_reference("Secret", "backup", "garden"),
        "seedName": OURS,
    }
    return an_object("BackupBucket", BUCKET, spec={**wanted, **spec})


def an_entry(shoot: str = SHOOT, *, status: Document | None = None, **spec: Any) -> Document:
    owner = {"apiVersion": CORE, "kind": "Shoot", "name": "apollo", "uid": shoot, "controller": True}
    return an_object(
        "BackupEntry",
        f"shoot--dev--apollo--{shoot}",
        "garden-dev",
        metadata={"ownerReferences": [owner]},
        spec={"seedName": OURS, "bucketName": BUCKET, **spec},
        status=status or {},
    )


GENERATED = an_object("Secret", f"generated-bucket-{BUCKET}", "garden", data={"key": "eA=="})
ACCEPTED: list[tuple[str, str, Document, str]] = [
    ("its own Seed", "apply", a_seed_of(OURS), ""),
    ("the Seed of a ManagedSeed here", "apply", a_seed_of("child"), ""),
    ("the Seed of a ManagedSeed that leaves", "delete", a_seed_of("child"), "leaving"),
    ("the state of a shoot here", "apply", a_shoot_state(), ""),
    ("the state of a shoot that moves away", "apply", a_shoot_state(), "moving"),
    ("the bucket of its Seed", "apply", a_bucket(), "bucket of the seed"),
    ("that again", "apply", a_bucket(), "bucket of the seed, bucket made"),
    ("what was generated for it", "apply", GENERATED, "bucket of the seed, bucket made"),
    ("its deletion with its Seed", "delete", a_bucket(), "bucket of the seed, bucket made, seed leaving"),
    ("the entry of a shoot here", "apply", an_entry(), "bucket of the seed, bucket made"),
    ("its move with the shoot", "apply", an_entry(seedName=THEIRS), "bucket of the seed, bucket made, moving"),
    ("its entry", "status", an_entry(status={"seedName": OURS}), "bucket of the seed, bucket made, entry made"),
    ("that it has left", "status", an_entry(status={"seedName": None}), "bucket of the seed, bucket made, entry made"),
]
REJECTED: list[tuple[str, str, Document, str]] = [
    ("another Seed", "apply", a_seed_of(THEIRS), ""),
    ("its own Seed's deletion", "delete", a_seed_of(OURS), ""),
    ("another Seed's deletion", "delete", a_seed_of(THEIRS), ""),
    ("the deletion of a Seed whose ManagedSeed stays", "delete", a_seed_of("child"), ""),
    ("a Seed whose ManagedSeed leaves", "apply", a_seed_of("child"), "leaving"),
    ("a Seed whose ManagedSeed is elsewhere", "apply", a_seed_of("child"), "hosted elsewhere"),
    ("its deletion", "delete", a_seed_of("child"), "hosted elsewhere, leaving"),
    ("the state of a shoot elsewhere", "apply", a_shoot_state(), "elsewhere"),
    ("the state of no shoot", "apply", a_shoot_state("none"), ""),
    ("a Secret", "apply", a_secret("apollo.kubeconfig"), ""),
    ("a BackupBucket", "apply", an_object("BackupBucket", "bucket-2", spec={"seedName": OURS}), ""),
    ("a bucket of its Seed for another", "apply", a_bucket(seedName=THEIRS), "bucket of the seed"),
    ("the bucket of another Seed", "apply", a_bucket(), "bucket of another seed"),
    ("one of its Seed that leaves", "apply", a_bucket(), "bucket of the seed, seed leaving"),
    ("what was generated for none", "apply", GENERATED, "bucket of the seed"),
    ("what was generated for another's", "apply", GENERATED, "bucket of another seed, bucket made"),
    ("more than data of it", "apply", {**GENERATED, "type": "Opaque"}, "bucket of the seed, bucket made"),
    ("the entry of a shoot elsewhere", "apply", an_entry(), "bucket of the seed, bucket made, elsewhere"),
    ("one in another's bucket", "apply", an_entry(), "bucket of another seed, bucket made"),
    ("one for another seed", "apply", an_entry(seedName=THEIRS), "bucket of the seed, bucket made"),
    ("one of another shoot's uid", "apply", an_entry("nobody"), "bucket of the seed, bucket made"),
    ("an entry's deletion", "delete", an_entry(), "bucket of the seed, bucket made, entry made"),
    (
        "an entry for another",
        "status",
        an_entry(status={"seedName": THEIRS}),
        "bucket of the seed, bucket made, entry made",
    ),
    ("another's entry", "status", an_entry(seedName=THEIRS), "bucket of another seed, bucket made, entry made"),
    ("the deletion of a bucket whose Seed stays", "delete", a_bucket(), "bucket of the seed, bucket made"),
    ("that of another Seed's", "delete", a_bucket(), "bucket of another seed, bucket made, seed leaving"),
    ("a Bastion", "apply", an_object("Bastion", "b", "garden-dev", spec={"seedName": OURS}), ""),
    ("a Lease", "apply", an_object("Lease", OURS, "gardener-system-seed-lease", spec={}), ""),
]


MOVES = {"hosted elsewhere": ("garden/host", THEIRS), "elsewhere": ("garden-dev/apollo", THEIRS)}
MOVES["moving"] = ("garden-dev/apollo", OURS)
"""The shoot whose spec names another seed, and the seed that its status names."""


async def meddled(store: MemoryStore, case: str) -> None:
    """Have a ManagedSeed leave, or a shoot be elsewhere."""
    for each in filter(None, case.split(", ")):
        if "bucket" in each or each in ("seed leaving", "entry made"):
            continue
        key = CHILD if each == "leaving" else ObjectKey("shoot", *MOVES[each][0].split("/"))
        stored = await store.get(key)
        assert stored is not None
        if each == "leaving":
            await store.delete(stored)
            continue
        document = stored.document()
        document["spec"]["seedName"], document["status"]["seedName"] = THEIRS, MOVES[each][1]
        await store.update(stored, document)


async def of_a_seed(store: MemoryStore, case: str, document: Document) -> Document:
    """Have a seed's bucket be there, or the Seed leave; returns the document with the uid that the case means."""
    if "bucket of" not in case:
        return document
    seed = await store.get(key_of(f"seed._.{THEIRS if 'another' in case else OURS}"))
    shoot = await store.get(key_of("shoot.garden-dev.apollo"))
    assert seed is not None
    assert shoot is not None

    def with_uid(given: Document) -> Document:
        text = encode(given).replace(BUCKET.encode(), seed.uid.encode())
        return msgspec.json.decode(text.replace(SHOOT.encode(), shoot.uid.encode()))

    if "bucket made" in case:
        await store.create(with_uid(a_bucket(seedName=seed.key.name)))
    if "entry made" in case:
        await store.create(with_uid({**document, "status": {}}))
    if "seed leaving" in case:
        metadata = {**seed.document()["metadata"], "finalizers": ["gardener"]}
        protected = await store.update(seed, {**seed.document(), "metadata": metadata})
        assert isinstance(protected, StoredObject)
        await store.delete(protected)
    return with_uid(document)


@pytest.mark.parametrize(
    ("verb", "document", "case", "accepted"),
    [(*case[1:], is_accepted) for cases, is_accepted in ((ACCEPTED, True), (REJECTED, False)) for case in cases],
    ids=[name for name, *_ in (*ACCEPTED, *REJECTED)],
)
async def test_a_gardenlet_reports_on_its_own_and_on_what_it_hosts(
    verb: str, document: Document, case: str, *, accepted: bool
) -> None:
    apiserver = await landscape(shoot_on(OURS))
    store = apiserver.store
    child = await store.get(CHILD)
    assert child is not None
    await store.update(child, {**child.document(), "metadata": {**child.document()["metadata"], "finalizers": ["x"]}})
    if verb == "delete" and document["metadata"]["name"] == "child":
        await apiserver.create([a_seed_of("child")])
    await with_any_extensions(store)
    await meddled(store, case)
    document = await of_a_seed(store, case, document)
    assert await Reports(store).send(OURS, verb, document) is accepted
