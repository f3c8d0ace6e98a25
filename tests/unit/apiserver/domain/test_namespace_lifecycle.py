"""Nothing new comes about in a namespace that is being deleted."""

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import namespace_lifecycle
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import NOW, a_project, a_shoot
from tests.support.placements import a_crp

CHAIN = Admission([namespace_lifecycle.PLUGIN])
NAMESPACE = ObjectKey("namespace", "", "garden-dev")
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "garden-dev"}}


def beside(**metadata: object) -> RelatedObjects:
    """The namespace as it is read."""
    named = {"name": "garden-dev", "resourceVersion": "7", **metadata}
    return RelatedObjects(objects={NAMESPACE: {"apiVersion": "v1", "kind": "Namespace", "metadata": named}})


@pytest.mark.parametrize(
    ("document", "what"), [(a_shoot(), 'shoots.core.gardener.cloud "apollo"'), (SECRET, 'secrets "s"')]
)
def test_what_is_new_in_a_namespace_that_leaves_is_refused_in_the_words_of_kubernetes(
    document: Document, what: str
) -> None:
    assert CHAIN.related_queries(document, None)[0] == ObjectQuery(NAMESPACE)
    with pytest.raises(Forbidden) as rejected:
        CHAIN.admit(document, None, beside(deletionTimestamp=NOW))
    reason = "unable to create new content in namespace garden-dev because it is being terminated"
    assert rejected.value.message == f"{what} is forbidden: {reason}"


MAP: Document = {**SECRET, "kind": "ConfigMap"}


@pytest.mark.parametrize("document", [SECRET, MAP, a_crp()], ids=lambda document: document["kind"])
def test_only_what_is_in_a_namespace_gets_a_warning_where_there_is_none(document: Document) -> None:
    warnings = CHAIN.mutate(document, None, RelatedObjects(), user="ann").warnings
    assert len(warnings) == (1 if document["metadata"].get("namespace") else 0)
    assert CHAIN.mutate(document, document, RelatedObjects(), user="ann").warnings == ()


def test_what_is_new_in_a_namespace_that_is_not_there_gets_a_warning() -> None:
    def warnings(document: Document, related: RelatedObjects) -> tuple[str, ...]:
        return CHAIN.mutate(document, None, related, user="ann").warnings

    expected = "metadata.namespace: there is no Namespace garden-dev, nor a Project that has it"
    assert warnings(SECRET, RelatedObjects()) == (expected,)
    assert warnings(SECRET, beside()) == ()
    assert warnings(SECRET, RelatedObjects(projects={"garden-dev": a_project()})) == ()
    assert warnings(a_shoot(), RelatedObjects()) == ()


def test_what_is_admitted_is_written_while_the_namespace_is_as_it_was_read() -> None:
    CHAIN.admit(SECRET, None, beside())
    guard = WritePrecondition("version", NAMESPACE.stored, "namespace garden-dev changed meanwhile", version=7)
    assert CHAIN.write_guards(SECRET, None, beside()) == (guard,)


def test_what_is_there_may_change_while_the_namespace_leaves() -> None:
    CHAIN.admit(SECRET, SECRET, beside(deletionTimestamp=NOW))
    assert CHAIN.related_queries(SECRET, SECRET) == ()
    assert CHAIN.write_guards(SECRET, SECRET, beside(deletionTimestamp=NOW)) == ()


@pytest.mark.parametrize("document", [SECRET, a_project(), {**SECRET, "metadata": {"name": "s", "namespace": 5}}])
def test_without_a_namespace_there_is_nothing_to_wait_for(document: Document) -> None:
    CHAIN.admit(document, None, RelatedObjects())
    assert CHAIN.write_guards(document, None, RelatedObjects()) == ()
