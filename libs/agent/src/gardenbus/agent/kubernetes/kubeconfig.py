"""Kubeconfigs: one server, and its user. Every field that would be left out silently is an error that says so.

Files that a kubeconfig names are relative to its own directory. Programs that it names are not run, and servers whose
certificates nobody checks are not talked to.
"""

import base64
import binascii
import ssl
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import aiohttp
from cryptography import x509

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.errors import KubeconfigInvalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest

_LARGEST_FILE = 1 << 20
_UNSUPPORTED = {
    "exec": "no programs are run: give it a token or a certificate",
    "auth-provider": "it was removed from Kubernetes: give it a token or a certificate",
    "username": "passwords were removed from Kubernetes: give it a token or a certificate",
    "as": "write the credentials of that user",
}


class Access(NamedTuple):
    """Access to one API server."""

    server: str
    tls: ssl.SSLContext
    token: str = ""
    server_name: str | None = None
    expires_at: datetime | None = None
    """End of the client certificate's life."""

    def client(self, session: aiohttp.ClientSession, *, timeout_seconds: float) -> KubernetesClient:
        """A client on a session that others may share."""
        return KubernetesClient(
            session,
            self.server,
            self.tls,
            timeout_seconds=timeout_seconds,
            token=self.token,
            server_name=self.server_name,
        )


def read_kubeconfig(file: Path) -> Access:
    """Read a kubeconfig's current context. Raises KubeconfigInvalid, naming the file, the field and what to do."""
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise KubeconfigInvalid(f"{file}: a kubeconfig has at most {_LARGEST_FILE >> 20} MiB")
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise KubeconfigInvalid(f"{file}: the kubeconfig cannot be read: {reason}") from error
    return parse_kubeconfig(text, source=str(file), directory=file.parent)


def parse_kubeconfig(text: str, *, source: str, directory: Path | None = None) -> Access:
    """As `read_kubeconfig`. Without a directory it must hold everything itself."""
    try:
        loaded = read_yaml(text, most=1)
    except BadRequest as error:
        raise KubeconfigInvalid(f"{source}: the kubeconfig cannot be read: {error.message}") from error
    reading = _KubeconfigReading(source, directory)
    if not loaded or not isinstance(loaded[0], dict):
        raise reading.problem("", "it is no mapping")
    config = cast("Document", loaded[0])
    context = reading.named(config, "contexts", str(config.get("current-context") or ""), "current-context", "context")
    cluster = reading.named(config, "clusters", str(context.get("cluster") or ""), "context.cluster", "cluster")
    user = reading.named(config, "users", str(context.get("user") or ""), "context.user", "user")
    return reading.access(cluster, user)


class _KubeconfigReading(NamedTuple):
    source: str
    directory: Path | None

    def problem(self, field: str, text: str) -> KubeconfigInvalid:
        return KubeconfigInvalid(f"{self.source}: {f'{field}: ' if field else ''}{text}")

    def named(self, config: Document, plural: str, name: str, field: str, singular: str) -> Document:
        """The entry of a list that a field names."""
        if not name:
            raise self.problem(field, "is missing")
        entries: Any = config.get(plural)
        for entry in cast("list[Any]", entries) if isinstance(entries, list) else []:
            if isinstance(entry, dict) and cast("Document", entry).get("name") == name:
                return section(cast("Document", entry), singular)
        raise self.problem(field, f"names {name!r}, which is not among {plural}")

    def access(self, cluster: Document, user: Document) -> Access:
        server = str(cluster.get("server") or "").rstrip("/")
        if not _is_https(server):
            raise self.problem("cluster.server", f"must be https://HOST:PORT, is {server!r}")
        if cluster.get("insecure-skip-tls-verify"):
            raise self.problem("cluster.insecure-skip-tls-verify", "is not done: give certificate-authority-data")
        if cluster.get("proxy-url"):
            raise self.problem("cluster.proxy-url", "proxies are not supported: name the server itself")
        for field, way in _UNSUPPORTED.items():
            if user.get(field):
                raise self.problem(f"user.{field}", way)
        authority = self.content(cluster, "certificate-authority", "cluster")
        certificate = self.content(user, "client-certificate", "user")
        key = self.content(user, "client-key", "user")
        token = str(user.get("token") or self.token_file(user))
        if not token and certificate is None:
            raise self.problem("user", "has neither a token nor a client certificate")
        if (certificate is None) != (key is None):
            raise self.problem("user", "client-certificate and client-key go together")
        name = str(cluster.get("tls-server-name") or "") or None
        expires_at = self.expiry(certificate) if certificate is not None else None
        return Access(server, self.tls(authority, certificate, key), token, name, expires_at)

    def content(self, entry: Document, name: str, where: str) -> bytes | None:
        """The content of `<name>-data`, or of the file `<name>`; None without either."""
        if data := entry.get(f"{name}-data"):
            try:
                return base64.b64decode(str(data), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.problem(f"{where}.{name}-data", "is not base64") from error
        return self.file(str(entry[name]), f"{where}.{name}") if entry.get(name) else None

    def file(self, name: str, field: str) -> bytes:
        if self.directory is None:
            raise self.problem(field, f"names a file: give {field.partition('.')[2]}-data")
        try:
            return (self.directory / name).read_bytes()
        except OSError as error:
            raise self.problem(field, f"{name} cannot be read: {error.strerror}") from error

    def token_file(self, user: Document) -> str:
        if not user.get("tokenFile"):
            return ""
        return self.file(str(user["tokenFile"]), "user.tokenFile").decode(errors="replace").strip()

    def expiry(self, certificate: bytes) -> datetime:
        try:
            return x509.load_pem_x509_certificates(certificate)[0].not_valid_after_utc
        except ValueError as error:
            raise self.problem("user.client-certificate", "holds no PEM certificate") from error

    def tls(self, authority: bytes | None, certificate: bytes | None, key: bytes | None) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=authority.decode() if authority is not None else None)
        except (ssl.SSLError, ValueError) as error:
            raise self.problem("cluster.certificate-authority", "holds no PEM certificate") from error
        if certificate is not None and key is not None:
            with tempfile.NamedTemporaryFile() as file:  # made with mode 0600; the ssl module reads only files
                file.write(certificate.rstrip() + b"\n" + key)
                file.flush()
                try:
                    context.load_cert_chain(file.name, password="")  # without one, it is read from the terminal
                except (OSError, ssl.SSLError) as error:
                    raise self.problem("user.client-key", "is no key, or not that of the certificate") from error
        return context


def _is_https(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
