"""What is stored when an input arrives: the valid manifests of the corpus, and answers to queries about them."""

from collections.abc import Sequence

from gardenbus.apiserver.domain import merging
from gardenbus.apiserver.domain.managed_seeds import shoot_key
from gardenbus.apiserver.domain.related_objects import (
    KindQuery,
    ManagedSeedOfShootQuery,
    ObjectQuery,
    ProfilesBelowQuery,
    ProjectQuery,
    QuotasQuery,
    RelatedObjects,
    RelatedQuery,
    SeedOfShootQuery,
    ShootsOnSeedQuery,
)
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.changes import creation_of
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.garden.quotas import quota_keys
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_condition, a_managed_seed
from tests.support.fleets import a_member_document, an_agent
from tests.support.full_manifests import FULL_SEED, FULL_SHOOT
from tests.support.member_agents import a_manifest, a_work

RUNNING: Sequence[Document] = (
    FULL_SHOOT,
    FULL_SEED,
    a_managed_seed(
        shoot="apollo",
        status={"observedGeneration": 1, "conditions": [a_condition("SeedRegistered", reason="Registered")]},
    ),
    a_member_document("lisbon", {"region": "south"}, status={"agentStatus": [an_agent()]}),
    a_work(a_manifest(), status={"conditions": [a_condition("Applied")], "manifestConditions": []}),
)
"""Objects with a status that somebody reported."""

UID = "6f1e52a4-8f7c-4d53-9c61-000000000001"
CREATED_AT = "2026-01-01T00:00:00Z"


def stored_object(document: Document) -> StoredObject:
    """An object as the store has it after its creation by an admitted manifest."""
    return StoredObject(
        key=key_of(document),
        parts=creation_of(document).parts,
        uid=UID,
        version=7,
        generation=2,
        created_at=CREATED_AT,
        last_applied=encode(merging.without_system_fields(document)),
    )


class World:
    """Objects by key. Nothing is ever written: an input meets the same world whatever came before it."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, StoredObject] = {}
        self.documents: dict[ObjectKey, Document] = {}
        self._projects: dict[str, Document] = {}

    def add(self, stored: StoredObject) -> None:
        """Have one more object."""
        document = stored.document()
        self.objects[stored.key] = stored
        self.documents[stored.key] = document
        if stored.key.kind == "project" and (namespace := section(document, "spec").get("namespace")):
            self._projects[namespace] = document

    def related(self, queries: Sequence[RelatedQuery]) -> RelatedObjects:
        """The results of queries."""
        objects, projects, managed_seeds, shoots_on, below, all_of, demands = (dict[object, object]() for _ in range(7))
        for query in queries:
            match query:
                case ObjectQuery(key):
                    objects |= {key: self.documents[key]} if key in self.documents else {}
                case ProjectQuery(namespace):
                    projects |= {namespace: self._projects[namespace]} if namespace in self._projects else {}
                case SeedOfShootQuery(shoot):
                    name = section(self.documents.get(shoot, {}), "spec").get("seedName")
                    key = ObjectKey("seed", "", str(name))
                    objects |= {key: self.documents[key]} if key in self.documents else {}
                case ManagedSeedOfShootQuery(shoot):
                    found = [each for each in self._of("managedseed") if shoot_key(each) == shoot]
                    managed_seeds |= dict.fromkeys((shoot,), found[0]) if found else {}
                case ShootsOnSeedQuery(seed):
                    shoots_on[seed] = [each for each in self._of("shoot") if each["spec"].get("seedName") == seed]
                case ProfilesBelowQuery(profile):
                    below[profile] = list(self._of("namespacedcloudprofile"))
                case KindQuery(kind):
                    all_of[kind] = list(self._of(kind))
                case QuotasQuery(bindings):
                    quotas = [quota for key in bindings for quota in quota_keys(self.documents.get(key, {}))]
                    objects |= {key: self.documents[key] for key in (*bindings, *quotas) if key in self.documents}
                    demands |= {key: dict[str, int]() for key in quotas if key in self.documents}
        return RelatedObjects(objects, projects, managed_seeds, shoots_on, below, all_of, demands)  # pyright: ignore[reportArgumentType]

    def _of(self, kind: str) -> Sequence[Document]:
        return [document for key, document in self.documents.items() if key.kind == kind]
