"""A stolen gardenlet credential reads and changes only what a naive search of the graph leads to.

It leads to no more afterwards, but for Secrets of the garden that its own Seed may name.
"""

import asyncio
import json
import random

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.ports.bus import Request
from tests.support.builders import (
    a_cloudprofile,
    a_managed_seed,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
    a_shoot_state,
)
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
SEEDS = ("s0", "s1", "s2")
NAMESPACES = ("garden-a", "garden-b", "garden")
NAMES = ("x0", "x1", "x2")
KINDS = ("secret", "configmap", "secretbinding", "credentialsbinding", "shoot", "shootstate", "namespacedcloudprofile")
WRITES = {
    "seed": ("apply", "patch"),
    "shoot": ("apply", "patch"),
    "managedseed": ("apply", "patch"),
    "shootstate": ("apply", "patch", "delete"),
    "secret": ("apply", "patch"),
}
EVERYBODYS = frozenset({"seed", "cloudprofile", "exposureclass"})
LANDSCAPES, REQUESTS = 8, 400


def plain(kind: str, api_version: str, namespace: str, name: str, **fields: object) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}


def landscape(chance: random.Random) -> list[Document]:
    """Shoots, and what they may or may not refer to, at random."""

    def some(namespace: str) -> Document:
        """A reference, now and then into another namespace."""
        return {"name": chance.choice(NAMES), "namespace": chance.choice((namespace, namespace, *NAMESPACES))}

    documents: list[Document] = [a_cloudprofile(), a_project("a", "garden-a"), a_project("b", "garden-b")]
    for seed in SEEDS:
        backup = {"provider": "aws", "credentialsRef": {"kind": "Secret", **some("garden")}}
        documents.append(a_seed(seed, spec={"backup": backup} if chance.random() < 0.5 else {}))
    for namespace in NAMESPACES:
        for name in NAMES:
            documents += [
                plain("Secret", "v1", namespace, name, data={}),
                plain("ConfigMap", "v1", namespace, name, data={}),
                plain(
                    "SecretBinding", "core.gardener.cloud/v1beta1", namespace, name,
                    secretRef=some(namespace), provider={"type": "aws"},
                ),
                plain(
                    "CredentialsBinding", "security.gardener.cloud/v1alpha1", namespace, name,
                    credentialsRef={"kind": "Secret", "apiVersion": "v1", **some(namespace)}, provider={"type": "aws"},
                ),
                a_namespaced_cloudprofile(name, namespace),
                a_shoot_state(name, namespace),
            ]  # fmt: skip
            documents.append(a_shoot(name, namespace, spec=_references(chance)))
    for name in NAMES[:2]:
        config = {"seedConfig": {"spec": {"backup": {"credentialsRef": {"kind": "Secret", **some("garden")}}}}}
        documents.append(a_managed_seed(name, name, spec={"gardenlet": {"config": config}}))
    return documents


def _references(chance: random.Random) -> Document:
    spec: Document = {}
    if seed := chance.choice((*SEEDS, "")):
        spec["seedName"] = seed
    if chance.random() < 0.4:
        spec["secretBindingName"] = chance.choice(NAMES)
    elif chance.random() < 0.5:
        spec["credentialsBindingName"] = chance.choice(NAMES)
    if chance.random() < 0.3:
        spec["dns"] = {"providers": [{"type": "aws", "secretName": chance.choice(NAMES)}]}
    if chance.random() < 0.3:
        policy = {"configMapRef": {"name": chance.choice(NAMES)}}
        spec["kubernetes"] = {"version": "1.31.1", "kubeAPIServer": {"auditConfig": {"auditPolicy": policy}}}
    if chance.random() < 0.3:
        spec["resources"] = [{"name": "r", "resourceRef": {"kind": "Secret", "name": chance.choice(NAMES)}}]
    if chance.random() < 0.3:
        spec["cloudProfile"] = {"kind": "NamespacedCloudProfile", "name": chance.choice(NAMES)}
    return spec


def naive(documents: dict[ObjectKey, Document], seed: str) -> set[ObjectKey]:
    """Everything that the Seed leads to: all edges of all objects, over and over until nothing is added."""
    found = {ObjectKey("seed", "", seed)}
    while True:
        more: set[ObjectKey] = set(found)
        for key, document in documents.items():
            spec, status = section(document, "spec"), section(document, "status")
            if key.kind == "shoot" and seed in (spec.get("seedName"), status.get("seedName")):
                more |= {key, ObjectKey("shootstate", *key[1:]), ObjectKey("namespace", "", key.namespace)}
                more |= {each for each, _ in documents.items() if _is_project_of(documents[each], key.namespace)}
                for field, kind in (
                    ("secretBindingName", "secretbinding"),
                    ("credentialsBindingName", "credentialsbinding"),
                ):
                    more.add(ObjectKey(kind, key.namespace, spec.get(field, "")))
                more.add(
                    ObjectKey("namespacedcloudprofile", key.namespace, section(spec, "cloudProfile").get("name", ""))
                )
                named = [provider["secretName"] for provider in section(spec, "dns").get("providers", ())]
                named += [resource["resourceRef"]["name"] for resource in spec.get("resources", ())]
                more |= {ObjectKey("secret", key.namespace, name) for name in named}
                policy = section(spec, "kubernetes", "kubeAPIServer", "auditConfig", "auditPolicy", "configMapRef")
                more.add(ObjectKey("configmap", key.namespace, policy.get("name", "")))
            if key in found and key.kind in ("secretbinding", "credentialsbinding"):
                reference = document.get("secretRef") or document["credentialsRef"]
                more.add(ObjectKey("secret", reference["namespace"], reference["name"]))
            if key.kind == "managedseed" and ObjectKey("shoot", "garden", section(spec, "shoot")["name"]) in found:
                more.add(key)
                more |= _backup(section(spec, "gardenlet", "config", "seedConfig", "spec"))
            if key == ObjectKey("seed", "", seed):
                more |= _backup(spec)
        if more == found:
            return {key for key in found if key in documents}
        found = more


def _is_project_of(document: Document, namespace: str) -> bool:
    return document["kind"] == "Project" and document["spec"].get("namespace") == namespace


def _backup(spec: Document) -> set[ObjectKey]:
    reference = section(spec, "backup", "credentialsRef")
    return {ObjectKey("secret", "garden", reference["name"])} if reference.get("namespace") == "garden" else set()


def test_a_stolen_gardenlet_credential_reaches_its_own_graph_alone_and_more_only_by_its_own_seed() -> None:
    read = 0
    for number in range(LANDSCAPES):
        read += asyncio.run(_attack(random.Random(number)))
    assert read > LANDSCAPES  # it is no wall


async def _attack(chance: random.Random) -> int:
    """Send random requests as the gardenlet of one seed; returns how many of them read something of its own."""
    clock = FakeClock()
    store = MemoryStore(clock, is_open=True)
    documents: dict[ObjectKey, Document] = {}
    for document in landscape(chance):
        metadata = document["metadata"]
        key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
        seed = await store.get(ObjectKey("seed", "", section(document, "spec").get("seedName", "")))
        await store.create(document, scheduling_generation=seed.scheduling_generation if seed is not None else None)
        documents[key] = document
    handler = ApiHandler(
        bus=MemoryBus(clock),
        store=store,
        clock=clock,
        subjects=SUBJECTS,
        writer=Writer(store, clock),
        seed_binder=SeedBinder(store, clock),
        manifests=ManifestCache(store),
        authorizer=Authorizer(store, AuditLog(clock), is_enforced=True),
        concurrency=8,
    )
    at_first = own = naive(documents, "s0")
    before = {key: (await store.get(key)) for key in documents}
    headers = {"Nats-Request-Info": json.dumps({"acc": "OUT", "user": "seed:s0"})}
    read = 0
    for _ in range(REQUESTS):
        key = chance.choice(list(documents))
        verb = chance.choice(
            ("get", "get", "get", "get", "list", "apply", "patch", "delete", "bind", "explain", "adopt")
        )
        tail, body = _request(verb, key, documents[key], chance)
        response = json.loads(await handler.handle(Request(SUBJECTS.as_user("seed:s0", f"api.{tail}"), body, headers)))
        if verb == "get":
            assert response["ok"] is (key in own or key.kind in EVERYBODYS), (key, response)
            read += key in own and key.kind not in EVERYBODYS
        elif response["ok"]:
            may = (
                key.kind in EVERYBODYS
                if verb == "list"
                else key in own and verb in ("explain", *WRITES.get(key.kind, ()))
            )
            assert may, (verb, key)
            own = naive({each: found.document() for each in documents if (found := await store.get(each))}, "s0")
    stored = {key: await store.get(key) for key in documents}
    assert {key: each for key, each in stored.items() if key not in own} == {
        key: each for key, each in before.items() if key not in own
    }
    assert {(key.kind, key.namespace) for key in own - at_first} <= {("secret", "garden")}  # its own Seed names them
    return read


def _request(verb: str, key: ObjectKey, document: Document, chance: random.Random) -> tuple[str, bytes]:
    match verb:
        case "list":
            return f"list.{key.kind}" + (f".{key.namespace}" if key.namespace else ""), b""
        case "apply":
            return "apply", encode(document)
        case "patch":
            named = {"kind": "Secret", "name": chance.choice(NAMES), "namespace": chance.choice(NAMESPACES)}
            backup = {"provider": "aws", "credentialsRef": {"apiVersion": "v1", **named}}
            references = {"backup": backup} if key.kind == "seed" else {**_references(chance), "seedName": "s0"}
            leads_to_more: Document = {"spec": references}
            patch = chance.choice(({"metadata": {"labels": {"mine": "yes"}}}, leads_to_more))
            return f"patch.{key.tail}", encode(patch)
        case "bind":
            return "bind", encode({"namespace": key.namespace, "name": key.name, "seed": "s0"})
        case _:
            return f"{verb}.{key.tail}", b""
