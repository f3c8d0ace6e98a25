"""Object keys in request paths."""

from starlette.requests import Request

from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey


def key_in(request: Request) -> ObjectKey:
    """Return the object that a path names; `_` is the namespace of cluster-scoped ones."""
    path = request.path_params
    namespace = "" if path["namespace"] == CLUSTER_SCOPE else path["namespace"]
    return ObjectKey(str(path["kind"]).lower(), namespace, path["name"])
