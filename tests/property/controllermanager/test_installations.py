"""What each seed gets, compared with a naive writing of the definition, over changes in any order."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager.controllers.controller_installation import LOOP
from tests.support.builders import a_seed, a_shoot
from tests.support.naive_installations import naive_wanted
from tests.support.registrations import Installations, a_bucket, a_domain, a_registration, an_entry

SEEDS = ("one", "two")
PROVIDERS = ("aws", "gcp")
EXTENSIONS = ("audit", "shell")
DNS = ("route53", "unmanaged")
_BY_PROVIDER = ("ControlPlane", "Infrastructure", "Worker", "BackupBucket", "BackupEntry")
_OTHERS = (
    *(("Network", "calico"), ("OperatingSystemConfig", "gardenlinux"), ("ContainerRuntime", "gvisor")),
    ("DNSRecord", "route53"),
)

seed_names = st.sampled_from(SEEDS)
providers = st.sampled_from(PROVIDERS)


def dictionaries(always: dict[str, Any], **sometimes: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Mappings with some fields, and perhaps others."""
    return st.fixed_dictionaries(always, optional=sometimes)


some_extensions: st.SearchStrategy[list[Document]] = st.lists(
    dictionaries({"type": st.sampled_from(EXTENSIONS)}, disabled=st.booleans()),
    max_size=2,
    unique_by=lambda one: str(one["type"]),
)


@st.composite
def seeds(draw: st.DrawFn) -> Document:
    spec: Document = {"provider": {"type": draw(providers)}, "extensions": draw(some_extensions)}
    if draw(st.booleans()):
        spec["backup"] = {"provider": draw(providers)}
    if draw(st.booleans()):
        spec["dns"] = {"provider": {"type": "route53"}}
    labels = draw(st.sampled_from([{}, {"planet": "earth"}, {"planet": "pluto"}]))
    return a_seed(draw(seed_names), metadata={"labels": labels}, spec=spec)


@st.composite
def shoots(draw: st.DrawFn) -> Document:
    image = dictionaries({"type": st.just("m5.large")}, image=st.just({"name": "gardenlinux"}))
    runtimes = st.just({"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]})
    worker = dictionaries({"name": st.just("a"), "machine": image}, cri=runtimes)
    provider = dictionaries({"type": st.sampled_from(DNS)}, primary=st.booleans())
    dns = dictionaries(
        {}, domain=st.sampled_from(["a.dev.example.org", "a.example.com"]), providers=st.lists(provider, max_size=2)
    )
    spec: Document = {
        "seedName": draw(seed_names),
        "provider": {"type": draw(providers), "workers": draw(st.lists(worker, max_size=1))},
        "extensions": draw(some_extensions),
        "dns": draw(dns),
    }
    shoot = a_shoot(draw(st.sampled_from(["apollo", "hermes", "ares"])), spec=spec)
    if draw(st.booleans()):
        shoot["status"] = {"seedName": draw(seed_names)}
    return shoot


@st.composite
def registrations(draw: st.DrawFn) -> Document:
    provider = draw(providers)
    extension = dictionaries(
        {"kind": st.just("Extension"), "type": st.sampled_from(EXTENSIONS)},
        globallyEnabled=st.booleans(),
        autoEnable=st.sampled_from([["shoot"], ["seed"], ["shoot", "seed"]]),
        workerlessSupported=st.booleans(),
    )
    offered: list[list[Document]] = [
        [{"kind": kind, "type": provider} for kind in _BY_PROVIDER],
        [{"kind": kind, "type": name} for kind, name in _OTHERS],
        draw(st.lists(extension, min_size=1, max_size=2)),
    ]
    policies = st.sampled_from([None, "OnDemand", "Always", "AlwaysExceptNoShoots"])
    deployment: Document = {} if (policy := draw(policies)) is None else {"policy": policy}
    if draw(st.integers(0, 3)) == 0:
        deployment["seedSelector"] = {"matchLabels": {"planet": "earth"}}
    index = draw(st.integers(0, len(offered) - 1))
    secondary: list[Document] = [{**one, "primary": False} for one in offered[index]]
    return a_registration(f"r{index}-{provider}", *secondary, spec={"deployment": deployment})


@st.composite
def domains(draw: st.DrawFn) -> Document:
    role = draw(st.sampled_from(["internal-domain", "default-domain"]))
    return a_domain(role, role, "example.org", draw(st.sampled_from(DNS)))


backups = st.one_of(
    st.builds(a_bucket, st.sampled_from(["b1", "b2"]), seed_names, providers),
    st.builds(an_entry, st.sampled_from(["e1", "e2"]), st.sampled_from(["b1", "b2"]), seed_names),
)
writes = st.one_of(registrations(), shoots(), registrations(), seeds(), backups, domains())
changes: st.SearchStrategy[list[tuple[Document, bool]]] = st.lists(st.tuples(writes, st.booleans()), max_size=25)
complete = [
    a_registration(f"all-{provider}", *[(kind, provider) for kind in _BY_PROVIDER], spec={"deployment": {}})
    for provider in PROVIDERS
]
by_policy = [
    a_registration(f"by-{policy.lower()}", ("Extension", policy), spec={"deployment": {"policy": policy}})
    for policy in ("Always", "AlwaysExceptNoShoots")
]
rest = a_registration(
    "rest",
    *_OTHERS,
    *[("Extension", one) for one in EXTENSIONS],
    spec={"deployment": {}},
)


async def _write(loop: Installations, document: Document, *, remove: bool) -> None:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
    stored = await loop.garden.store.get(key)
    if remove and stored is not None and key.kind not in ("seed", "controllerregistration"):
        await loop.remove(key)
    elif stored is None:
        await loop.add(document)
    elif not remove:
        written = {**stored.document(), **{part: document[part] for part in ("spec", "status") if part in document}}
        written["metadata"] = {**written["metadata"], "labels": metadata.get("labels", {})}
        await loop.garden.store.update(stored, written)
        loop.observe()


async def _check(steps: list[tuple[Document, bool]], *, is_complete: bool) -> None:
    loop = Installations()
    for name in SEEDS:
        await loop.add(a_seed(name))
    for registration in (*complete, *by_policy, rest) if is_complete else ():
        await loop.add(registration)
    for number, (document, remove) in enumerate(steps):
        await _write(loop, document, remove=remove)
        if number % 4 == 0:
            await loop.reconcile_all()
    await loop.reconcile_all()
    objects = [each.document() for each in loop.garden.store.state.rows.of_kind(*LOOP.follows).values()]
    for name in SEEDS:
        seed = await loop.garden.now("seed", name)
        assert seed is not None
        wanted = naive_wanted(seed, objects)
        has_registrations = any(one["kind"] == "ControllerRegistration" for one in objects)
        if not has_registrations:
            assert loop.of(name) == {}
        elif wanted is None:
            assert isinstance(await loop.reconcile(name), Terminal)
        else:
            assert set(loop.of(name)) == wanted


@settings(max_examples=60, deadline=None)
@given(changes, st.booleans())
def test_each_seed_has_the_installations_of_the_definition_after_any_changes(
    steps: list[tuple[Document, bool]], is_complete: bool
) -> None:
    asyncio.run(_check(steps, is_complete=is_complete))
