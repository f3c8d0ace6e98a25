"""KubeconfigSecret: what a kubeconfig in a Secret may hold.

The cases are those of Gardener's `pkg/admissioncontroller/webhook/admission/kubeconfigsecret`.
"""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import kubeconfig_secret
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource

CHAIN = Admission([kubeconfig_secret.PLUGIN])


def a_kubeconfig(user: Document) -> bytes:
    """A kubeconfig with one user."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": user}]})


def a_secret(content: bytes, field: str = "data", key: str = "kubeconfig") -> Document:
    """A Secret with some content."""
    value = b64encode(content).decode() if field == "data" else content.decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "dev"}, field: {key: value}}


def admit(secret: Document, old: Document | None = None) -> None:
    """Admit a Secret."""
    CHAIN.admit(secret, old, RelatedObjects())


@pytest.mark.parametrize(
    "user",
    [
        {"token": "t"},
        {"client-certificate-data": "Zm9v", "client-key-data": "Zm9v"},
        {"username": "u", "password": "p"},
        {"auth-provider": {}, "exec": None, "as": "", "tokenFile": ""},
        {},
    ],
)
def test_credentials_are_taken(user: Document) -> None:
    for field in ("data", "stringData"):
        admit(a_secret(a_kubeconfig(user), field))


BAD: list[tuple[str, Any]] = [
    ("client-certificate", "/etc/passwd"),
    ("client-key", "/etc/passwd"),
    ("tokenFile", "/var/run/token"),
    ("as", "admin"),
    ("as-uid", "1"),
    ("as-groups", ["system:masters"]),
    ("as-user-extra", {"a": ["b"]}),
    ("auth-provider", {"name": "gcp", "config": {"cmd-path": "sh"}}),
    ("exec", {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}),
    ("something-new", "1"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_what_has_the_reader_do_something_is_refused(name: str, value: object) -> None:
    for field in ("data", "stringData"):
        with pytest.raises(InvalidResource, match=rf"{field}\.kubeconfig: users must not have {name}"):
            admit(a_secret(a_kubeconfig({"token": "t", name: value}), field))


@pytest.mark.parametrize("content", [b"[]", b"a: [", b"a: 1\n---\nb: 2", b"text"])
def test_what_is_no_kubeconfig_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidResource, match="is no kubeconfig"):
        admit(a_secret(content))


def test_other_keys_and_what_is_stored_already_are_not_looked_at() -> None:
    bad = a_secret(a_kubeconfig({"exec": {"command": "sh"}}))
    admit(a_secret(a_kubeconfig({"exec": {"command": "sh"}}), key="other"))
    admit(bad, bad)
    admit({**bad, "metadata": {**bad["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})


VALID = """
---
apiVersion: v1
kind: Config
current-context: garden
clusters:
- name: garden
  cluster: {certificate-authority-data: Zm9v, server: "https://localhost:2443"}
contexts:
- name: garden
  context: {cluster: garden, user: garden}
users:
- name: garden
  user: {client-certificate-data: Zm9v, client-key-data: Zm9v}
"""
CALLS = VALID.replace("{client-certificate-data: Zm9v, client-key-data: Zm9v}", "{exec: {command: /bin/sh}}")


@pytest.mark.parametrize(
    ("secret", "rejection"),
    [
        (a_secret(b"", key="foo"), None),
        (a_secret(VALID.encode()), None),
        (a_secret(CALLS.encode()), "users must not have exec"),
        (a_secret(b"foobar"), "is no kubeconfig"),
        (a_secret(b"foo"), "is no kubeconfig"),
    ],
)
def test_a_kubeconfig_is_checked_in_a_new_secret_and_in_a_changed_one(secret: Document, rejection: str | None) -> None:
    for old in (None, a_secret(b"", key="foo"), a_secret(a_kubeconfig({"token": "t"}))):
        if rejection is None:
            admit(secret, old)
        else:
            with pytest.raises(InvalidResource, match=rejection):
                admit(secret, old)
    CHAIN.admit_deletion(secret, user="ann")


def test_a_kubeconfig_may_be_taken_away_while_a_shoot_names_the_secret() -> None:
    """Gardener refuses that: `shootkubeconfigsecretref`."""
    secret = a_secret(a_kubeconfig({"token": "t"}))
    without_data: Document = {**secret, "data": {}}
    for emptied in (a_secret(b""), without_data):
        admit(emptied, secret)
        assert {guard.kind for guard in Admission().write_guards(emptied, secret, RelatedObjects())} == set()
