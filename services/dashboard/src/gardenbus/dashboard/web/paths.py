"""Which object a path of the API names."""

from starlette.requests import Request

from gardenbus.common.resources.keys import CLUSTER_SCOPE, ObjectKey


def key_in(request: Request) -> ObjectKey:
    """The object that a path names; `_` is the namespace of what has none."""
    path = request.path_params
    namespace = "" if path["namespace"] == CLUSTER_SCOPE else path["namespace"]
    return ObjectKey(str(path["kind"]).lower(), namespace, path["name"])
