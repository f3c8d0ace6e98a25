"""Secrets, ConfigMaps and namespaces that Gardener's admission controller guards, case by case.

Source: `pkg/admissioncontroller/webhook/admission/{internaldomainsecret,updaterestriction,admissionpluginsecret,
shootkubeconfigsecretref,namespacedeletion}/handler_test.go`. docs/comparison.md states what differs.
"""

from collections.abc import Sequence

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from tests.support.authorized_apiserver import AuthorizedApiserver, a_secret, two_projects
from tests.support.builders import a_project, a_shoot

DOMAIN = "dns.gardener.cloud/domain"
ANNOTATIONS = {"dns.gardener.cloud/provider": "foo", DOMAIN: "bar"}
ROLE = {"gardener.cloud/role": "internal-domain"}
RESTRICTED = {"gardener.cloud/update-restriction": "true"}


@pytest.fixture
async def landscape() -> AuthorizedApiserver:
    """Two projects with a shoot each, so that every seed and the whole landscape have some."""
    return await two_projects()


@pytest.mark.parametrize("namespace", ["garden", "seed-aws", "garden-dev"])
async def test_a_secret_with_an_internal_domain_is_one_like_others(landscape: AuthorizedApiserver, namespace: str):
    """Gardener has one in a namespace, with its annotations, whose domain stays while there are shoots."""
    first = a_secret("first", namespace, labels=ROLE, annotations=ANNOTATIONS)
    second = a_secret("second", namespace, labels=ROLE)
    assert await landscape.code("root", "apply", first) == 200
    assert await landscape.code("root", "apply", second) == 200
    for annotations in ({DOMAIN: "foobar"}, {"dns.gardener.cloud/provider": "foobar"}, {DOMAIN: None}):
        patch = {"metadata": {"annotations": annotations}}
        assert await landscape.code("root", f"patch.secret.{namespace}.first", patch) == 200
    assert await landscape.code("root", f"delete.secret.{namespace}.first") == 200


RESTRICTED_OBJECTS: Sequence[Document] = (
    a_secret("apollo.ca-cluster", labels=RESTRICTED),
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "apollo.ca-cluster", "namespace": "garden-dev", "labels": RESTRICTED},
    },
)


@pytest.mark.parametrize(
    ("user", "code"), [("root", 200), ("adam", 200), ("vera", 403), ("seed:aws", 200), ("seed:gcp", 403)]
)
@pytest.mark.parametrize("document", RESTRICTED_OBJECTS, ids=lambda document: document["kind"])
async def test_the_label_of_system_objects_restricts_nobody(
    landscape: AuthorizedApiserver, document: Document, user: str, code: int
) -> None:
    """In Gardener only gardenlets write them; here that of the shoot's seed may, else roles decide."""
    await landscape.create([document])
    where = f"{document['kind'].lower()}.garden-dev.apollo.ca-cluster"
    assert await landscape.code(user, f"patch.{where}", {"data": {"a": "YQ=="}}) == code
    assert await landscape.code(user, f"delete.{where}") == code


USES: dict[str, Document] = {
    "admissionPlugins": {"admissionPlugins": [{"name": "x", "kubeconfigSecretName": "mine"}]},
    "structuredAuthorization": {"structuredAuthorization": {"kubeconfigs": [{"secretName": "mine"}]}},
}


@pytest.mark.parametrize("data", [{"kubeconfig": None}, {"kubeconfig": ""}, {"kubeconfig": "e30="}])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_the_kubeconfig_of_a_secret_may_go_while_a_shoot_names_it(
    landscape: AuthorizedApiserver, use: Document, data: Document
) -> None:
    secret = a_secret("mine")
    secret["data"] = {"kubeconfig": "e30="}
    await landscape.create([secret, a_shoot("user", spec={"kubernetes": {"kubeAPIServer": use}})])
    assert await landscape.code("adam", "patch.secret.garden-dev.mine", {"data": data}) == 200


# ------------------------------------------------------------------------------------------------- namespaces

NAMESPACE = ObjectKey("namespace", "", "garden-new")


async def deleted(landscape: AuthorizedApiserver, *documents: Document) -> tuple[int, str]:
    """The code and the message of the response to an operator who deletes the namespace."""
    await landscape.create(documents)
    response = await landscape.response("root", f"delete.namespace._.{NAMESPACE.name}")
    error: Document = response.get("error") or {}
    return (200 if response["ok"] else error["code"]), error.get("message", "")


def a_namespace(**metadata: object) -> Document:
    labels = {"project.gardener.cloud/name": "new"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE.name, "labels": labels, **metadata}}


async def marked(landscape: AuthorizedApiserver, key: ObjectKey) -> None:
    stored = await landscape.store.get(key)
    assert isinstance(stored, StoredObject)
    await landscape.store.delete(stored)


async def test_a_namespace_without_a_project_goes(landscape: AuthorizedApiserver) -> None:
    assert await deleted(landscape) == (404, f"{NAMESPACE} not found")
    assert await deleted(landscape, a_namespace()) == (200, "")
    assert await landscape.store.get(NAMESPACE) is None


async def test_the_namespace_of_a_project_stays_for_everybody(landscape: AuthorizedApiserver) -> None:
    code, message = await deleted(landscape, a_namespace(), a_project("new"))
    assert (code, "it is a project's, and goes after it" in message) == (403, True)
    for user in ("adam", "eve", "seed:aws"):
        assert await landscape.code(user, f"delete.namespace._.{NAMESPACE.name}") == 403


@pytest.mark.parametrize(("shoots", "code"), [(0, 200), (1, 403)])
async def test_it_goes_without_shoots_once_its_project_is_being_deleted(
    landscape: AuthorizedApiserver, shoots: int, code: int
) -> None:
    await landscape.create([a_namespace(), a_project("new", metadata={"finalizers": ["gardener"]})])
    await marked(landscape, ObjectKey("project", "", "new"))
    assert (await deleted(landscape, *[a_shoot(namespace=NAMESPACE.name)] * shoots))[0] == code


async def test_a_namespace_with_shoots_stays_with_a_project_or_without(landscape: AuthorizedApiserver) -> None:
    code, message = await deleted(landscape, a_namespace(), a_shoot(namespace=NAMESPACE.name))
    assert (code, "there are shoots in it" in message) == (403, True)


async def test_a_namespace_that_is_being_deleted_may_be_deleted_again(landscape: AuthorizedApiserver) -> None:
    await landscape.create([a_namespace(finalizers=["x"])])
    await marked(landscape, NAMESPACE)
    assert (await deleted(landscape))[0] == 200
