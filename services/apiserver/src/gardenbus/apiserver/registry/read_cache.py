"""Reads of a batch: every object once, in few round trips, decoded at most once a version."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from gardenbus.apiserver.domain.cloud_profiles import parent_key
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
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.quotas import limits_of, profile_of_unit, quota_keys
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Objects

DECODED_LIMIT = 500
"""Decoded manifests kept between batches: profiles, seeds and projects are needed by shoot after shoot."""


class ManifestCache:
    """Cache beyond a batch: decoded manifests by version, and the Project of a namespace.

    Neither is trusted: a manifest is used only at the version just read, a Project only if it still names the
    namespace.
    """

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._decoded: dict[ObjectKey, tuple[int, Document]] = {}
        self._project_of: dict[str, ObjectKey] = {}

    def decoded(self, stored: StoredObject) -> Document:
        """Decode a manifest, or hand out the one decoded before (not to be changed)."""
        cached = self._decoded.get(stored.key)
        if cached is not None and cached[0] == stored.version:
            return cached[1]
        document = stored.document()
        while len(self._decoded) >= DECODED_LIMIT:
            del self._decoded[next(iter(self._decoded))]
        self._decoded[stored.key] = (stored.version, document)
        return document

    def project_of(self, namespace: str) -> ObjectKey | None:
        """The Project that had this namespace at the last lookup."""
        return self._project_of.get(namespace)

    async def find_projects(self) -> None:
        """Read all Projects again."""
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


_REPEATED = ProjectQuery | ObjectQuery | KindQuery | QuotasQuery
"""Queries of many objects of a batch; what they find is kept until something is written."""


class ReadCache:
    """Reads of one batch (or one API request). Own writes are recorded, so that later documents see them."""

    def __init__(self, store: Objects, manifests: ManifestCache) -> None:
        self._store = store
        self._manifests = manifests
        self._cached: dict[ObjectKey, StoredObject | None] = {}
        self._has_listed_projects = False
        self._own_projects: dict[str, ObjectKey] = {}
        self._related: dict[tuple[RelatedQuery, ...], RelatedObjects] = {}
        self._listed: dict[str, Sequence[Document]] = {}

    def is_absent(self, key: ObjectKey) -> bool:
        """True when a read has found no such object."""
        return key in self._cached and self._cached[key] is None

    async def fetch(self, keys: Iterable[ObjectKey]) -> None:
        """Read what is not cached, in one round trip."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._cached]
        if missing:
            self._cached.update(zip(missing, await self._store.get_many(missing), strict=True))

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """One object, read now if it was not."""
        await self.fetch((key,))
        return self._cached[key]

    def record(self, key: ObjectKey, stored: StoredObject | None) -> None:
        """Remember what a write left behind."""
        self._cached[key] = stored
        self._related.clear()
        self._listed.pop(key.kind, None)
        if key.kind == "project":
            self._has_listed_projects = False
            if stored is not None:
                self._own_projects[project_namespace(stored.document())] = key

    def invalidate(self, key: ObjectKey) -> None:
        """Read it again the next time: it was changed elsewhere."""
        self._cached.pop(key, None)
        self._related.clear()
        self._listed.pop(key.kind, None)

    def invalidate_all(self) -> None:
        """Read everything again."""
        self._cached.clear()
        self._related.clear()
        self._listed.clear()
        self._has_listed_projects = False

    async def prefetch_related(self, queries: Iterable[RelatedQuery], keys: Iterable[ObjectKey] = ()) -> None:
        """Read ahead what `related` will need, as far as one round trip can, and other objects with it."""
        queries = list(queries)
        await self.prefetch_objects(queries, keys)
        await self.lists(queries)

    async def prefetch_objects(self, queries: Iterable[RelatedQuery], keys: Iterable[ObjectKey]) -> None:
        """Read ahead the objects alone, without lists of kinds."""
        found = (key for query in queries if (key := self._key_of(query)) is not None)
        await self.fetch(chain(keys, found))

    async def related(self, queries: Sequence[RelatedQuery]) -> RelatedObjects:
        """Objects of queries, as they are now; the same queries on the same reads find the same, but for demands."""
        requested = tuple(queries)
        found = self._related.get(requested)
        if found is None:
            found = await self._fetch_related(requested)
            if all(isinstance(query, _REPEATED) for query in requested):
                self._related[requested] = found
        elif found.demands:
            objects, demands = dict(found.objects), dict[ObjectKey, Mapping[str, int]]()
            await self._find_quotas(requested, objects, demands)
            found = msgspec.structs.replace(found, objects=objects, demands=demands)
        return found

    async def _fetch_related(self, queries: Sequence[RelatedQuery]) -> RelatedObjects:
        await self.prefetch_related(queries)
        objects: dict[ObjectKey, Document] = {}
        projects: dict[str, Document] = {}
        managed_seeds: dict[ObjectKey, Document] = {}
        demands: dict[ObjectKey, Mapping[str, int]] = {}
        for query in queries:
            match query:
                case ProjectQuery(namespace):
                    if project := await self._project(namespace):
                        projects[namespace] = project
                case ObjectQuery(key):
                    if stored := self._cached[key]:
                        objects[key] = self._manifests.decoded(stored)
                case SeedOfShootQuery(shoot):
                    if seed_object := await self._seed_of(shoot):
                        objects[seed_object.key] = self._manifests.decoded(seed_object)
                case ManagedSeedOfShootQuery():
                    if managed_seed := await self._managed_seed_of(query.shoot):
                        managed_seeds[query.shoot] = managed_seed
                case _:
                    pass
        await self._find_quotas(queries, objects, demands)
        return RelatedObjects(
            objects=objects,
            projects=projects,
            managed_seeds=managed_seeds,
            shoots_on={
                query.seed: await self._shoots_on(query.seed)
                for query in queries
                if isinstance(query, ShootsOnSeedQuery)
            },
            profiles_below=await self._all_profiles_below(queries),
            all_of=await self.lists(queries),
            demands=demands,
        )

    def _key_of(self, query: RelatedQuery) -> ObjectKey | None:
        match query:
            case ProjectQuery(namespace):
                return self._manifests.project_of(namespace)
            case ObjectQuery(key):
                return key
            case SeedOfShootQuery(shoot):
                return shoot
            case _:
                return None

    async def _find_quotas(
        self,
        queries: Sequence[RelatedQuery],
        objects: dict[ObjectKey, Document],
        demands: dict[ObjectKey, Mapping[str, int]],
    ) -> None:
        """Add bindings, their Quotas, the demand on each (read past the cache: others add to it), and profiles."""
        bindings = [key for query in queries if isinstance(query, QuotasQuery) for key in query.bindings]
        if not bindings:
            return
        await self._add(bindings, objects)
        quotas = {key: binding for binding in bindings for key in quota_keys(objects.get(binding, {}))}
        await self._add(quotas, objects)
        for key, binding in quotas.items():
            if quota := objects.get(key):
                scope = binding.namespace if limits_of(quota).is_of_project else ""
                demands[key] = await self._store.demand(key, scope)
        units = {unit for demand in demands.values() for unit in demand}
        await self._add([key for unit in sorted(units) if (key := profile_of_unit(unit)) is not None], objects)

    async def _add(self, keys: Iterable[ObjectKey], objects: dict[ObjectKey, Document]) -> None:
        keys = list(keys)
        await self.fetch(keys)
        for key in keys:
            if stored := self._cached[key]:
                objects[key] = self._manifests.decoded(stored)

    async def _seed_of(self, shoot: ObjectKey) -> StoredObject | None:
        stored = await self.get(shoot)
        return (
            await self.get(ObjectKey("seed", "", stored.parts.seed_name)) if stored and stored.parts.seed_name else None
        )

    async def _shoots_on(self, seed: str) -> Sequence[Document]:
        """The shoots on a seed, read past the cache: a shoot may have moved since."""
        stored = await self._store.get_many(await self._store.shoots_on(seed))
        return [shoot.document() for shoot in stored if shoot is not None]

    async def _all_profiles_below(self, queries: Sequence[RelatedQuery]) -> dict[str, Sequence[Document]]:
        return {
            query.cloud_profile: await self._profiles_below(query.cloud_profile)
            for query in queries
            if isinstance(query, ProfilesBelowQuery)
        }

    async def _profiles_below(self, cloud_profile: str) -> Sequence[Document]:
        """The NamespacedCloudProfiles below a CloudProfile, found by looking through all of them."""
        above = ObjectKey("cloudprofile", "", cloud_profile)
        return [profile for profile in await self._all_of("namespacedcloudprofile") if parent_key(profile) == above]

    async def lists(self, queries: Iterable[RelatedQuery]) -> dict[str, Sequence[Document]]:
        """All objects of the kinds that queries name, listed once a batch."""
        found: dict[str, Sequence[Document]] = {}
        for kind in {query.kind for query in queries if isinstance(query, KindQuery)}:
            if kind not in self._listed:
                self._listed[kind] = await self._all_of(kind)
            found[kind] = self._listed[kind]
        return found

    async def _all_of(self, kind: str) -> Sequence[Document]:
        found: list[Document] = []
        token: str | None = None
        while True:
            page = await self._store.list_page(kind, continue_token=token)
            found += [stored.document() for stored in page.objects]
            token = page.continue_token
            if token is None:
                return found

    async def _managed_seed_of(self, shoot: ObjectKey) -> Document | None:
        """The ManagedSeed on a shoot: mostly of the same name, else found by looking through all of them."""
        namesake = await self.get(ObjectKey("managedseed", shoot.namespace, shoot.name))
        if namesake is not None and shoot_key(document := self._manifests.decoded(namesake)) == shoot:
            return document
        token: str | None = None
        while True:
            page = await self._store.list_page("managedseed", shoot.namespace, continue_token=token)
            for stored in page.objects:
                if shoot_key(document := self._manifests.decoded(stored)) == shoot:
                    return document
            token = page.continue_token
            if token is None:
                return None

    async def _project(self, namespace: str) -> Document | None:
        key = self._own_projects.get(namespace) or self._manifests.project_of(namespace)
        if key is not None:
            stored = await self.get(key)
            if stored is not None and project_namespace(document := self._manifests.decoded(stored)) == namespace:
                return document
        if self._has_listed_projects:
            return None
        self._has_listed_projects = True
        await self._manifests.find_projects()
        if key := self._manifests.project_of(namespace):
            self.invalidate(key)
        return await self._project(namespace)


def project_namespace(project: Document) -> str:
    """The namespace that a Project claims."""
    return str(section(project, "spec").get("namespace") or "")
