"""Reads what a request is about to do, so that it can be authorized before it is carried out."""

from gardenbus.apiserver.domain.authorization.actions import Action
from gardenbus.apiserver.domain.request_subjects import key_of_tail
from gardenbus.apiserver.handlers.queries import ListQuery, ObjectReader
from gardenbus.common.api.kinds import KINDS

_LANDSCAPE_VERBS = frozenset(
    {
        "kinds",
        "census",
        "usage",
        "unknown",
        "lost",
        "recovery",
        "proceed",
        "explain-seed",
        "whoami",
        "can-i",
        "readable",
    }
)


async def query_action(verb: str, tail: str, body: bytes, reader: ObjectReader) -> Action:
    """The action of a request that writes nothing by a manifest. Raises what carrying it out would raise."""
    match verb:
        case "get":
            return Action.on("get", await reader.key(tail))
        case "list":
            query, action = ListQuery.read(body), await _list_action(tail, reader)
            labels = query.labels if action.kind == "configmap" else action.labels  # of others nothing depends on them
            return action._replace(seed=query.seed, labels=labels)
        case "names":
            return await _list_action(tail, reader)
        case "explain":
            key = await reader.explained_key(tail)
            return Action("explain-seed") if key.kind == "seed" else Action.on("explain", key)
        case "retry" | "adopt" | "forget":
            return Action.on(verb, key_of_tail(tail))
        case "waiting":
            return Action("waiting", name=tail)
        case _ if verb in _LANDSCAPE_VERBS:
            return Action(verb)
        case _:
            return Action(f"{verb}.{tail}" if tail else verb)


async def _list_action(tail: str, reader: ObjectReader) -> Action:
    target = await reader.list_target(tail)
    spec = KINDS.get(target.kind)
    is_cluster_scoped = spec is not None and spec.namespaced is False
    namespace = "" if is_cluster_scoped else target.namespace
    return Action("list", target.kind, namespace)
