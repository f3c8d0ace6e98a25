"""What a batch has read: every object once, in few round trips, decoded at most once a version."""

from collections.abc import Iterable, Sequence

from gardenbus.apiserver.decide.facts import FactQuery, Facts, GuestsQuery, HostQuery, ObjectQuery, ProjectQuery
from gardenbus.apiserver.decide.managed_seeds import shoot_key
from gardenbus.common.ports.store import Objects
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey

DECODED_LIMIT = 500
"""Decoded manifests kept between batches: profiles, seeds and projects are asked for by shoot after shoot."""


class Library:
    """What outlives a batch: decoded manifests by version, and which Project has which namespace.

    Neither is believed: a manifest is used only at the version just read, a Project only if it still names the
    namespace.
    """

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._decoded: dict[ObjectKey, tuple[int, Document]] = {}
        self._project_of: dict[str, ObjectKey] = {}

    def decoded(self, stored: StoredObject) -> Document:
        """Decode a manifest, or hand out the one decoded before (not to be changed)."""
        known = self._decoded.get(stored.key)
        if known is not None and known[0] == stored.version:
            return known[1]
        document = stored.document()
        while len(self._decoded) >= DECODED_LIMIT:
            del self._decoded[next(iter(self._decoded))]
        self._decoded[stored.key] = (stored.version, document)
        return document

    def project_of(self, namespace: str) -> ObjectKey | None:
        """The Project that had this namespace when it was last looked up."""
        return self._project_of.get(namespace)

    async def find_projects(self) -> None:
        """Read all Projects anew."""
        found: dict[str, ObjectKey] = {}
        token: str | None = None
        while True:
            page = await self._store.list_page("project", continue_token=token)
            for stored in page.objects:
                if namespace := project_namespace(self.decoded(stored)):
                    found.setdefault(namespace, stored.key)
            token = page.continue_token
            if token is None:
                self._project_of = found
                return


class Reads:
    """What one batch (or one answered request) works on. Own writes are noted, so that later documents see them."""

    def __init__(self, store: Objects, library: Library) -> None:
        self._store = store
        self._library = library
        self._known: dict[ObjectKey, StoredObject | None] = {}
        self._has_listed_projects = False
        self._facts: dict[tuple[FactQuery, ...], Facts] = {}

    def is_absent(self, key: ObjectKey) -> bool:
        """Whether it was read that there is no such object."""
        return key in self._known and self._known[key] is None

    async def fetch(self, keys: Iterable[ObjectKey]) -> None:
        """Read what is not known yet, in one round trip."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        if missing:
            self._known.update(zip(missing, await self._store.get_many(missing), strict=True))

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """One object, read now if it was not."""
        await self.fetch((key,))
        return self._known[key]

    def note(self, key: ObjectKey, stored: StoredObject | None) -> None:
        """Remember what a write left behind."""
        self._known[key] = stored
        self._facts.clear()
        if key.kind == "project":
            self._has_listed_projects = False

    def forget(self, key: ObjectKey) -> None:
        """Read it anew the next time: somebody else has changed it."""
        self._known.pop(key, None)
        self._facts.clear()

    def forget_all(self) -> None:
        """Read everything anew."""
        self._known.clear()
        self._facts.clear()
        self._has_listed_projects = False

    async def fetch_facts(self, queries: Iterable[FactQuery]) -> None:
        """Read ahead what `facts` will be asked for, as far as one round trip tells."""
        await self.fetch(key for query in queries if (key := self._key_of(query)) is not None)

    async def facts(self, queries: Sequence[FactQuery]) -> Facts:
        """What admission asked for, as it stands now; the same questions on the same reads have the same answer."""
        asked = tuple(queries)
        found = self._facts.get(asked)
        if found is None:
            found = await self._found(asked)
            if all(isinstance(query, ProjectQuery | ObjectQuery) for query in asked):
                self._facts[asked] = found
        return found

    async def _found(self, queries: Sequence[FactQuery]) -> Facts:
        await self.fetch_facts(queries)
        objects: dict[ObjectKey, Document] = {}
        projects: dict[str, Document] = {}
        standing: dict[ObjectKey, Document] = {}
        guests: dict[str, Sequence[Document]] = {}
        for query in queries:
            match query:
                case ProjectQuery(namespace):
                    if project := await self._project(namespace):
                        projects[namespace] = project
                case GuestsQuery(seed):
                    guests[seed] = await self._guests(seed)
                case ObjectQuery(key):
                    if stored := self._known[key]:
                        objects[key] = self._library.decoded(stored)
                case HostQuery(shoot):
                    if host := await self._host(shoot):
                        objects[host.key] = self._library.decoded(host)
                case _:
                    if managed_seed := await self._standing(query.shoot):
                        standing[query.shoot] = managed_seed
        return Facts(objects=objects, projects=projects, standing=standing, guests=guests)

    def _key_of(self, query: FactQuery) -> ObjectKey | None:
        match query:
            case ProjectQuery(namespace):
                return self._library.project_of(namespace)
            case ObjectQuery(key):
                return key
            case HostQuery(shoot):
                return shoot
            case _:
                return None

    async def _host(self, shoot: ObjectKey) -> StoredObject | None:
        stored = await self.get(shoot)
        return (
            await self.get(ObjectKey("seed", "", stored.parts.seed_name)) if stored and stored.parts.seed_name else None
        )

    async def _guests(self, seed: str) -> Sequence[Document]:
        """The shoots on a seed, read past what is known: a shoot may have moved since."""
        stored = await self._store.get_many(await self._store.shoots_on(seed))
        return [shoot.document() for shoot in stored if shoot is not None]

    async def _standing(self, shoot: ObjectKey) -> Document | None:
        """The ManagedSeed on a shoot: mostly of the same name, else found by looking through all of them."""
        namesake = await self.get(ObjectKey("managedseed", shoot.namespace, shoot.name))
        if namesake is not None and shoot_key(document := self._library.decoded(namesake)) == shoot:
            return document
        token: str | None = None
        while True:
            page = await self._store.list_page("managedseed", shoot.namespace, continue_token=token)
            for stored in page.objects:
                if shoot_key(document := self._library.decoded(stored)) == shoot:
                    return document
            token = page.continue_token
            if token is None:
                return None

    async def _project(self, namespace: str) -> Document | None:
        key = self._library.project_of(namespace)
        if key is not None:
            stored = await self.get(key)
            if stored is not None and project_namespace(document := self._library.decoded(stored)) == namespace:
                return document
        if self._has_listed_projects:
            return None
        self._has_listed_projects = True
        await self._library.find_projects()
        if key := self._library.project_of(namespace):
            self.forget(key)
        return await self._project(namespace)


def project_namespace(project: Document) -> str:
    """The namespace that a Project claims."""
    return str(section(project, "spec").get("namespace") or "")
