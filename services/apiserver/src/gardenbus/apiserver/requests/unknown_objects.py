"""Objects that run on seeds, where the store neither has them nor remembers that they left: listed, adopted, forgotten.

The result of `unknown` is `{"items": [{"kind", "namespace", "name", "uid", "seed", "adoptable"}]}`; `adoptable`: their
gardenlet has sent their manifest, which it does with each query for them.
"""

from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.request_subjects import key_of_tail
from gardenbus.apiserver.domain.unknown_objects import FORGETTABLE_KINDS, as_bound
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.request_bodies import HostRequest
from gardenbus.common.errors import AlreadyExists, BadRequest, NotFound
from gardenbus.common.ports.store import Store


class UnknownObjects:
    """Handles `unknown`, `adopt` and `forget`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def on_unknown(self, _: Call) -> Any:
        """All of them. Raises Unavailable."""
        found = await self._store.unknown_objects()
        return {
            "items": [
                {
                    "kind": unknown.key.kind,
                    "namespace": unknown.key.namespace,
                    "name": unknown.key.name,
                    "uid": unknown.uid,
                    "seed": unknown.seed,
                    "adoptable": unknown.is_adoptable,
                }
                for unknown in found
            ]
        }

    async def on_adopt(self, call: Call) -> Any:
        """Store a shoot as its gardenlet holds it; returns it, also when it is stored on that seed already.

        Raises NotFound, AlreadyExists, Forbidden when its seed is full or gone, InvalidResource, Unavailable.
        """
        adopted = await self._adopt(call.tail, call.read(HostRequest).seed, is_dry_run=call.options.is_dry_run)
        call.done()
        return adopted

    async def _adopt(self, tail: str, seed: str, *, is_dry_run: bool) -> Any:
        key = _shoot_in(tail, "adopt")
        stored = await self._store.get(key)
        if stored is not None and not stored.parts.seed_name:
            return await self._adopt_waiting(stored, seed, is_dry_run=is_dry_run)
        if stored is not None and stored.parts.seed_name != seed:
            where = f"is stored on seed {stored.parts.seed_name}"
            raise AlreadyExists(f"{key} {where}: bind it to {seed}, or forget it there")
        if stored is None:
            unknown = await self._store.unknown_object(key, seed)
            if unknown is None or not unknown.manifest:
                raise NotFound(f"{key}: the gardenlet of seed {seed} has not sent its manifest (it does once a minute)")
            key_of(unknown.manifest)
            validate(unknown.manifest, unknown.manifest)  # it was stored once, whatever a new one may not be
            if is_dry_run:
                await self._store.dry_run(key, None, unknown.manifest, is_adoption=True)
                return unknown.manifest
            stored = await self._store.adopt(unknown)
        return msgspec.Raw(stored.encoded())

    async def _adopt_waiting(self, stored: StoredObject, seed: str, *, is_dry_run: bool) -> Any:
        """Bind a shoot, of which the store has lost that it was bound, to where it runs."""
        unknown = await self._store.unknown_object(stored.key, seed)
        if unknown is None or unknown.uid != stored.uid:
            what = "does not run" if unknown is None else "runs as another one of its name"
            raise AlreadyExists(f"{stored.key} waits for a seed, and {what} on {seed}: bind it, or forget it there")
        document = as_bound(stored, unknown)
        if is_dry_run:
            await self._store.dry_run(stored.key, stored, document)
            return document
        written = await self._store.update(stored, document, bump_generation=True)
        assert isinstance(written, StoredObject)  # it has no origin that could be superseded
        return msgspec.Raw(written.encoded())

    async def on_forget(self, call: Call) -> Any:
        """Have a seed (or a member agent) take an object down that is not stored there.

        Raises NotFound, AlreadyExists if it is, Unavailable.
        """
        key, seed = _forgettable_in(call.tail), call.read(HostRequest).seed
        unknown = await self._store.unknown_object(key, seed)
        if unknown is None and await self._store.get(key) is not None:
            raise AlreadyExists(f"{key} is stored: delete it, if it shall go")
        if not call.options.is_dry_run:
            await self._store.forget(key, seed, unknown.uid if unknown is not None else "")
        elif unknown is None:
            raise NotFound(f"{key} is not unknown on seed {seed}")
        call.done()
        return {"kind": key.kind, "namespace": key.namespace, "name": key.name, "seed": seed, "deleted": True}


def _forgettable_in(tail: str) -> ObjectKey:
    key = key_of_tail(tail)
    if key.kind not in FORGETTABLE_KINDS:
        raise BadRequest(f"forget.{tail}: one of {', '.join(FORGETTABLE_KINDS)}, as <kind>.<namespace>.<name>")
    return key


def _shoot_in(tail: str, verb: str) -> ObjectKey:
    key = key_of_tail(tail)
    if key.kind != "shoot":
        raise BadRequest(f"{verb}.{tail}: a shoot is named as shoot.<namespace>.<name>")
    return key
