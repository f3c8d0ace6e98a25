"""Actor on extension objects: requests, waits for their fulfilment, deletion. The same for each kind.

A wait goes by the object alone: cut at any point, the request is repeated, and an extension that has fulfilled it
does so again.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import AlreadyExists, GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import StaleFencingToken, StepFailed
from gardenbus.gardenlet.domain.extension_objects.contract import (
    MIGRATE,
    RESTORE,
    TIMESTAMP,
    WAIT_FOR_STATE,
    deletion_patch,
    has_state,
    is_migrated,
    is_not_picked_up,
    last_error,
    migration_problem,
    ready_problem,
    request_patch,
    request_time,
    requested,
    seconds_until_next_request,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import WAITS, ExtensionObject, WaitLimits, collection, path_of
from gardenbus.gardenlet.domain.extension_objects.states import (
    NamedResource,
    named_resources,
    state_entry,
    without_server_fields,
)
from gardenbus.gardenlet.domain.managed_resources.names import RECONCILE

_FIRST_PAUSE = 0.25
REQUESTED_AGAIN_AFTER_SECONDS = 30.0
"""Time after which a request that was not picked up is written again: an extension drops what it could not act on."""


@dataclass
class _LastRequest:
    """The last request that was written for an object, and when."""

    at: str
    written_at: float


class ExtensionActor:
    """See the module. Every method raises StepFailed with the codes of the extension, and StaleFencingToken."""

    def __init__(self, api: SeedAPI, clock: Clock, waits: Mapping[str, WaitLimits] = WAITS) -> None:
        self._api = api
        self._clock = clock
        self._waits = waits

    async def reconcile(self, wanted: ExtensionObject) -> Document:
        """Have an object reconciled; returns it. One that was migrated away from here is restored."""
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        what = f"{wanted.kind} {wanted.namespace}/{wanted.name}"
        try:
            live = await self._api.get(path)
            operation = RESTORE if live is not None and is_migrated(live) else RECONCILE
            at = await self._request(path, wanted, live, operation)
        except GardenbusError as error:
            raise self._failed(error, f"Error while requesting {what}") from error
        return await self._until_ready(wanted, at)

    async def restore(self, wanted: ExtensionObject, entry: Document | None, resources: Sequence[Document]) -> Document:
        """Have an object restored from its entry of a ShootState; returns it."""
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        what = f"{wanted.kind} {wanted.namespace}/{wanted.name}"
        try:
            live = await self._api.get(path)
            await self._request(path, wanted, live, WAIT_FOR_STATE)
            live = await self.write_state(wanted, entry, resources)
            at = await self._request(path, wanted, live, RESTORE)
        except GardenbusError as error:
            raise self._failed(error, f"Error while restoring {what}") from error
        return await self._until_ready(wanted, at)

    async def write_state(
        self, wanted: ExtensionObject, entry: Document | None, resources: Sequence[Document] = ()
    ) -> Document | None:
        """Write what an entry of a ShootState has of an object that waits for its state, unless it has some.

        Returns the object as it was. Raises what the API does, and StepFailed.
        """
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        live = await self._api.get(path)
        if entry is not None and live is not None and not has_state(live):
            for each in named_resources(entry):
                await self._create_resource(wanted.namespace, each, resources)
            status = {field: entry[field] for field in ("state", "resources") if entry.get(field)}
            await self._api.patch(f"{path}/status", {"status": status})
        return live

    async def migrate(self, kind: str, namespace: str, names: Iterable[str]) -> None:
        """Have objects migrated: nothing of them is destroyed when they are deleted. Those that are gone are done."""
        for name in names:
            path = path_of(kind, namespace, name)
            try:
                live = await self._api.get(path)
                if live is None or is_migrated(live):
                    continue
                await self._clock.sleep(seconds_until_next_request(live, self._clock.now()))
                await self._api.patch(path, request_patch(MIGRATE, request_time(self._clock.now())))
            except GardenbusError as error:
                raise self._failed(error, f"Error while requesting {kind} {namespace}/{name}") from error
            await self._until_migrated(kind, namespace, name)

    async def delete(self, kind: str, namespace: str, names: Iterable[str], wait: WaitLimits | None = None) -> None:
        """Delete objects, and wait until they are gone, as long as is said or as the kind takes."""
        deleted = list(names)
        for name in deleted:
            path = path_of(kind, namespace, name)
            try:
                if await self._api.patch(path, deletion_patch(request_time(self._clock.now()))) is not None:
                    await self._api.delete(path)
            except GardenbusError as error:
                raise self._failed(error, f"Failed to delete {kind} {namespace}/{name}") from error
        for name in deleted:
            await self._until_gone(kind, namespace, name, wait or self._waits[kind])

    async def live(self, kind: str, namespace: str) -> list[Document]:
        """All objects of a kind in a namespace. Raises StepFailed."""
        try:
            return await self._api.items(collection(kind, namespace))
        except GardenbusError as error:
            raise self._failed(error, f"{kind}s of {namespace} cannot be listed") from error

    async def states(self, kinds: Iterable[str], namespace: str) -> tuple[list[Document], list[Document]]:
        """The entries of a ShootState for all objects with state, and for the objects that these name."""
        entries: list[Document] = []
        resources: list[Document] = []
        for kind in kinds:
            entries += [
                entry for each in await self.live(kind, namespace) if (entry := state_entry(kind, each)) is not None
            ]
        for named in sorted({resource for entry in entries for resource in named_resources(entry)}):
            try:
                found = await self._api.get(_resource_path(namespace, named))
            except GardenbusError as error:
                raise self._failed(error, f"{named.kind} {namespace}/{named.name} cannot be read") from error
            if found is not None:
                reference = {"apiVersion": named.api_version, "kind": named.kind, "name": named.name}
                resources.append({"resourceRef": reference, "data": without_server_fields(found)})
        return entries, resources

    async def _request(self, path: str, wanted: ExtensionObject, live: Document | None, operation: str) -> str:
        """Write an object with a request; returns the request's time."""
        await self._clock.sleep(seconds_until_next_request(live, self._clock.now()))
        at = request_time(self._clock.now())
        await self._api.write(path, lambda live: requested(live, wanted, operation, at))
        return at

    async def _create_resource(self, namespace: str, named: NamedResource, resources: Sequence[Document]) -> None:
        data = next((section(each, "data") for each in resources if _is_about(each, named)), None)
        if data is None:
            return
        made = {**data, "metadata": {**section(data, "metadata"), "namespace": namespace}}
        try:
            await self._api.write(_resource_path(namespace, named), lambda live: made if live is None else None)
        except AlreadyExists:
            return

    async def _until_ready(self, wanted: ExtensionObject, at: str) -> Document:
        """Wait until an object is ready for the request of a time; one that is not picked up is repeated."""
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        wait = self._waits[wanted.kind]
        if wanted.timeout_seconds:
            wait = wait._replace(timeout=wanted.timeout_seconds)
        request = _LastRequest(at, self._clock.monotonic())

        async def repeat(live: Document) -> None:
            now = self._clock.monotonic()
            if is_not_picked_up(live) and now - request.written_at >= REQUESTED_AGAIN_AFTER_SECONDS:
                at = request_time(self._clock.now())
                await self._api.patch(path, {"metadata": {"annotations": {TIMESTAMP: at}}})
                request.at, request.written_at = at, now

        def check(live: Document | None) -> str | None:
            return "it does not exist" if live is None else ready_problem(live, request.at)

        what = f"Error while waiting for {wanted.kind} {wanted.namespace}/{wanted.name} to become ready"
        return await self._until(path, wait, check, what=what, repeat=repeat) or {}

    async def _until_migrated(self, kind: str, namespace: str, name: str) -> None:
        what = f"Error while waiting for {kind} {namespace}/{name} to be successfully migrated"
        await self._until(
            path_of(kind, namespace, name),
            self._waits[kind],
            lambda live: None if live is None else migration_problem(live),
            what=what,
        )

    async def _until_gone(self, kind: str, namespace: str, name: str, wait: WaitLimits) -> None:
        await self._until(
            path_of(kind, namespace, name),
            wait,
            lambda live: None if live is None else _presence(live, f"{kind} {namespace}/{name}"),
            what="Error while waiting for a deletion",
        )

    async def _until(
        self,
        path: str,
        wait: WaitLimits,
        check: Callable[[Document | None], str | None],
        *,
        what: str,
        repeat: Callable[[Document], Awaitable[None]] | None = None,
    ) -> Document | None:
        """Wait until an object has no problem; while the API is away, that is one. Raises StepFailed with the last."""
        began, with_error = self._clock.monotonic(), 0.0
        pauses = Backoff(min(_FIRST_PAUSE, wait.interval), wait.interval).pauses()
        while True:
            live: Document | None = None
            try:
                live = await self._api.get(path)
                problem = check(live)
                if problem is None:
                    return live
                if live is not None and repeat is not None:
                    await repeat(live)
            except StaleFencingToken:
                raise
            except GardenbusError as error:
                problem = self._api.failure(error, "the seed's API gives no response").message
            error = None if live is None else last_error(live)
            if self._clock.monotonic() - began >= wait.timeout or with_error > wait.severe:
                raise StepFailed(f"{what}: {problem}", () if error is None else error.codes)
            await self._clock.sleep(pause := next(pauses))
            with_error += pause if error is not None else 0.0

    def _failed(self, error: GardenbusError, what: str) -> GardenbusError:
        return error if isinstance(error, StaleFencingToken | StepFailed) else self._api.failure(error, what)


def names_of(objects: Iterable[Document]) -> list[str]:
    """Names of objects, sorted."""
    return sorted(name_of(each) for each in objects)


def _presence(live: Document, what: str) -> str:
    error = last_error(live)
    return f"{what} is still present" if error is None else f"Failed to delete {what}: {error.description}"


def _is_about(entry: Document, named: NamedResource) -> bool:
    reference = section(entry, "resourceRef")
    return (reference.get("kind"), reference.get("name")) == (named.kind, named.name)


_RESOURCES: Mapping[tuple[str, str], str] = {
    ("v1", "Secret"): "secrets",
    ("v1", "ConfigMap"): "configmaps",
}
"""Objects that a state may name, by version and kind."""


def _resource_path(namespace: str, named: NamedResource) -> str:
    plural = _RESOURCES.get((named.api_version, named.kind))
    if plural is None:
        raise StepFailed(f"{named.kind} {namespace}/{named.name} of {named.api_version} cannot be part of a state")
    return f"/api/v1/namespaces/{namespace}/{plural}/{named.name}"
