"""Secrets that request credentials (Gardener's token requestor), and whose they request. Pure."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.names import issued, service_account
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, Principal
from gardenbus.common.errors import BadRequest

PURPOSE_LABEL = "resources.gardener.cloud/purpose"
TOKEN_REQUESTOR = "token-requestor"  # noqa: S105 - a label's value
USER_ANNOTATION = "gardenbus.io/user"
SERVICE_ACCOUNT_ANNOTATION = "serviceaccount.resources.gardener.cloud/"
"""Prefix of the annotations `name` and `namespace`, and of the request's others."""

_ROLES = ("user", "scheduler", "extension", "plugin")


def requested_principal(secret: Document) -> Principal:
    """The principal whose credentials a Secret requests. Raises BadRequest, naming the annotation."""
    annotations = section(section(secret, "metadata"), "annotations")
    user, where = str(annotations.get(USER_ANNOTATION, "")), f"metadata.annotations.{USER_ANNOTATION}"
    if not user and (name := annotations.get(f"{SERVICE_ACCOUNT_ANNOTATION}name")):
        if not (namespace := annotations.get(f"{SERVICE_ACCOUNT_ANNOTATION}namespace")):
            raise BadRequest(
                f"metadata.annotations.{SERVICE_ACCOUNT_ANNOTATION}namespace: is needed: that of the ServiceAccount"
            )
        return _service_account(str(namespace), str(name))
    if not user:
        raise BadRequest(f"{where}: is needed: whose credentials, as scheduler:mine")
    try:
        principal = issued(user)
    except BadRequest as error:
        raise BadRequest(f"{where}: {error.message}") from error
    if principal.role not in _ROLES or user.startswith(SERVICE_ACCOUNT_PREFIX):
        raise BadRequest(f"{where}: {user!r}: only users', schedulers', extensions' and plug-ins' can be requested")
    return principal


def _service_account(namespace: str, name: str) -> Principal:
    try:
        return service_account(namespace, name)
    except BadRequest as error:
        raise BadRequest(f"metadata.annotations.{SERVICE_ACCOUNT_ANNOTATION}name: {error.message}") from error
