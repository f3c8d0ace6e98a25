"""Paths, Accept headers, options of lists and bodies, as clients send them."""

import base64
from typing import Any

import pytest

from gardenbus.common.adapters.nats.credentials import Login
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound
from gardenbus.kubeapi.access.logins import Unauthenticated, read_token
from gardenbus.kubeapi.domain.bodies import UnsupportedMediaType, read_body
from gardenbus.kubeapi.domain.delete_options import delete_options
from gardenbus.kubeapi.domain.list_options import Continue, list_options
from gardenbus.kubeapi.domain.negotiation import (
    DISCOVERY,
    JSON,
    METADATA,
    TABLE,
    YAML,
    Accepted,
    NotAcceptable,
    accepted,
)
from gardenbus.kubeapi.domain.protobuf import decode_protobuf
from gardenbus.kubeapi.domain.request_info import MethodNotAllowed, request_info
from gardenbus.kubeapi.domain.resources import RESOURCES, ApiResource
from gardenbus.kubeapi.domain.statuses import Rejected

SHOOTS = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots"


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "kind", "namespace", "name"),
    [
        ("GET", "/api/v1/namespaces", {}, "list", "Namespace", "", ""),
        ("GET", "/api/v1/namespaces/garden", {}, "get", "Namespace", "", "garden"),
        ("GET", "/api/v1/namespaces/garden/secrets", {}, "list", "Secret", "garden", ""),
        ("GET", "/apis/core.gardener.cloud/v1beta1/shoots", {"watch": "True"}, "watch", "Shoot", "", ""),
        ("GET", SHOOTS, {"watch": "0"}, "list", "Shoot", "garden-dev", ""),
        ("POST", SHOOTS, {}, "create", "Shoot", "garden-dev", ""),
        ("PUT", f"{SHOOTS}/apollo", {}, "update", "Shoot", "garden-dev", "apollo"),
        ("PATCH", f"{SHOOTS}/apollo", {}, "patch", "Shoot", "garden-dev", "apollo"),
        ("DELETE", f"{SHOOTS}/apollo", {}, "delete", "Shoot", "garden-dev", "apollo"),
        ("DELETE", SHOOTS, {}, "deletecollection", "Shoot", "garden-dev", ""),
        ("POST", f"{SHOOTS}/apollo/adminkubeconfig", {}, "create", "Shoot", "garden-dev", "apollo"),
        ("GET", "/apis/core.gardener.cloud/v1beta1/seeds/a.b", {}, "get", "Seed", "", "a.b"),
    ],
)
def test_a_path_names_a_verb_and_an_object(  # noqa: PLR0917 - a row of the table
    method: str, path: str, query: dict[str, str], verb: str, kind: str, namespace: str, name: str
) -> None:
    found = request_info(method, path, query)
    assert (found.verb, found.resource.kind, found.namespace, found.name) == (verb, kind, namespace, name)


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("GET", "/apis/core.gardener.cloud/v1beta1/pods", NotFound),
        ("GET", "/apis/core.gardener.cloud/v1/shoots", NotFound),
        ("GET", "/apis/core.gardener.cloud/v1beta1/shoots/apollo", NotFound),
        ("GET", f"{SHOOTS}/apollo/nothing", NotFound),
        ("GET", "/apis/core.gardener.cloud/v1beta1/namespaces/garden/seeds", NotFound),
        ("GET", "/metrics", NotFound),
        ("PUT", SHOOTS, MethodNotAllowed),
        ("DELETE", "/api/v1/namespaces", MethodNotAllowed),
        ("DELETE", "/api/v1/namespaces/garden/events", MethodNotAllowed),
        ("DELETE", f"{SHOOTS}/apollo/status", MethodNotAllowed),
    ],
)
def test_what_there_is_not_is_rejected(method: str, path: str, error: type[GardenbusError]) -> None:
    with pytest.raises(error):
        request_info(method, path, {})


@pytest.mark.parametrize(
    ("header", "forms", "wanted"),
    [
        ("", (), Accepted()),
        ("*/*", (), Accepted(JSON)),
        ("application/vnd.kubernetes.protobuf,application/json", (), Accepted(JSON)),
        ("application/yaml", (), Accepted(YAML)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", (TABLE,), Accepted(JSON, TABLE, "v1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", (TABLE,), Accepted(JSON)),
        (
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            (METADATA,),
            Accepted(JSON, METADATA, "v1"),
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            (DISCOVERY,),
            Accepted(JSON, DISCOVERY, "v2"),
        ),
        ("application/yaml;q=0.5,application/json", (), Accepted(JSON)),
    ],
)
def test_the_first_form_that_there_is_is_sent(header: str, forms: tuple[str, ...], wanted: Accepted) -> None:
    assert accepted(header, *forms) == wanted


def test_who_takes_protobuf_alone_is_told_what_there_is() -> None:
    with pytest.raises(NotAcceptable, match="application/json"):
        accepted("application/vnd.kubernetes.protobuf")


def test_a_continue_token_leads_back_to_where_a_list_stopped() -> None:
    token = Continue(7, "garden", "a").token
    assert list_options({"continue": token, "limit": "5"}).continues == Continue(7, "garden", "a")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "x"}, "limit"),
        ({"continue": "%%"}, "continue"),
        ({"resourceVersion": "abc"}, "resourceVersion"),
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch"),
        ({"resourceVersionMatch": "Older", "resourceVersion": "1"}, "resourceVersionMatch"),
        ({"sendInitialEvents": "true"}, "sendInitialEvents"),
        ({"labelSelector": "a in b"}, "labelSelector"),
        ({"allowWatchBookmarks": "yes"}, "allowWatchBookmarks"),
    ],
)
def test_a_wrong_option_is_named(query: dict[str, str], field: str) -> None:
    with pytest.raises((BadRequest, Rejected), match=field):
        list_options(query)
    assert list_options({"limit": "-1"}).limit == 0


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _envelope(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)


def test_a_config_map_is_read_from_protobuf_without_what_is_empty() -> None:
    metadata = _field(1, b"one") + _field(2, b"") + _field(8, b"") + bytes([7 << 3, 0])
    raw = _field(1, metadata) + _field(2, _field(1, b"a") + _field(2, b"b"))
    body = _envelope(b"v1", b"ConfigMap", raw)
    read = read_body(body, "application/vnd.kubernetes.protobuf")
    assert read == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "generation": 0},
        "data": {"a": "b"},
    }


def test_a_signing_request_is_read_from_protobuf_as_client_go_sends_it() -> None:
    usages = b"".join(_field(5, each) for each in (b"digital signature", b"client auth"))
    spec = _field(1, b"PEM") + usages + _field(7, b"kubernetes.io/kube-apiserver-client") + bytes([8 << 3, 60])
    raw = _field(1, _field(1, b"one")) + _field(2, spec)
    assert decode_protobuf(_envelope(b"certificates.k8s.io/v1", b"CertificateSigningRequest", raw))["spec"] == {
        "request": base64.b64encode(b"PEM").decode(),
        "usages": ["digital signature", "client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client",
        "expirationSeconds": 60,
    }


@pytest.mark.parametrize("size", range(4, 40))
def test_protobuf_that_is_cut_in_half_is_rejected_or_read_as_less(size: int) -> None:
    raw = _field(1, _field(1, b"one")) + _field(2, _field(1, b"a") + _field(2, b"b"))
    body = _envelope(b"v1", b"ConfigMap", raw)[:size]
    try:
        found = decode_protobuf(body)
    except BadRequest:
        return
    assert found["kind"] == "ConfigMap"


def test_a_shoot_is_read_from_protobuf_as_gardeners_binaries_send_it() -> None:
    kubernetes = _field(8, b"1.34.4")
    hibernation = b"\x08\x00"
    spec = _field(5, hibernation) + _field(6, kubernetes) + _field(12, b"eu-west-1") + _field(14, b"aws-cork")
    body = _envelope(b"core.gardener.cloud/v1beta1", b"Shoot", _field(1, _field(1, b"apollo")) + _field(2, spec))
    assert decode_protobuf(body) == {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "apollo"},
        "spec": {
            "hibernation": {"enabled": False},
            "kubernetes": {"version": "1.34.4"},
            "region": "eu-west-1",
            "seedName": "aws-cork",
        },
    }


@pytest.mark.parametrize(
    "resource",
    [each for each in RESOURCES if "." not in each.group or each.group.endswith(".k8s.io")],
    ids=lambda each: each.qualified,
)
def test_each_kind_of_kubernetes_is_read_from_protobuf(resource: ApiResource) -> None:
    body = _envelope(resource.api_version.encode(), resource.kind.encode(), _field(1, _field(1, b"one")))
    if resource.kind == "CustomResourceDefinition":
        with pytest.raises(BadRequest, match="send application/json"):
            decode_protobuf(body)
    else:
        assert decode_protobuf(body)["metadata"] == {"name": "one"}


def test_what_another_message_is_part_of_stands_in_its_place() -> None:
    volume = _field(1, b"v") + _field(2, _field(6, _field(1, b"certificate")))
    template = _field(2, _field(1, volume))
    pod = _field(1, _field(1, b"one")) + _field(2, template)
    assert decode_protobuf(_envelope(b"v1", b"PodTemplate", pod))["template"] == {
        "spec": {"volumes": [{"name": "v", "secret": {"secretName": "certificate"}}]}
    }


def test_a_kind_that_is_not_read_from_protobuf_is_named() -> None:
    with pytest.raises(BadRequest, match=r"Pod.*application/json"):
        decode_protobuf(_envelope(b"v1", b"Pod", b""))


def test_a_body_in_an_unknown_format_is_rejected() -> None:
    with pytest.raises(UnsupportedMediaType):
        read_body(b"{}", "application/cbor")


@pytest.mark.parametrize("body", [{"propagationPolicy": "Foreground"}, {"orphanDependents": True}])
def test_a_deletion_that_would_leave_or_await_dependents_is_rejected(body: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="propagationPolicy") as rejected:
        delete_options(body, {})
    assert [each["field"] for each in rejected.value.causes] == ["propagationPolicy"]


def test_a_token_is_json_or_user_and_password() -> None:
    encoded = base64.b64encode(b"ann:a:b").decode()
    assert read_token(f"Bearer {encoded}").password == "a:b"
    assert read_token('Bearer {"user":"ann","password":"c"}').user == "ann"
    of_a_gardenlet = base64.b64encode(b"seed:aws:secret").decode()
    assert read_token(f"Bearer {of_a_gardenlet}") == Login("seed:aws", "secret")
    of_a_person = base64.b64encode(b"seed:secret").decode()
    assert read_token(f"Bearer {of_a_person}") == Login("seed", "secret")
    assert read_token("Bearer 4f2a91.0123456789abcdef") == Login("bootstrap:4f2a91", "0123456789abcdef")
    for wrong in (
        "Bearer x",
        "Bearer 4f2a91.0123",
        "Digest abc",
        f"Bearer {base64.b64encode(b'nobody').decode()}",
        "Bearer {",
    ):
        with pytest.raises(Unauthenticated):
            read_token(wrong)
