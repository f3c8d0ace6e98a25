"""What stays while it is used: each case of Gardener's of `shoot/reference` and of the two kinds of bindings.

Source: `shoot/reference/{add,reconciler}_test.go`, `credentialsbinding/reconciler_test.go`, `secretbinding`, and their
integration tests. Profiles, exposure classes and quotas are in `test_protection.py`.
"""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import EXTERNAL_FINALIZER
from gardenbus.common.api.document_parts import REFERENCE_FINALIZER as FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done
from gardenbus.controllermanager.controllers import credentials, protection, reference
from gardenbus.controllermanager.watch.loop import Loop
from tests.support.builders import CORE, a_shoot
from tests.support.loops import Garden

SHOOT = ObjectKey("shoot", "garden-dev", "apollo")
OF_SHOOTS, _, *OF_USED = reference.LOOPS
SECURITY = "security.gardener.cloud/v1alpha1"


def named(kind: str, name: str) -> Document:
    return {"apiVersion": "v1", "kind": kind, "name": name}


def api_server(**fields: Any) -> Document:
    return {"kubernetes": {"kubeAPIServer": fields}}


USES: dict[str, tuple[Document, str]] = {
    "credentials of a DNS provider": ({"dns": {"providers": [{"credentialsRef": named("Secret", "a")}]}}, "secret"),
    "a Secret of a DNS provider": ({"dns": {"providers": [{"type": "x", "secretName": "a"}]}}, "secret"),
    "a kubeconfig of an admission plug-in": (
        api_server(admissionPlugins=[{"name": "x", "kubeconfigSecretName": "a"}]),
        "secret",
    ),
    "an audit policy": (api_server(auditConfig={"auditPolicy": {"configMapRef": {"name": "a"}}}), "configmap"),
    "structured authentication": (api_server(structuredAuthentication={"configMapName": "a"}), "configmap"),
    "structured authorization": (api_server(structuredAuthorization={"configMapName": "a"}), "configmap"),
    "a Secret among the resources": ({"resources": [{"name": "r", "resourceRef": named("Secret", "a")}]}, "secret"),
    "a ConfigMap among the resources": (
        {"resources": [{"name": "r", "resourceRef": named("ConfigMap", "a")}]},
        "configmap",
    ),
}


async def finalizers(garden: Garden, key: ObjectKey) -> tuple[str, ...] | None:
    stored = await garden.store.get(key)
    return None if stored is None else stored.parts.finalizers


async def add_used(garden: Garden, kind: str) -> tuple[ObjectKey, ObjectKey]:
    """Two objects: one that is named, and one that is not."""
    keys = ObjectKey(kind, "garden-dev", "a"), ObjectKey(kind, "garden-dev", "b")
    for key in keys:
        metadata = {"name": key.name, "namespace": key.namespace}
        await garden.add(
            {"apiVersion": "v1", "kind": {"secret": "Secret"}.get(kind, "ConfigMap"), "metadata": metadata}
        )
    return keys


def loop_of(kind: str) -> Loop:
    return next(loop for loop in OF_USED if loop.kind == kind)


@pytest.mark.parametrize(("spec", "kind"), USES.values(), ids=USES)
async def test_what_a_shoot_uses_has_the_finalizer_while_it_does(spec: Document, kind: str) -> None:
    garden = Garden()
    used, unused = await add_used(garden, kind)
    bare = await garden.add(a_shoot())
    built = OF_SHOOTS.build(garden.context(OF_SHOOTS.name))
    built.changed(SHOOT, bare, bare)
    assert garden.enqueued == []
    using = await garden.change(SHOOT, lambda shoot: shoot["spec"].update(spec))
    built.changed(SHOOT, bare, using)
    assert garden.enqueued == [(OF_SHOOTS.name, SHOOT)]
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    found = [await finalizers(garden, key) for key in (SHOOT, used, unused)]
    assert found == [(FINALIZER,), (FINALIZER,), ()]


@pytest.mark.parametrize("by_another", [True, False])
@pytest.mark.parametrize("end", ["deleted", "unused"])
@pytest.mark.parametrize(("spec", "kind"), USES.values(), ids=USES)
async def test_it_goes_when_no_shoot_uses_it(spec: Document, kind: str, end: str, *, by_another: bool) -> None:
    garden = Garden()
    used, _ = await add_used(garden, kind)
    stored = await garden.add(a_shoot(spec=spec))
    others = [await garden.add(a_shoot("other", spec=spec))] if by_another else []
    await garden.reconcile(OF_SHOOTS, SHOOT)
    held = await garden.store.get(SHOOT)
    built = loop_of(kind).build(garden.context(loop_of(kind).name))
    for each in (stored, *others):
        built.changed(each.key, None, each)
    if end == "deleted":
        await garden.delete(SHOOT)
    else:

        def change(shoot: Document) -> None:
            for field in spec:
                shoot["spec"].pop(field)

        await garden.change(SHOOT, change)
    await garden.reconcile(OF_SHOOTS, SHOOT)
    left = await garden.store.get(SHOOT)
    assert await finalizers(garden, SHOOT) == (None if end == "deleted" else ())
    garden.enqueued.clear()
    built.changed(SHOOT, held, left)
    assert garden.enqueued == ([] if by_another else [(loop_of(kind).name, used)])
    if not by_another:
        await garden.reconcile(loop_of(kind), used)
    assert await finalizers(garden, used) == ((FINALIZER,) if by_another else ())


@pytest.mark.parametrize("spec", [{}, {"dns": {"providers": [{"type": "managed"}]}}, {"resources": []}])
async def test_a_shoot_that_uses_nothing_has_no_finalizer(spec: Document) -> None:
    garden = Garden()
    await garden.add(a_shoot(spec=spec))
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    assert await finalizers(garden, SHOOT) == ()
    assert await garden.reconcile(OF_SHOOTS, SHOOT._replace(name="none")) == Done("it is gone")


# ---------------------------------------------------------------------------------------------------- bindings

LOOPS: dict[str, Loop] = {loop.kind: loop for loop in (*protection.LOOPS, *credentials.LOOPS)}
LIMIT = ObjectKey("quota", "garden-dev", "limit")


def a_binding(kind: str, of: str, name: str) -> Document:
    used: Document = {"name": "key", "namespace": "garden-dev"}
    api = SECURITY if kind == "CredentialsBinding" else CORE
    versions = {"Secret": "v1", "WorkloadIdentity": SECURITY}
    to: Document = {"secretRef": used}
    if kind == "CredentialsBinding":
        to = {"credentialsRef": {"apiVersion": versions[of], "kind": of, **used}}
    quotas = [{"name": LIMIT.name, "namespace": LIMIT.namespace}]
    metadata = {"name": name, "namespace": "garden-dev"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "provider": {"type": "some"}, "quotas": quotas, **to}


KINDS = [("SecretBinding", "Secret"), ("CredentialsBinding", "Secret"), ("CredentialsBinding", "WorkloadIdentity")]


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize(("kind", "of"), KINDS)
async def test_labels_and_finalizer_stay_until_the_last_binding_goes(kind: str, of: str, others: int) -> None:
    garden, key = Garden(), ObjectKey(of.lower(), "garden-dev", "key")
    metadata = {"name": "key", "namespace": "garden-dev"}
    await garden.add(
        {"apiVersion": "v1" if of == "Secret" else SECURITY, "kind": of, "metadata": metadata},
        {"apiVersion": CORE, "kind": "Quota", "metadata": {**metadata, "name": "limit"}, "spec": {"scope": {}}},
        *(a_binding(kind, of, f"other-{number}") for number in range(others)),
        a_binding(kind, of, "mine"),
    )
    label = f"reference.gardener.cloud/{kind.lower()}"

    async def found() -> tuple[Any, Any, Any]:
        for each in (key, LIMIT):
            await garden.reconcile(LOOPS[each.kind], each)
        stored, quota = await garden.store.get_many([key, LIMIT])
        assert stored is not None
        assert quota is not None
        return stored.labels, stored.parts.finalizers, quota.labels

    # A difference: Gardener's newest have a finalizer for each kind of binding; one counts both here.
    bound = {label: "true", "provider.shoot.gardener.cloud/some": "true"}, (EXTERNAL_FINALIZER,), {label: "true"}
    assert await found() == bound
    await garden.delete(ObjectKey(kind.lower(), "garden-dev", "mine"))
    assert await found() == (bound if others else ({}, (), {}))


async def test_credentials_of_both_kinds_of_bindings_keep_the_label_of_the_one_that_is_left() -> None:
    garden, key = Garden(), ObjectKey("secret", "garden-dev", "key")
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "garden-dev"}}
    await garden.add(secret, *(a_binding(kind, "Secret", "mine") for kind in ("SecretBinding", "CredentialsBinding")))
    await garden.reconcile(LOOPS["secret"], key)
    await garden.delete(ObjectKey("credentialsbinding", "garden-dev", "mine"))
    await garden.reconcile(LOOPS["secret"], key)
    stored = await garden.store.get(key)
    assert stored is not None
    labels = {"provider.shoot.gardener.cloud/some": "true", "reference.gardener.cloud/secretbinding": "true"}
    assert (stored.labels, stored.parts.finalizers) == (labels, (EXTERNAL_FINALIZER,))
