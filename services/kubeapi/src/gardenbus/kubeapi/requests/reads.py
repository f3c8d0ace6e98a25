"""Gets and lists. A get is a request as the user; a list is served from the cache, to whom the apiserver lets list."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.kubeapi.access.authorizer import AccessAttributes, DelegatingAuthorizer
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.list_options import Continue, ListOptions, list_options
from gardenbus.kubeapi.domain.negotiation import METADATA, TABLE
from gardenbus.kubeapi.domain.resources import ApiResource
from gardenbus.kubeapi.domain.statuses import ResourceExpired, TooLargeVersion
from gardenbus.kubeapi.domain.tables import Included, partial, table
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response
from gardenbus.kubeapi.watch.barrier import Barrier
from gardenbus.kubeapi.watch.cacher import CachedObject, Cacher
from gardenbus.kubeapi.watch.caches import Caches

decode = json_decoder(Document)

MOST_OF_LEASES = 500
"""Leases in one response of the apiserver, which lists those of seeds from the bus."""


def included_in(request: ApiRequest) -> Included:
    """Part of each object that rows of a Table have beside their cells. Raises BadRequest."""
    given = request.info.query.get("includeObject") or "Metadata"
    if given not in ("None", "Metadata", "Object"):
        raise BadRequest(f"includeObject: {given[:40]!r} is none of None, Metadata, Object")
    return given


def key_of(request: ApiRequest) -> ObjectKey:
    """The object that a request is about."""
    info = request.info
    return ObjectKey(info.resource.singular, info.namespace, info.name)


class Reads:
    """Handles gets and lists."""

    def __init__(
        self,
        api: ImpersonatingClient,
        authorizer: DelegatingAuthorizer,
        caches: Caches,
        now: Callable[[], datetime],
        barrier: Barrier,
    ) -> None:
        self._barrier = barrier
        self._api = api
        self._authorizer = authorizer
        self._caches = caches
        self._now = now

    async def get(self, request: ApiRequest) -> ObjectResponse:
        """One object. Raises NotFound, Forbidden, Unavailable."""
        info = request.info
        body = await self._object(request)
        if not request.accepted.form:
            return ObjectResponse(body)
        document: Document = decode(body)
        if request.accepted.form == METADATA:
            return object_response(partial(document))
        rows = table(info.resource.singular, [document], self._now(), version=None, included=included_in(request))
        rows["metadata"] = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
        return object_response(rows)

    async def _object(self, request: ApiRequest) -> bytes:
        info, user = request.info, request.user.acting
        key = key_of(request)
        if key.kind == "event" or info.query.get("resourceVersion") == "0":
            await self._authorizer.require(
                AccessAttributes(user, "get", info.resource.singular, info.namespace, info.name)
            )
            cache = self._caches.of(key.kind)
            await self._caches.until_read(cache)
            cached = cache.get(key)
            if cached is None:
                raise NotFound(f"{key} not found")
            return cached.body
        return (await self._api.request(user, f"get.{key.tail}")).body

    async def list(self, request: ApiRequest) -> ObjectResponse:
        """A list. Raises Forbidden, ResourceExpired, TooLargeVersion, BadRequest, Unavailable."""
        info = request.info
        options = list_options(info.query)
        if info.resource.singular == "lease":
            return await self._leases(request, options)
        await self._authorizer.require(AccessAttributes.of_list(request.user.acting, "list", info))
        cache = self._caches.of(info.resource.singular)
        await self._reach(cache, options)
        selected = [
            each
            for each in cache.objects(info.resource.singular, info.namespace)
            if (not options.name or each.key.name == options.name)
            and (options.matches is None or options.matches(each.document()))
        ]
        shown, version, metadata = _page(selected, options, cache.mark)
        return self._listed(request, (each.body for each in shown), version, metadata)

    async def _reach(self, cache: Cacher, options: ListOptions) -> None:
        """Wait until the cache is as new as the options demand."""
        if options.continues is not None:
            return
        if options.match == "Exact" and options.version not in (None, cache.mark):
            raise ResourceExpired(f"the resource version {options.version} is not kept: {cache.mark} is the only one")
        version = options.version or 0
        if not await self._caches.wait_for(cache, version):
            if not cache.synced:
                raise Unavailable("the announcements have not been read yet: try again")
            raise TooLargeVersion(f"Too large resource version: {version}, current: {cache.mark}")
        if options.version is None and cache is self._caches.objects:
            await self._barrier.pass_through()

    async def _leases(self, request: ApiRequest, options: ListOptions) -> ObjectResponse:
        info = request.info
        tail = f"list.lease.{info.namespace}" if info.namespace else "list.lease"
        query = {
            name: info.query[name] for name in ("labelSelector", "fieldSelector", "continue") if name in info.query
        }
        body: dict[str, Any] = {**query, "limit": options.limit or MOST_OF_LEASES}
        result = await self._api.result(request.user.acting, tail, body)
        metadata = {"continue": result["continue"]} if result.get("continue") else {}
        bodies = (encode(each) for each in result.get("items", ()))
        return self._listed(request, bodies, self._caches.objects.mark, metadata)

    def _listed(self, request: ApiRequest, bodies: Iterable[bytes], version: int, metadata: Document) -> ObjectResponse:
        resource, metadata = request.info.resource, {"resourceVersion": str(version), **metadata}
        if not request.accepted.form:
            return ObjectResponse(_list_of(resource, metadata, bodies))
        documents = map(decode, bodies)
        if request.accepted.form == METADATA:
            listed = [partial(each) for each in documents]
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return object_response({**kind, "metadata": metadata, "items": listed})
        assert request.accepted.form == TABLE
        rows = table(resource.singular, documents, self._now(), version=version, included=included_in(request))
        return object_response({**rows, "metadata": metadata})


def _page(
    selected: "list[CachedObject]", options: ListOptions, mark: int
) -> tuple["list[CachedObject]", int, Document]:
    """The objects of a page, the version of the list, and where it goes on."""
    version = mark
    if options.continues is not None:
        after = (options.continues.namespace, options.continues.name)
        selected = [each for each in selected if (each.key.namespace, each.key.name) > after]
        version = options.continues.version
    if not options.limit or len(selected) <= options.limit:
        return selected, version, {}
    shown, last = selected[: options.limit], selected[options.limit - 1].key
    metadata: Document = {"continue": Continue(version, last.namespace, last.name).token}
    if not options.selector:
        metadata["remainingItemCount"] = len(selected) - options.limit
    return shown, version, metadata


def _list_of(resource: ApiResource, metadata: Document, bodies: Iterable[bytes]) -> bytes:
    head = encode({"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata})
    return head[:-1] + b',"items":[' + b",".join(bodies) + b"]}"
