"""What is named stays and what is not goes, whatever order things come, change and go in.

People write through the whole admission. Two replicas of the controller manager hear of it late and in any order, each
by itself; either takes a message off the queues, twice at times, and each starts anew now and then. The model knows
nothing but manifests: it reads who names what off those that are stored.
"""

import asyncio
import random
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.controller.controller import Requeue, RequeueAfter
from gardenbus.common.errors import GardenbusError
from gardenbus.controllermanager.controllers import credentials, protection, reference
from gardenbus.controllermanager.watch.cached_bindings import CachedBindings
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
)
from tests.support.loops import Garden, request_of

T = TypeVar("T")

SECURITY = "security.gardener.cloud/v1alpha1"
PLACE = "garden"
"""Shoots and Seeds name what is here."""

LOOPS: Mapping[str, Loop] = {loop.name: loop for loop in (*protection.LOOPS, *credentials.LOOPS, *reference.LOOPS)}
GUARDED = ("cloudprofile", "namespacedcloudprofile", "exposureclass", "secretbinding", "credentialsbinding")
"""Kinds that the write which deletes them looks after."""
PROTECTED = ("quota", "secret", "configmap", "workloadidentity", "internalsecret")
"""Kinds that a finalizer keeps, once the controller manager has seen that something names them."""
BINDINGS = ("secretbinding", "credentialsbinding")
"""Kinds whose references the store counts: no finalizer goes while there is one."""
KINDS = (*PROTECTED, *GUARDED, "shoot", "seed")
"""In an order in which all may be made."""
CLUSTER_SCOPED = ("cloudprofile", "exposureclass", "seed")

GARDENER = "gardener"
BY_SHOOT, BY_BINDING = "gardener.cloud/reference-protection", "gardener.cloud/gardener"
REFERABLE = {
    "secret": ("v1", "Secret"),
    "configmap": ("v1", "ConfigMap"),
    "workloadidentity": (SECURITY, "WorkloadIdentity"),
}


def key_of(kind: str, name: str) -> ObjectKey:
    return ObjectKey(kind, "" if kind in CLUSTER_SCOPED else PLACE, name)


def an_object(kind: str, name: str, api_version: str = CORE, **more: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": PLACE}, **more}


def a_document(key: ObjectKey, chance: random.Random) -> Document:
    """A manifest of a key that names others at random."""
    name, other = key.name, chance.choice("ab")
    match key.kind:
        case "cloudprofile":
            return a_cloudprofile(name)
        case "namespacedcloudprofile":
            return {
                **a_namespaced_cloudprofile(name, PLACE),
                "spec": {"parent": {"kind": "CloudProfile", "name": other}},
            }
        case "exposureclass":
            return {"apiVersion": CORE, "kind": "ExposureClass", "metadata": {"name": name}, "handler": "public"}
        case "secretbinding" | "credentialsbinding":
            return a_binding(key.kind, name, other, chance)
        case "quota":
            scope = {"apiVersion": CORE, "kind": "Project"}
            return an_object("Quota", name, spec={"scope": scope, "metrics": {"cpu": "1000"}})
        case "workloadidentity":
            spec = {"audiences": ["a"], "targetSystem": {"type": "aws"}}
            return an_object("WorkloadIdentity", name, SECURITY, spec=spec)
        case "secret" | "configmap":
            return an_object(REFERABLE[key.kind][1], name, "v1")
        case "internalsecret":
            return an_object("InternalSecret", name)
        case "seed":
            return a_seed(name, spec={"resources": some_resources(chance, "secret", "configmap")})
        case _:
            return a_shoot_that_names(name, chance)


def a_binding(kind: str, name: str, other: str, chance: random.Random) -> Document:
    quotas = [{"name": each, "namespace": PLACE} for each in "ab" if chance.random() < 0.4]
    more: Document = {"provider": {"type": "aws"}, "quotas": quotas}
    if kind == "secretbinding":
        return an_object("SecretBinding", name, secretRef={"name": other}, **more)
    version, referred = chance.choice([("v1", "Secret"), (SECURITY, "WorkloadIdentity"), (CORE, "InternalSecret")])
    more["credentialsRef"] = {"apiVersion": version, "kind": referred, "name": other, "namespace": PLACE}
    return an_object("CredentialsBinding", name, SECURITY, **more)


def a_shoot_that_names(name: str, chance: random.Random) -> Document:
    kind = chance.choice(["CloudProfile", "NamespacedCloudProfile"])
    spec: Document = {"cloudProfile": {"kind": kind, "name": chance.choice("ab")}}
    spec["resources"] = some_resources(chance, *REFERABLE)
    if chance.random() < 0.5:
        spec["exposureClassName"] = chance.choice("ab")
    field = chance.choice(["secretBindingName", "credentialsBindingName", ""])
    spec |= {field: chance.choice("ab")} if field else {}
    confirmed = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}
    return a_shoot(name, PLACE, metadata=confirmed, spec=spec)


def some_resources(chance: random.Random, *kinds: str) -> list[Document]:
    references = [(kind, name) for kind in kinds for name in "ab" if chance.random() < 0.25]
    return [
        {
            "name": f"{kind}-{name}",
            "resourceRef": dict(zip(("apiVersion", "kind"), REFERABLE[kind], strict=True)) | {"name": name},
        }
        for kind, name in references
    ]


def named(document: Document) -> Iterator[ObjectKey]:
    """What a manifest names, read as a person would."""
    spec: Document = document.get("spec") or {}
    if parent := spec.get("parent"):
        yield key_of("cloudprofile", parent["name"])
    if profile := spec.get("cloudProfile"):
        yield key_of(profile["kind"].lower(), profile["name"])
    for field in ("exposureClass", "secretBinding", "credentialsBinding"):
        if name := spec.get(f"{field}Name"):
            yield key_of(field.lower(), name)
    for each in spec.get("resources") or ():
        yield key_of(each["resourceRef"]["kind"].lower(), each["resourceRef"]["name"])
    if secret := document.get("secretRef"):
        yield key_of("secret", secret["name"])
    if reference := document.get("credentialsRef"):
        yield key_of(reference["kind"].lower(), reference["name"])
    for quota in document.get("quotas") or ():
        yield key_of("quota", quota["name"])


def finalizers(document: Document) -> set[str]:
    return set(document["metadata"].get("finalizers") or ())


def is_held(document: Document | None) -> bool:
    return document is not None and not {GARDENER, BY_BINDING}.isdisjoint(finalizers(document))


def is_deleting(document: Document) -> bool:
    return bool(document["metadata"].get("deletionTimestamp"))


class Replica:
    """One controller manager: what it has heard of so far, and its loops."""

    def __init__(self, garden: Garden, queue: dict[tuple[str, ObjectKey], None]) -> None:
        self.received: dict[ObjectKey, StoredObject] = {}
        self.is_synced = False
        self._garden = garden
        self._bindings = CachedBindings()
        self.loops: dict[str, BuiltLoop] = {}
        for name, loop in LOOPS.items():
            context = garden.context(name, lambda key, name=name: queue.setdefault((name, key)))
            self.loops[name] = loop.build(context._replace(bindings=self._bindings))

    def changes(self) -> list[ObjectKey]:
        """Objects of which it has not heard the latest."""
        rows = self._garden.store.state.rows
        changed = [key for key, row in rows.items() if self.received.get(key) != row.stored]
        return sorted({*changed, *(key for key in self.received if key not in rows)})

    def hear(self, key: ObjectKey) -> None:
        row = self._garden.store.state.rows.get(key)
        old, new = self.received.pop(key, None), row.stored if row else None
        if new is not None:
            self.received[key] = new
        self._bindings.changed(key, old, new)
        for name, loop in LOOPS.items():
            if key.kind in loop.follows:
                self.loops[name].changed(key, old, new)
        self.is_synced |= not self.changes()


class References(RuleBasedStateMachine):
    """Every rule is one thing that may happen next."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.queue: dict[tuple[str, ObjectKey], None] = {}
        self.timers: dict[tuple[str, ObjectKey], None] = {}
        self.seen: set[tuple[ObjectKey, ObjectKey]] = set()
        """Uses (by whom, of what) that were never given up since every replica has acted on them, or a binding's was
        of something held."""

    def do(self, awaitable: Awaitable[T]) -> T:
        async def done() -> T:
            return await awaitable

        return self.runner.run(done())

    @initialize()
    def build(self) -> None:
        self.garden = Garden()
        self.do(self.garden.add(a_project("garden", PLACE)))
        self.do(self.garden.serve_apiserver())
        self.api = ApiserverClient(self.garden.bus, Subjects(), user="operator")
        self.replicas = [Replica(self.garden, self.queue) for _ in range(2)]
        for kind in KINDS:
            for seed, name in enumerate("ab"):
                self.apply(kind, name, seed)

    def teardown(self) -> None:
        try:
            if hasattr(self, "garden"):
                self.converge()
        finally:
            self.runner.close()

    def documents(self) -> dict[ObjectKey, Document]:
        return {key: row.stored.document() for key, row in self.garden.store.state.rows.items()}

    def request(self, tail: str, body: Document | None = None) -> None:
        try:
            self.do(self.api.request(tail, body))
        except GardenbusError as error:
            if error.code not in (403, 404, 409, 422):
                raise

    # ------------------------------------------------------------------------------------------ people, gardenlets

    @rule(kind=st.sampled_from(KINDS), name=st.sampled_from("ab"), seed=st.integers(0, 2**20))
    def apply(self, kind: str, name: str, seed: int) -> None:
        self.request("apply", a_document(key_of(kind, name), random.Random(seed)))

    @rule(kind=st.sampled_from(KINDS), name=st.sampled_from("ab"))
    def delete(self, kind: str, name: str) -> None:
        self.request(f"delete.{key_of(kind, name).tail}")

    @rule(kind=st.sampled_from(["shoot", "seed"]), name=st.sampled_from("ab"), holds=st.booleans())
    def a_gardenlet_takes_it_or_lets_go(self, kind: str, name: str, *, holds: bool) -> None:
        key = key_of(kind, name)
        document = self.documents().get(key)
        if document is None or is_deleting(document) == holds:
            return
        kept = sorted(finalizers(document) - {GARDENER} | ({GARDENER} if holds else set()))
        self.do(self.garden.change(key, lambda each: each["metadata"].update(finalizers=kept)))

    # ------------------------------------------------------------------------------------------ the controller manager

    @rule(which=st.integers(0, 1), index=st.integers(0, 40))
    def hear(self, which: int, index: int) -> None:
        replica = self.replicas[which]
        if changes := replica.changes():
            replica.hear(changes[index % len(changes)])

    @rule(which=st.integers(0, 1), index=st.integers(0, 40), again=st.booleans())
    def reconcile(self, which: int, index: int, *, again: bool) -> None:
        replica = self.replicas[which]
        if not self.queue or not replica.is_synced:
            return
        message = list(self.queue)[index % len(self.queue)]
        name, key = message
        del self.queue[message]
        result = self.do(replica.loops[name].reconcile(request_of(LOOPS[name], key)))
        if again or isinstance(result, Requeue):
            self.queue[message] = None
        if isinstance(result, RequeueAfter):
            self.timers[message] = None

    @rule(which=st.integers(0, 1))
    def start_anew(self, which: int) -> None:
        self.replicas[which] = Replica(self.garden, self.queue)

    @rule()
    def converge(self) -> None:
        """Everybody hears of everything and does what there is to do, timers once included."""
        for _ in range(20):
            version = self.garden.store.state.version
            self.queue |= self.timers
            self.timers.clear()
            while self.queue or any(replica.changes() for replica in self.replicas):
                for which, replica in enumerate(self.replicas):
                    for key in replica.changes():
                        replica.hear(key)
                    replica.is_synced = True
                    self.reconcile(which, 0, again=False)
            if self.garden.store.state.version == version:
                break
        else:
            raise AssertionError("it never comes to rest")
        self.at_rest()

    # ------------------------------------------------------------------------------------------ what must hold

    def at_rest(self) -> None:
        documents = self.documents()
        uses = set(uses_in(documents))
        for key, document in documents.items():
            held = finalizers(document)
            users = {user.kind for user, used in uses if used == key}
            if key.kind in (*GUARDED, "quota"):
                assert GARDENER in held, f"{key} could go at once"
                assert users or not is_deleting(document), f"nobody names {key}, which is deleted and stays"
            elif key.kind in PROTECTED:
                wanted = {BY_SHOOT} if users & {"shoot", "seed"} else set[str]()
                wanted |= {BY_BINDING} if users - {"shoot", "seed"} else set()
                assert held == wanted or (is_deleting(document) and held and held < wanted), (key, held, users)
            elif key.kind in ("shoot", "seed"):
                protects = any(user == key and used in documents for user, used in uses if used.kind in REFERABLE)
                is_late = protects and is_deleting(document) and BY_SHOOT not in held  # nothing is put on what leaves
                assert is_late or (BY_SHOOT in held) == protects, f"{key} has {held}"
        self.seen = {(user, used) for user, used in uses if used in documents}

    @invariant()
    def what_is_named_is_there(self) -> None:
        if not hasattr(self, "garden"):
            return
        documents = self.documents()
        uses = set(uses_in(documents))
        missing = {(user, used) for user, used in uses if used.kind in GUARDED and used not in documents}
        assert not missing, f"of the guarded: {missing}"
        self.seen &= uses
        lost = {(user, used) for user, used in self.seen if used not in documents}
        assert not lost, f"of those that the controller manager knew of: {lost}"
        self.seen |= {(user, used) for user, used in uses if user.kind in BINDINGS and is_held(documents.get(used))}


def uses_in(documents: Mapping[ObjectKey, Document]) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """Who names what; Shoots and Seeds let go of what a finalizer keeps when their gardenlet has let go of them."""
    for user, document in documents.items():
        has_left = user.kind in ("shoot", "seed") and is_deleting(document) and GARDENER not in finalizers(document)
        for used in named(document):
            if not has_left or used.kind not in PROTECTED:
                yield user, used


TestReferences = References.TestCase
TestReferences.settings = settings(stateful_step_count=50, max_examples=60, deadline=None)
