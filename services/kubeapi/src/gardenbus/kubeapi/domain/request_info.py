"""Reads the path of a request: the verb, the resource, and the object it is about."""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.kubeapi.domain.resources import ApiResource, Subresource, resource_at

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False", ""})

_VERBS: Mapping[str, tuple[str, str]] = {
    "GET": ("list", "get"),
    "POST": ("create", ""),
    "PUT": ("", "update"),
    "PATCH": ("", "patch"),
    "DELETE": ("deletecollection", "delete"),
}
"""Verb of a method on a collection, and on one object; "" where there is none."""


class RequestInfo(NamedTuple):
    """A request about a resource. `namespace` "" is all of them, or none; `name` "" is the collection."""

    verb: str
    resource: ApiResource
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    query: Mapping[str, str] = {}

    @property
    def path(self) -> str:
        """The resource as rights name it: `shoots`, `shoots/binding`."""
        return self.resource.plural + (f"/{self.subresource.name}" if self.subresource else "")

    def flag(self, name: str) -> bool:
        """A parameter that is true or false, as Go reads it. Raises BadRequest."""
        return flag_of(self.query.get(name, ""), name)


class MethodNotAllowed(BadRequest):
    """The resource has no such verb."""

    code = 405
    reason = "MethodNotAllowed"


def flag_of(text: str, name: str) -> bool:
    """Read a boolean as Go's ParseBool does. Raises BadRequest."""
    if text not in _TRUE | _FALSE:
        raise BadRequest(f"{name}: {text[:40]!r} is neither true nor false")
    return text in _TRUE


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """The request of a path below `/api/` or `/apis/`. Raises NotFound, MethodNotAllowed, BadRequest."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        raise _unknown()
    group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1] if parts[1:] else "", parts[2:])
    if len(rest) < 2 or not all(rest):  # noqa: PLR2004 - version and resource
        raise _unknown()
    version, *tail = rest
    namespace = ""
    if tail[0] == "namespaces" and len(tail) > 2 and resource_at(group, version, tail[2]):  # noqa: PLR2004
        namespace, tail = tail[1], tail[2:]
    resource = resource_at(group, version, tail[0])
    if resource is None or len(tail) > 3 or (namespace and not resource.namespaced):  # noqa: PLR2004
        raise _unknown()
    name, part = (*tail[1:], "", "")[:2]
    subresource = _subresource(resource, part)
    verb = _verb(method, resource, name, subresource, query)
    if resource.namespaced and not namespace:
        if name:
            raise _unknown()
        if verb not in ("list", "watch"):
            raise MethodNotAllowed("the server does not allow this method on objects of all namespaces")
    return RequestInfo(verb, resource, namespace, name, subresource, query)


def _unknown() -> NotFound:
    return NotFound("the server could not find the requested resource")


def _subresource(resource: ApiResource, name: str) -> Subresource | None:
    if not name:
        return None
    for each in resource.subresources:
        if each.name == name:
            return each
    raise _unknown()


def _verb(
    method: str, resource: ApiResource, name: str, subresource: Subresource | None, query: Mapping[str, str]
) -> str:
    of_collection, of_object = _VERBS.get(method, ("", ""))
    verb = of_object if name else of_collection
    if method == "POST" and subresource is not None:
        verb = "create"
    if verb == "list" and flag_of(query.get("watch", ""), "watch"):
        verb = "watch"
    if verb not in (resource.verbs if subresource is None else subresource.verbs):
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return verb
