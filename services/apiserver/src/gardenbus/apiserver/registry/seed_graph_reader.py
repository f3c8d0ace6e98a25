"""Reads what a gardenlet's Seed leads to, as far as one decision needs it."""

from collections.abc import Collection, Sequence

from gardenbus.apiserver.domain.authorization.seed_graph import (
    FOLLOWED_KINDS,
    is_deployed_by,
    is_hosted,
    is_in_own_namespace,
    is_of_seed,
    own_keys,
    references_of,
    shoot_called_after,
)
from gardenbus.apiserver.registry.indexed_lists import INSTALLATION
from gardenbus.apiserver.registry.read_cache import project_namespace
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.backup_references import GENERATED_PREFIX, is_generated
from gardenbus.common.api.garden.extensions import EXTENSION_NAMESPACE_PREFIX, HEARTBEAT_NAME
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.ports.store import Store

READ_TOGETHER = 500
"""Objects of one read."""


async def is_reachable(store: Store, seed: str, key: ObjectKey) -> bool:
    """True when a path of references leads from a Seed to an object, as they are stored now. Raises Unavailable."""
    if key in own_keys(seed) or is_in_own_namespace(key, seed):
        return True
    shoots = await store.shoots_on(seed)
    if shoot_called_after(key) in shoots:
        return True
    match key.kind:
        case "shoot" | "shootstate":
            return ObjectKey("shoot", key.namespace, key.name) in shoots
        case "namespace":
            return any(shoot.namespace == key.name for shoot in shoots)
        case "backupbucket":
            own = await store.get(ObjectKey("seed", "", seed))
            return (own is not None and own.uid == key.name) or await _is_of_seed(store, seed, key)
        case "secret" if is_generated(key):
            bucket = ObjectKey("backupbucket", "", key.name.removeprefix(GENERATED_PREFIX))
            return await _is_of_seed(store, seed, bucket)
        case "project" | "managedseed" | "backupentry" | "bastion" | "controllerinstallation":
            stored = await store.get(key)
            return stored is not None and _is_direct(key, stored.document(), seed, shoots)
        case "controllerdeployment":
            installations = await store.get_many_partial(await _installations(store, seed))
            return any(each is not None and is_deployed_by(each.document(), key) for each in installations)
        case "lease" if key.name == HEARTBEAT_NAME and key.namespace.startswith(EXTENSION_NAMESPACE_PREFIX):
            name = key.namespace.removeprefix(EXTENSION_NAMESPACE_PREFIX)
            return ObjectKey(INSTALLATION, "", name) in await _installations(store, seed)
        case _:
            return await _is_referred(store, seed, shoots, key)


async def _is_of_seed(store: Store, seed: str, key: ObjectKey) -> bool:
    stored = await store.get(key)
    return stored is not None and is_of_seed(key, stored.document(), seed)


async def _installations(store: Store, seed: str) -> list[ObjectKey]:
    return [key for key in await store.referring(ObjectKey("seed", "", seed)) if key.kind == INSTALLATION]


def _is_direct(key: ObjectKey, document: Document, seed: str, shoots: Collection[ObjectKey]) -> bool:
    match key.kind:
        case "project":
            return any(shoot.namespace == project_namespace(document) for shoot in shoots)
        case "managedseed":
            return is_hosted(document, shoots)
        case _:
            return is_of_seed(key, document, seed)


async def _is_referred(store: Store, seed: str, shoots: Sequence[ObjectKey], key: ObjectKey) -> bool:
    """Follow references: first of the shoots in the object's namespace, where nearly all of them are."""
    near = [shoot for shoot in shoots if shoot.namespace == key.namespace]
    if await _leads_to(store, near, key):
        return True
    others = [ObjectKey("seed", "", seed), *(shoot for shoot in shoots if shoot.namespace != key.namespace)]
    if any(shoot.namespace == GARDEN_NAMESPACE for shoot in shoots):
        others += await _hosted_managed_seeds(store, shoots)
    return await _leads_to(store, others, key)


async def _leads_to(store: Store, roots: Sequence[ObjectKey], key: ObjectKey) -> bool:
    seen = set(roots)
    frontier = list(roots)
    while frontier:
        found: set[ObjectKey] = set()
        for start in range(0, len(frontier), READ_TOGETHER):
            keys = frontier[start : start + READ_TOGETHER]
            for one, stored in zip(keys, await store.get_many_partial(keys), strict=True):
                if stored is not None:
                    found.update(references_of(one, stored.document()))
        if key in found:
            return True
        frontier = [each for each in found - seen if each.kind in FOLLOWED_KINDS]
        seen |= found
    return False


async def _hosted_managed_seeds(store: Store, shoots: Collection[ObjectKey]) -> list[ObjectKey]:
    hosted: list[ObjectKey] = []
    token: str | None = None
    while True:
        page = await store.list_page("managedseed", GARDEN_NAMESPACE, continue_token=token)
        hosted += [stored.key for stored in page.objects if is_hosted(stored.document(), shoots)]
        token = page.continue_token
        if token is None:
            return hosted
