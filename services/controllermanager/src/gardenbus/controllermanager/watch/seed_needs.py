"""Index of the extensions that shoots, buckets and entries make each seed need; it follows the informer.

A change costs what has changed. What a shoot needs is computed when it is first requested for its seed, and then with
each change of the shoot; a seed is affected by a change only if another set of needs stands on it then. As few shoots
differ in their needs, most are counted and nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.garden.backup_references import bucket_of
from gardenbus.common.api.garden.domains import (
    DEFAULT_DOMAIN,
    INTERNAL_DOMAIN,
    default_domains,
    domain_of,
    internal_domain,
)
from gardenbus.common.api.garden.extensions import DNSDomain, KindType, ShootNeeds, shoot_needs
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.enqueue_on_change import ObjectLister
from gardenbus.controllermanager.domain.references import GARDEN_ROLE
from gardenbus.controllermanager.domain.shoot_parts import extensions_part


class SeedNeeds:
    """See the module. `changed` is to be called with each change of an object that is followed."""

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects
        self._shoots: dict[str, dict[ObjectKey, ShootNeeds | None]] = {}
        """By seed: its shoots; None until what they need is computed."""

        self._counts: dict[str, Counter[ShootNeeds]] = {}
        """Of the seeds for which it is: how many shoots need the same."""

        self._same: dict[ShootNeeds, ShootNeeds] = {}
        self._buckets: dict[str, dict[ObjectKey, str]] = {}
        self._entries: dict[str, Counter[str]] = {}
        self._domains: dict[ObjectKey, tuple[str, DNSDomain]] = {}

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> Iterable[str] | None:
        """Note a change; the seeds that may need something else by it, None for all."""
        match key.kind:
            case "shoot":
                return self._shoot_changed(key, old, new)
            case "backupbucket":
                return self._bucket_changed(key, old, new)
            case "backupentry":
                return self._entry_changed(old, new)
            case "secret":
                return self._secret_changed(key, old, new)
            case "configmap":
                return None if _is_garden_resource(key, old, new) else ()
            case "seed":
                if old is None or new is None or old.parts.spec != new.parts.spec:
                    self._counts.pop(key.name, None)  # its domains may have changed
                return ()
            case _:
                return ()

    def of_shoots(self, seed: StoredObject) -> AbstractSet[ShootNeeds]:
        """The different needs of the shoots of a seed."""
        return self._counted(seed).keys()

    def shoots(self, seed: str) -> AbstractSet[ObjectKey]:
        """The shoots of a seed: by spec.seedName or status.seedName."""
        return self._shoots.get(seed, {}).keys()

    def of_backups(self, seed: str) -> tuple[frozenset[KindType], Sequence[str]]:
        """Needs of the buckets and entries of a seed, and the buckets of entries that are not on it."""
        buckets = self._buckets.get(seed, {})
        types = {key.name: type_ for key, type_ in buckets.items()}
        named = self._entries.get(seed, Counter())
        kinds = {("BackupBucket", type_) for type_ in types.values()}
        kinds |= {("BackupEntry", types[bucket]) for bucket in named if bucket in types}
        return frozenset(each for each in kinds if each[1]), sorted(named.keys() - types.keys())

    def internal_domain(self, seed: StoredObject) -> DNSDomain | None:
        """The domain of the API servers of a seed's shoots."""
        return internal_domain(section(seed.document(), "spec"), self._by_role(INTERNAL_DOMAIN))

    def _by_role(self, role: str) -> Sequence[DNSDomain]:
        return [domain for _, (its_role, domain) in sorted(self._domains.items()) if its_role == role]

    def _counted(self, seed: StoredObject) -> Counter[ShootNeeds]:
        name = seed.key.name
        counts = self._counts.get(name)
        if counts is None:
            counts = self._counts[name] = Counter()
            shoots, cached = self._shoots.get(name, {}), self._objects.objects("shoot")
            domains = self._default_domains(seed)
            for key in shoots:
                if (shoot := cached.get(key)) is not None:
                    shoots[key] = needs = self._needs(shoot, domains)
                    counts[needs] += 1
        return counts

    def _default_domains(self, seed: StoredObject | None) -> Sequence[DNSDomain]:
        spec = {} if seed is None else section(seed.document(), "spec")
        return default_domains(spec, self._by_role(DEFAULT_DOMAIN))

    def _needs(self, shoot: StoredObject, domains: Sequence[DNSDomain]) -> ShootNeeds:
        needs = shoot_needs(extensions_part(shoot), domains)
        return self._same.setdefault(needs, needs)

    def _shoot_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> Iterable[str]:
        if old is not None and new is not None and _content(old) == _content(new):
            return ()
        before, after = _seeds_of(old), _seeds_of(new)
        return [seed for seed in before | after if self._replace(seed, key, new if seed in after else None)]

    def _replace(self, seed: str, key: ObjectKey, new: StoredObject | None) -> bool:
        """Count a shoot of a seed anew; whether other needs stand on the seed by it."""
        shoots = self._shoots.setdefault(seed, {})
        before = shoots.pop(key, None)
        counts = self._counts.get(seed)
        if new is not None:
            shoots[key] = None
        elif not shoots:
            del self._shoots[seed]
        if counts is None:
            return True
        needs = None
        if new is not None:
            domains = self._default_domains(self._objects.objects("seed").get(ObjectKey("seed", "", seed)))
            shoots[key] = needs = self._needs(new, domains)
        if needs == before:
            return False
        if needs is not None:
            counts[needs] += 1
        if before is not None:
            counts[before] -= 1
        is_new = needs is not None and counts[needs] == 1
        has_gone = before is not None and counts[before] <= 0
        if has_gone:
            del counts[before]
        return is_new or has_gone

    def _bucket_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> Iterable[str]:
        before, after = _bucket_part(old), _bucket_part(new)
        if before == after:
            return ()
        if before is not None:
            self._buckets.get(before[0], {}).pop(key, None)
        if after is not None:
            self._buckets.setdefault(after[0], {})[key] = after[1]
        return [each[0] for each in (before, after) if each is not None]

    def _entry_changed(self, old: StoredObject | None, new: StoredObject | None) -> Iterable[str]:
        if old is not None and new is not None and old.parts.spec == new.parts.spec:
            return ()
        before, after = _entry_part(old), _entry_part(new)
        affected: list[str] = []
        for part, step in ((before, -1), (after, 1)):
            if part is None:
                continue
            seed, bucket = part
            counts = self._entries.setdefault(seed, Counter())
            counts[bucket] += step
            if counts[bucket] <= 0:
                del counts[bucket]
            if counts[bucket] == max(step, 0):
                affected.append(seed)
        return affected

    def _secret_changed(
        self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None
    ) -> Iterable[str] | None:
        if key.namespace != GARDEN_NAMESPACE:
            return ()
        before, after = self._domains.get(key), _domain_secret(new)
        if before == after:
            return None if _is_garden_resource(key, old, new) else ()
        if after is None:
            self._domains.pop(key, None)
        else:
            self._domains[key] = after
        self._counts.clear()
        return None


def _domain_secret(stored: StoredObject | None) -> tuple[str, DNSDomain] | None:
    """Role and domain of a Secret of the landscape's domains; None for any other."""
    if stored is None:
        return None
    role = stored.labels.get(GARDEN_ROLE, "")
    domain = domain_of(stored.annotations) if role in (INTERNAL_DOMAIN, DEFAULT_DOMAIN) else None
    return None if domain is None else (role, domain)


def _is_garden_resource(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> bool:
    """True for a ConfigMap or Secret of the landscape that ControllerDeployments may name."""
    if key.namespace != GARDEN_NAMESPACE:
        return False
    return any(each is not None and each.labels.get(GARDEN_ROLE) == "resource-reference" for each in (old, new))


def _content(shoot: StoredObject) -> object:
    return shoot.parts.seed_name, shoot.parts.status_seed_name, shoot.parts.spec


def _seeds_of(shoot: StoredObject | None) -> frozenset[str]:
    if shoot is None:
        return frozenset()
    return frozenset((shoot.parts.seed_name, shoot.parts.status_seed_name)) - {""}


def _bucket_part(bucket: StoredObject | None) -> tuple[str, str] | None:
    if bucket is None:
        return None
    spec: Mapping[str, object] = section(bucket.document(), "spec")
    seed = str(spec.get("seedName") or "")
    return (seed, str(section(bucket.document(), "spec", "provider").get("type") or "")) if seed else None


def _entry_part(entry: StoredObject | None) -> tuple[str, str] | None:
    if entry is None:
        return None
    document = entry.document()
    seed, bucket = str(section(document, "spec").get("seedName") or ""), bucket_of(document)
    return (seed, bucket.name) if seed and bucket is not None else None
