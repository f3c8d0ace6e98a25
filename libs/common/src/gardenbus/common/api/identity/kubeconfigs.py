"""Kubeconfigs that carry credentials: the token of the current context's user, and who signs for its cluster. Pure.

Source: Gardener's token requestor, `pkg/controller/tokenrequestor`, which fills the same two fields.
"""

import base64
from typing import Any, NamedTuple, cast

import yaml

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest


class Kubeconfig(NamedTuple):
    """A kubeconfig, and the user and the cluster of its current context, which are parts of it."""

    document: Document
    user: Document
    cluster: Document

    @property
    def token(self) -> str:
        """The user's token; "" without one."""
        token = self.user.get("token")
        return token if isinstance(token, str) else ""

    @property
    def authorities(self) -> str:
        """Certificates of the authorities that the cluster's is of, PEM; "" where there are none to be read."""
        try:
            return base64.b64decode(str(self.cluster.get("certificate-authority-data", "")), validate=True).decode()
        except ValueError:
            return ""


def read_kubeconfig(text: str) -> Kubeconfig:
    """Read a kubeconfig. Raises BadRequest, naming the field that leads nowhere."""
    values = read_yaml(text)
    if len(values) != 1 or not isinstance(values[0], dict):
        raise BadRequest("is no kubeconfig: it must be one YAML map")
    document = cast("Document", values[0])
    context = _entry(document, "contexts", document.get("current-context"), "current-context")
    user = _entry(document, "users", context.get("user"), "the current context's user")
    cluster = _entry(document, "clusters", context.get("cluster"), "the current context's cluster")
    return Kubeconfig(document, user, cluster)


def filled(text: str, token: str, authorities: str = "") -> str:
    """The kubeconfig with this token, and these authorities unless they are ""; all else stays. Raises BadRequest."""
    kubeconfig = read_kubeconfig(text)
    kubeconfig.user["token"] = token
    if authorities:
        kubeconfig.cluster["certificate-authority-data"] = base64.b64encode(authorities.encode()).decode()
    return yaml.safe_dump(kubeconfig.document, sort_keys=False, allow_unicode=True)


def _entry(document: Document, plural: str, name: Any, field: str) -> Document:
    """Content of the entry with this name, below the singular of the list; made where it is empty."""
    listed: Any = document.get(plural)
    for each in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(each, dict) and name and cast("Document", each).get("name") == name:
            entry, singular = cast("Document", each), plural.removesuffix("s")
            entry[singular] = section(entry, singular)
            return entry[singular]
    raise BadRequest(f"is no kubeconfig: {field} names {name!r}, which is not among {plural}")
