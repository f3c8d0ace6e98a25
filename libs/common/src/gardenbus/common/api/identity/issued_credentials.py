"""Credentials that were issued to clients which have no certificate: a password, or an nkey.

Each is a Secret in the namespace `garden` with the label below, which holds what a credential is checked with, and not
the credential. Removing it revokes it.
"""

import base64
import hashlib
from datetime import datetime

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import BadRequest

PURPOSE_LABEL = "gardenbus.io/purpose"
CREDENTIALS = "credentials"
"""Value of the label."""


def login_in(content: bytes) -> bytes | None:
    """The JSON of user and password in a file of credentials: all of it, or the token of a kubeconfig.

    None for a file of another kind. Raises BadRequest for a kubeconfig that leads to no token.
    """
    if b"current-context" not in content:
        return content if content.lstrip().startswith(b"{") else None
    from gardenbus.common.api.identity.kubeconfigs import read_kubeconfig  # noqa: PLC0415  most clients have none

    token = read_kubeconfig(content.decode(errors="replace")).token
    if not token.startswith("{"):
        raise BadRequest("the kubeconfig's user has no token that a token requestor wrote")
    return token.encode()


def credentials_secret(
    name: str, principal: Principal, expires: datetime, *, password: str = "", nkey: str = ""
) -> Document:
    """The Secret for a credential: a password, which is random and long, or the public nkey."""
    data = {
        "user": principal.user,
        "expires": expires.isoformat(),
        **({"sha256": hashlib.sha256(password.encode()).hexdigest()} if password else {}),
        **({"nkey": nkey} if nkey else {}),
    }
    metadata = {"name": name, "namespace": GARDEN_NAMESPACE, "labels": {PURPOSE_LABEL: CREDENTIALS}}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}
