"""A new Shoot of a class that was admitted is admitted as it would be by itself, whatever its facts have become."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.table import enabled_plugins
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.shoot_classes import functions_by_name, may_be_of_class, read_versions
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.apiserver.registry.writer import ANY_CHANGE, ChangeChecks, NewCreation, Writer
from gardenbus.common.api.changes import creation_of, with_metadata_of
from gardenbus.common.api.configuration.admission import AdmissionConfiguration, TolerationLists
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes, SizeLimit
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, GardenbusError
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import CORE, a_cloudprofile, a_project, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

NAMES = ("a", "apollo", "a--b", "a-name-that-is-rather-long")
LIMIT = 815
"""Bytes between those of a common Shoot with a short name and one with a long name."""
SOON, LATER = "2026-01-02T03:14:05Z", "2026-01-02T04:04:05Z"
USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
EXPIRES = "shoot.gardener.cloud/expiration-timestamp"

METADATA: Sequence[Document] = (
    {},
    {"labels": {"team": "a"}},
    {"labels": {"oidc": "yes", "team": "a"}},
    {"labels": {"Example.org/a": "b"}},
    {"labels": {"shoot.gardener.cloud/status": "healthy", "team": "a"}},
    {"annotations": {"gardener.cloud/created-by": "bob"}},
    {"annotations": {"shoot.gardener.cloud/ignore-alerts": "true"}},
    {"annotations": {"scheduling.gardenbus.io/requirements": "requests: {cpu: 2}"}},
    {"annotations": {"scheduling.gardenbus.io/requirements": "{priority: 100}"}},
    {"annotations": {"scheduling.gardenbus.io/requirements": "{groups: [a]}"}},
    {"annotations": {USE_AS_SEED: "true"}},
    {"annotations": {EXPIRES: LATER}},
    {"annotations": {"confirmation.gardener.cloud/deletion": "true"}},
    {"finalizers": ["a"]},
    {"generateName": "a-"},
    {"labels": None},
)
SPECS: Sequence[Document] = (
    {},
    {"purpose": "production"},
    {"kubernetes": {"version": "1.34"}},
    {"kubernetes": {"version": "1.33.9"}},
    {"kubernetes": {"version": None}},
    {"tolerations": [{"key": "dedicated"}]},
    {"exposureClassName": "public"},
    {"exposureClassName": "public", "seedSelector": {"matchLabels": {"ring": "2"}}},
    {"networking": {"type": "other"}},
    {"networking": {"type": 1}},
    {"extensions": [{"type": "shoot-dns-service"}]},
    {"unknown": 1},
    {"monitoring": {"alerting": {}}},
    {"seedName": "somewhere"},
    {"credentialsBindingName": "limited"},
    {"kubernetes": {"kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}}}},
    {"resources": [{"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "policy"}}]},
    {"resources": [{"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "absent"}}]},
    {"hibernation": {"enabled": True, "schedules": [{"start": "0 20 * * *"}]}, "purpose": "evaluation"},
    {"dns": {"domain": "a.example.org", "providers": [{"type": "aws-route53", "primary": True}]}},
    {"addons": {"kubernetesDashboard": {"enabled": True}}, "purpose": "evaluation"},
    {"controlPlane": {"zones": ["a"]}, "systemComponents": {"coreDNS": {"autoscaling": {"mode": "horizontal"}}}},
    {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}, "seedSelector": {}},
    {"provider": {"workers": []}},
    {"maintenance": {"autoRotation": {"credentials": {"sshKeypair": {"rotationPeriod": "24h"}}}}},
)
_MACHINE = {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}


def a_profile(**versions: str) -> Document:
    listed = [
        {"version": "1.35.0"},
        {"version": "1.34.1"},
        *({"version": text, "expirationDate": at} for text, at in versions.items()),
    ]
    return a_cloudprofile(spec={"kubernetes": {"versions": listed}, "machineTypes": [_MACHINE]})


def a_registration(*types: tuple[str, str]) -> Document:
    resources = [{"kind": kind, "type": name} for kind, name in types]
    return {"apiVersion": CORE, "kind": "ControllerRegistration", "metadata": {"name": "all"},
            "spec": {"resources": resources}}  # fmt: skip


def a_preset(weight: int) -> Document:
    server = {"clientID": "client", "issuerURL": f"https://of-{weight}"}
    return {
        "apiVersion": "settings.gardener.cloud/v1alpha1",
        "kind": "OpenIDConnectPreset",
        "metadata": {"name": "preset", "namespace": "garden-dev"},
        "spec": {"server": server, "weight": weight, "shootSelector": {"matchLabels": {"oidc": "yes"}}},
    }


def an_exposure_class(ring: str) -> Document:
    scheduling = {"seedSelector": {"matchLabels": {"ring": ring}}, "tolerations": [{"key": "public"}]}
    return {"apiVersion": CORE, "kind": "ExposureClass", "metadata": {"name": "public"}, "handler": "public",
            "scheduling": scheduling}  # fmt: skip


def a_quota(cpu: str) -> Document:
    metadata = {"name": "quota", "namespace": "garden-dev"}
    scope = {"apiVersion": CORE, "kind": "Project"}
    return {
        "apiVersion": CORE,
        "kind": "Quota",
        "metadata": metadata,
        "spec": {"scope": scope, "metrics": {"cpu": cpu}},
    }


BINDING: Document = {
    "apiVersion": "security.gardener.cloud/v1alpha1",
    "kind": "CredentialsBinding",
    "metadata": {"name": "limited", "namespace": "garden-dev"},
    "provider": {"type": "aws"},
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "secret", "namespace": "garden-dev"},
}
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": "garden-dev"}}
POLICY: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policy", "namespace": "garden-dev"}}
NAMESPACE: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}}
OF_A_QUOTA = merged(BINDING, {"quotas": [{"name": "quota", "namespace": "garden-dev"}]})
WHITELIST = {"tolerations": {"whitelist": [{"key": "dedicated"}, {"key": "given"}], "defaults": [{"key": "given"}]}}

NEEDED = (
    *((kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")),
    *(("Network", "calico"), ("OperatingSystemConfig", "gardenlinux")),
)

FACTS: Sequence[Document] = (
    a_profile(),
    a_profile(**{"1.34.2": SOON}),
    a_profile(**{"1.34.3": SOON, "1.33.9": LATER}),
    a_project(),
    a_project(spec=WHITELIST),
    a_project(metadata={"annotations": {"scheduling.gardenbus.io/max-priority": "1000"}}),
    an_exposure_class("1"),
    an_exposure_class("2"),
    a_preset(1),
    a_preset(2),
    a_registration(*NEEDED),
    a_registration(*NEEDED, ("Extension", "shoot-dns-service")),
    a_registration(),
    NAMESPACE,
    SECRET,
    BINDING,
    POLICY,
)
CONFIGURATIONS: Sequence[AdmissionConfiguration] = (
    AdmissionConfiguration(),
    AdmissionConfiguration(switched={"ShootVPAEnabledByDefault": True}, priority_by_purpose={"production": 50}),
    AdmissionConfiguration(
        switched={"ResourceSize": True},
        tolerations=TolerationLists(defaults=({"key": "everywhere"},)),
        resource_sizes=ResourceSizes(
            limits=(SizeLimit(api_groups=("*",), api_versions=("*",), resources=("shoots",), size=LIMIT, count=3),)
        ),
    ),
)


class Order(NamedTuple):
    """A Shoot that somebody orders."""

    name: str
    metadata: int
    spec: int
    user: str
    validation: FieldValidation

    @property
    def document(self) -> Document:
        return a_shoot(self.name, metadata=METADATA[self.metadata], spec=SPECS[self.spec])


class Registry:
    """Two writers on the same facts: one that keeps classes, and one that admits each Shoot by itself."""

    def __init__(self, configuration: AdmissionConfiguration = CONFIGURATIONS[0]) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.manifests = ManifestCache(self.store)
        self.admission = Admission(enabled_plugins(configuration))
        self.writer = Writer(self.store, self.clock, self.admission)
        self.checks = ANY_CHANGE
        self.of_classes = 0

    async def fact(self, document: Document) -> None:
        await Writer(self.store, self.clock).apply(document, self._reads(), user="admin")

    async def removed(self, document: Document) -> None:
        await Writer(self.store, self.clock).delete(key_of(document), self._reads(), user="admin")

    async def order(self, order: Order) -> None:
        """Admit a Shoot both ways, and compare what comes of it."""
        with suppress(GardenbusError):
            key_of(order.document)
            by_itself = await self.outcome(order, is_by_class=False)
            assert await self.outcome(order, is_by_class=True) == by_itself

    async def outcome(self, order: Order, *, is_by_class: bool) -> Any:
        document, user, validation = order.document, order.user, order.validation
        prepared = None
        if is_by_class:
            prepared = self.writer.prepared_shoot(document, user=user, validation=validation)
        try:
            creation = await self.writer.new_object(
                document,
                self._reads(),
                key=key_of(document),
                user=user,
                validation=validation,
                checks=self.checks,
                prepared=prepared,
            )
        except UnmetDependency as unmet:
            return type(unmet.error), str(unmet.error)
        except GardenbusError as error:
            return type(error), str(error)
        if creation is not None and creation.creation.like is not None:
            self.of_classes += 1
        return creation and _stored(creation)

    def _reads(self) -> ReadCache:
        return ReadCache(self.store, self.manifests)


def _stored(creation: NewCreation) -> object:
    """All that is stored, and in which order of fields."""
    stored, notices = creation.creation, creation.notices
    alone, like = creation_of(stored.document), stored.like
    change = alone if like is None else with_metadata_of(stored.document, like)
    return encode(stored.document), stored.last_applied, stored.owner_setters, stored.preconditions, change, notices


ORDERS = st.builds(
    Order,
    st.sampled_from(NAMES),
    st.one_of(st.integers(0, 7), st.integers(0, len(METADATA) - 1)),
    st.one_of(st.integers(0, 2), st.integers(0, len(SPECS) - 1)),
    st.sampled_from(("ann", "ann", "bob")),
    st.sampled_from((FieldValidation.WARN, *FieldValidation)),
)
STEPS: st.SearchStrategy[Any] = st.one_of(
    ORDERS,
    st.tuples(st.just("again"), st.sampled_from(NAMES), st.sampled_from(("ann", "bob"))),
    st.tuples(st.just("again"), st.sampled_from(NAMES), st.just("ann")),
    st.tuples(st.just("fact"), st.sampled_from((*FACTS, OF_A_QUOTA, a_quota("100"), a_quota("2")))),
    st.tuples(st.just("removed"), st.sampled_from(FACTS[6:])),
    st.tuples(st.just("later"), st.sampled_from((1, 599, 600, 3600))),
)


@given(st.lists(STEPS, min_size=4, max_size=30), st.sampled_from(CONFIGURATIONS))
@settings(max_examples=250, deadline=None)
def test_of_a_class_the_same_is_stored_as_by_itself(steps: Sequence[Any], configured: AdmissionConfiguration) -> None:
    asyncio.run(_taken(steps, Registry(configured)))


async def _taken(steps: Sequence[Any], registry: Registry) -> None:
    last = Order("a", 1, 0, "ann", FieldValidation.WARN)
    for fact in (FACTS[0], FACTS[3], FACTS[6], SECRET, BINDING, POLICY):
        await registry.fact(fact)
    for step in ("a", "b", *steps):
        match step:
            case Order():
                last = step
                for name in (step.name, "b", "c", "d"):
                    await registry.order(step._replace(name=name))
            case str(name):
                await registry.order(last._replace(name=name))
            case ("again", name, user):
                await registry.order(last._replace(name=name, user=user))
            case ("fact", document):
                with suppress(GardenbusError, UnmetDependency):
                    await registry.fact(document)
            case ("removed", document):
                with suppress(GardenbusError, UnmetDependency):
                    await registry.removed(document)
            case _:
                registry.clock.advance(step[1])
    event(f"of classes: {min(registry.of_classes, 20) // 5 * 5}")


COMMON = Order("a", 1, 0, "ann", FieldValidation.WARN)


@contextmanager
def _uses_class(registry: Registry, *, expected: bool) -> Generator[None]:
    before = registry.of_classes
    yield
    assert (registry.of_classes > before) is expected


async def _with_a_class(configured: AdmissionConfiguration = CONFIGURATIONS[0]) -> Registry:
    registry = Registry(configured)
    for fact in (FACTS[0], FACTS[3], NAMESPACE, FACTS[10]):
        await registry.fact(fact)
    for name in ("a", "b"):
        await registry.order(COMMON._replace(name=name))
    with _uses_class(registry, expected=True):
        await registry.order(COMMON._replace(name="c"))
    return registry


async def test_the_third_shoot_of_a_class_is_admitted_by_it() -> None:
    registry = await _with_a_class()

    for other in (
        COMMON._replace(user="bob"),
        COMMON._replace(metadata=2),
        COMMON._replace(spec=1),
        COMMON._replace(validation=FieldValidation.STRICT),
        COMMON._replace(name="a--b"),
    ):
        with _uses_class(registry, expected=False):
            await registry.order(other)


@pytest.mark.parametrize(
    "fact",
    [FACTS[1], FACTS[4], a_preset(1), FACTS[11], merged(NAMESPACE, {"metadata": {"labels": {"a": "b"}}})],
    ids=["profile", "project", "preset", "registration", "namespace"],
)
async def test_a_changed_fact_drops_a_class(fact: Document) -> None:
    registry = await _with_a_class()
    await registry.fact(fact)

    with _uses_class(registry, expected=False):
        await registry.order(COMMON)
    with _uses_class(registry, expected=True):
        await registry.order(COMMON)


async def test_a_removed_fact_drops_a_class() -> None:
    registry = await _with_a_class()
    await registry.removed(FACTS[10])

    with _uses_class(registry, expected=False):
        await registry.order(COMMON)


async def test_a_class_ends_when_a_version_of_its_profile_expires() -> None:
    registry = Registry()
    open_version = COMMON._replace(spec=2)
    for fact in (FACTS[1], FACTS[3]):
        await registry.fact(fact)
    for _ in range(2):
        await registry.order(open_version)
    registry.clock.advance(599)
    with _uses_class(registry, expected=True):
        await registry.order(open_version)
    registry.clock.advance(1)
    with _uses_class(registry, expected=False):
        await registry.order(open_version)


async def test_a_shoot_that_takes_a_verb_of_its_requester_is_admitted_by_itself() -> None:
    registry = await _with_a_class()
    prioritized = COMMON._replace(metadata=8)
    for _ in range(3):
        with _uses_class(registry, expected=False):
            await registry.order(prioritized)

    def rejected(_old: Document | None, _new: Document) -> None:
        raise Forbidden("no")

    registry.checks = ChangeChecks(verbs=rejected)
    await registry.order(prioritized)


async def test_rights_of_a_requester_are_checked_for_each_shoot_of_a_class() -> None:
    registry = await _with_a_class()

    def rejected(_old: Document | None, _new: Document) -> None:
        raise Forbidden("not this one")

    registry.checks = ChangeChecks(change=rejected, preconditions=(WritePrecondition("stored", "garden-dev", ""),))
    await registry.order(COMMON)
    registry.checks = registry.checks._replace(change=ANY_CHANGE.change)
    with _uses_class(registry, expected=True):
        await registry.order(COMMON)


async def test_a_shoot_of_a_class_that_is_too_large_by_its_name_is_rejected() -> None:
    registry = await _with_a_class(CONFIGURATIONS[2])
    large = COMMON._replace(name=NAMES[3])

    with _uses_class(registry, expected=False):
        await registry.order(large)
    _, message = await registry.outcome(large, is_by_class=True)
    assert f"the maximum is {LIMIT}" in message


def test_what_a_quota_counts_is_no_fact_of_a_class() -> None:
    profile = merged(a_profile(), {"metadata": {"uid": "u", "resourceVersion": "1"}})
    key = ObjectKey("cloudprofile", "", "aws")

    assert read_versions(RelatedObjects(objects={key: profile})) is not None
    assert read_versions(RelatedObjects(objects={key: profile}, demands={key: {}})) is None
    assert read_versions(RelatedObjects(objects={key: a_profile()})) is None


def test_a_plugin_that_mutates_each_shoot_leaves_no_classes() -> None:
    plugins = Admission().plugins
    unlisted = next(plugin for plugin in plugins if plugin.name == "ShootMutator")._replace(name="Unlisted")

    assert functions_by_name(Admission(plugins)) is not None
    assert functions_by_name(Admission((*plugins, unlisted))) is None


def test_a_shoot_of_a_class_says_nothing_about_itself_alone() -> None:
    of_itself: Sequence[Document] = (
        {"metadata": METADATA[10]},
        {"metadata": METADATA[11]},
        {"spec": {"seedName": "a"}},
        {"status": {}},
    )
    assert may_be_of_class(a_shoot())
    for changes in of_itself:
        assert not may_be_of_class(merged(a_shoot(), changes))
