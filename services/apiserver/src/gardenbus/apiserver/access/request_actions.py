"""Reads what a request is about, by its row in the table of verbs: so it is authorized before it is carried out."""

from typing import assert_never

from gardenbus.apiserver.domain.authorization.actions import Action
from gardenbus.apiserver.domain.query_bodies import read_body
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.request_bodies import ListRequest
from gardenbus.common.api.verbs import Verb


async def action_of(verb: Verb, tail: str, body: bytes, names: StoredNames) -> Action | None:
    """The action; None where each object that the body names is one. Raises what carrying it out would raise."""
    match verb.scope:
        case "documents":
            return None
        case "object":
            return Action.on(verb.name, await names.key(tail))
        case "explained":
            key = await names.explained_key(tail)
            return Action("explain-seed") if key.kind == "seed" else Action.on(verb.name, key)
        case "kind":
            return await _list_action(verb, tail, body, names)
        case "scheduler":
            return Action(verb.name, name=tail)
        case "subject":
            return Action(f"{verb.name}.{tail}" if tail else verb.name)
        case "landscape":
            return Action(verb.name)
        case _:
            assert_never(verb.scope)


async def _list_action(verb: Verb, tail: str, body: bytes, names: StoredNames) -> Action:
    target = await names.list_target(tail)
    spec = KINDS.get(target.kind)
    is_cluster_scoped = spec is not None and spec.namespaced is False
    action = Action("list", target.kind, "" if is_cluster_scoped else target.namespace)
    if verb.name != "list":
        return action
    query = read_body(body, ListRequest, "the body of a list")
    labels = query.labels if action.kind == "configmap" else action.labels  # of others nothing depends on them
    name = query.selected_name if action.kind == "lease" else ""  # a gardenlet lists its own
    return action._replace(name=name, seed=query.seed, labels=labels)
