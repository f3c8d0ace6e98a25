"""Kubeconfigs of a landscape: its Kubernetes API, and the credentials of whoever runs the client."""

import base64
import re
from pathlib import Path

import msgspec
import yaml

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.contexts.credential_files import kind_of
from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.issued_credentials import login_in
from gardenbus.common.errors import BadRequest

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
"""A block of PEM: a certificate, or a key."""

KUBERNETES_API = "kubeapi"
"""Name of the service."""


class _Login(msgspec.Struct, frozen=True):
    user: str
    password: str


def landscape_kubeconfig(where: LandscapeTarget, server: str, namespace: str) -> str:
    """The kubeconfig, as YAML; `server` "" is the one that the landscape's directory names. Raises BadRequest."""
    cluster: Document = {"server": server or _server_of(where)}
    if where.ca:
        cluster["certificate-authority-data"] = _encoded(_content(Path(where.ca)))
    context = {"cluster": "landscape", "user": "landscape", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "landscape", "cluster": cluster}],
        "users": [{"name": "landscape", "user": _user_of(where)}],
        "contexts": [{"name": "landscape", "context": context}],
        "current-context": "landscape",
    }
    return yaml.safe_dump(document, sort_keys=False)


def _server_of(where: LandscapeTarget) -> str:
    found = LandscapeDirectory(where.directory).read() if where.directory is not None else None
    for entry in found.services if found is not None else ():
        if entry.name == KUBERNETES_API and entry.url:
            return str(entry.url)
    raise BadRequest("--server: say where the Kubernetes API is; no directory of a landscape names one that runs")


def _user_of(where: LandscapeTarget) -> Document:
    """The credentials as a kubeconfig has them: a token, or a certificate."""
    if where.login is not None:
        return {"token": _encoded(":".join(where.login).encode())}
    if where.credentials is None:
        raise BadRequest("there are no credentials: everybody may do everything there, so no Kubernetes API is served")
    content = _content(where.credentials)
    match kind_of(where.credentials):
        case "certificate":
            blocks = _BLOCK.findall(content)
            certificates = b"".join(block for block in blocks if block.startswith(_CERTIFICATE))
            keys = b"".join(block for block in blocks if not block.startswith(_CERTIFICATE))
            return {"client-certificate-data": _encoded(certificates), "client-key-data": _encoded(keys)}
        case "login":
            try:
                login = msgspec.json.decode(login_in(content) or b"", type=_Login)
            except msgspec.MsgspecError as error:
                raise BadRequest(f"{where.credentials}: {error}") from error
            return {"token": _encoded(f"{login.user}:{login.password}".encode())}
        case _:
            raise BadRequest(f"{where.credentials}: the Kubernetes API takes certificates and passwords, not this")


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror}") from error
