"""Request handlers of the tree: what belongs to what, and the Works of a binding."""

from collections.abc import Mapping, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX
from gardenbus.common.api.fleet.placement_parts import PARENT_BINDING_LABEL
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.tree_nodes import Tone, TreeNode
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.tree import MOST_CHILDREN, MOST_NODES, ObjectTree
from gardenbus.dashboard.web.acting import acting
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

APPLIED = "Applied"
_WORKS: Mapping[str, tuple[Tone, str]] = {"True": ("good", "applied"), "False": ("bad", "not applied")}


class TreeHandlers:
    """Read-only handlers."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._api = api
        self._tree = ObjectTree(cache)

    async def tree(self, request: Request) -> Response:
        """Respond with the tree: `open` and `closed` name nodes as `<kind>.<namespace>.<name>`. Raises BadRequest."""
        if unknown := sorted(set(request.query_params) - {"open", "closed", "offset"}):
            raise BadRequest(f"{unknown[0]}: no such parameter; there are open, closed and offset")
        offset = whole_number(request.query_params.get("offset", "0"), -1)
        if offset < 0:
            raise BadRequest("offset must not be negative")
        opened, closed = _keys(request, "open"), _keys(request, "closed")
        return json_response({"root": self._tree.tree(opened, closed, offset=offset), "page": MOST_CHILDREN})

    async def works(self, request: Request) -> Response:
        """Respond with the Works of a binding: they are not followed, so the API is requested. Raises NotFound."""
        key = key_in(request)
        row = self._cache.fleet.tables.get(key.kind, {}).get(key)
        if row is None:
            raise NotFound(f"{key} not found")
        namespace = f"{CLUSTER_NAMESPACE_PREFIX}{row.cluster}"
        selector = {"labelSelector": f"{PARENT_BINDING_LABEL}={key.name}", "limit": MOST_CHILDREN}
        found = await acting(self._api, request).request(f"list.work.{namespace}", selector)
        works = [_work(namespace, each) for each in found["items"]]
        return json_response({"items": msgspec.to_builtins(works)})


def _keys(request: Request, parameter: str) -> set[ObjectKey]:
    given: Sequence[str] = request.query_params.getlist(parameter)
    if len(given) > MOST_NODES:
        raise BadRequest(f"{parameter}: at most {MOST_NODES} nodes")
    try:
        return {ObjectKey.from_tail(each) for each in given}
    except ValueError as error:
        raise BadRequest(f"{parameter}: {error} (`{CLUSTER_SCOPE}` is the namespace of what has none)") from error


def _work(namespace: str, document: Document) -> TreeNode:
    status = condition_status(conditions_of(document), APPLIED)
    tone, words = _WORKS.get(status, ("busy", "not reported yet"))
    return TreeNode("work", namespace, str(section(document, "metadata").get("name") or ""), tone, words)
