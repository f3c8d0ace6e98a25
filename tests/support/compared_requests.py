"""Requests whose responses of a real API server and of a landscape's are compared."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section

NAMESPACE = "compared"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
NAMESPACES = "/api/v1/namespaces"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
JSON, MERGE, STRATEGIC = "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY, YAML = "application/json-patch+json", "application/apply-patch+yaml", "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


DIFFERENCES: Mapping[str, str] = {
    "entries of lists in metadata are named with their index": r"POST .*(bad finalizer!|ownerReferences)",
    "500 of the original is 400 or 409: the request is wrong": r'POST .*"resourceVersion": "1"|'
    r'watch=1&resourceVersion=x|PUT .*"resourceVersion": "x"|PATCH .*"\$patch": "nonsense"|DELETE .*two \{$',
    "a field of another type, and an unknown one where that is strict, is 422 with its path": r'"data": \{"a": 1\}|'
    r'"data": \["a"\]|Strict .*"unknown"|not base64!|"leaseDurationSeconds": "15"|PATCH .*"data": \{"c": 1\}',
    "a dry run makes no uid": r"POST .*dryRun=All",
    "what is found nowhere is a Status": r"GET (/nothing|/apis/nothing|/openapi/v3/nothing)",
    "any field can be selected": r"fieldSelector=data",
    "a patch that would make another object names the field": r'PATCH .*\{"metadata": \{"(name|namespace|uid)"|'
    r'PATCH .*\{"kind"',
    "a JSON patch that replaces what is not there fails": r'PATCH .*"op": "replace"',
    "a Lease is put without a version, too": r"PUT .*/leases/l ",
    "a precondition that fails names the resource, not the kind": r"DELETE .*preconditions",
}
"""Expressions that find the requests with another response than Kubernetes gives, by the reason."""


class Compared(NamedTuple):
    """One request; `body` is sent as it is where it is a text."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = ""

    @property
    def sent(self) -> bytes | None:
        """The body in bytes."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()

    @property
    def differs(self) -> str:
        """The reason why the responses differ; "" where they are the same."""
        text = f"{self.method} {self.path} {self.sent.decode() if self.sent else ''}"
        return next((reason for reason, pattern in DIFFERENCES.items() if re.search(pattern, text)), "")

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the request."""
        accept = {"Accept": self.accept} if self.accept else {}
        return accept if self.body is None else {**accept, "Content-Type": self.content_type}


def a_map(name: str | None = "one", data: Any = None, **metadata: Any) -> Document:
    """A ConfigMap."""
    named = {} if name is None else {"name": name}
    document: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**named, **metadata}}
    return document if data is None else {**document, "data": data}


def a_patch(path: str, body: Any, content_type: str = MERGE) -> Compared:
    """A patch."""
    return Compared("PATCH", path, body, content_type)


ONE, TWO = f"{MAPS}/one", f"{MAPS}/two"
LONG = "a" * 254

REQUESTS: Sequence[Compared] = (
    Compared("POST", NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    Compared("POST", NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    # creation
    Compared("POST", MAPS, a_map("one", {"a": "1"}, labels={"team": "orbit", "tier": "a"})),
    Compared("POST", MAPS, a_map("one", {"a": "1"})),
    Compared("POST", MAPS, a_map("two", {"b": "2"}, labels={"team": "orbit"}, annotations={"note": "x"})),
    Compared("POST", MAPS, a_map("three", {"c": "3"}, labels={"team": "dev"})),
    Compared("POST", MAPS, a_map(None)),
    Compared("POST", MAPS, a_map("Upper")),
    Compared("POST", MAPS, a_map("under_score")),
    Compared("POST", MAPS, a_map(LONG)),
    Compared("POST", MAPS, a_map("a", namespace="other")),
    Compared("POST", MAPS, a_map("a", labels={"bad key!": "x"})),
    Compared("POST", MAPS, a_map("a", labels={"a": "bad value!"})),
    Compared("POST", MAPS, a_map("a", annotations={"bad key!": "x"})),
    Compared("POST", MAPS, a_map("a", resourceVersion="1")),
    Compared("POST", MAPS, a_map("a", finalizers=["bad finalizer!"])),
    Compared("POST", MAPS, a_map("a", ownerReferences=[{"name": "x"}])),
    Compared("POST", MAPS, a_map("a", {"a": 1})),
    Compared("POST", MAPS, a_map("a", ["a"])),
    Compared("POST", MAPS, {**a_map("a"), "kind": "Secret"}),
    Compared("POST", MAPS, {**a_map("a"), "apiVersion": "v2"}),
    Compared("POST", MAPS, {**a_map("a"), "immutable": True, "data": {"a": "b"}}),
    Compared("PUT", f"{MAPS}/a", {**a_map("a"), "immutable": True, "data": {"a": "c"}}),
    Compared("POST", f"{MAPS}?fieldValidation=Strict", {**a_map("strict"), "unknown": 1}),
    Compared("POST", f"{MAPS}?fieldValidation=Warn", {**a_map("warned"), "unknown": 1}),
    Compared("POST", f"{MAPS}?fieldValidation=Maybe", a_map("maybe")),
    Compared("POST", f"{MAPS}?dryRun=All", a_map("dry")),
    Compared("GET", f"{MAPS}/dry"),
    Compared("POST", f"{MAPS}?dryRun=Some", a_map("dry")),
    Compared("POST", MAPS, "{", JSON),
    Compared("POST", MAPS, "[]", JSON),
    Compared("POST", MAPS, "null", JSON),
    Compared("POST", MAPS, "", JSON),
    Compared("POST", MAPS, "a: [", YAML),
    Compared("POST", MAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\n", YAML),
    Compared("POST", MAPS, "text", "text/plain"),
    Compared("POST", ONE, a_map("one")),
    Compared("POST", "/api/v1/configmaps", a_map("a", namespace=NAMESPACE)),
    # reads
    Compared("GET", ONE),
    Compared("GET", f"{MAPS}/missing"),
    Compared("GET", "/api/v1/namespaces/missing/configmaps/one"),
    Compared("GET", "/api/v1/nothing"),
    Compared("GET", "/apis/nothing.example.org/v1/things"),
    Compared("GET", "/apis/apps/v9/deployments"),
    Compared("GET", "/api/v1/namespaces/compared/configmaps/one/status"),
    Compared("GET", "/api/v1/namespaces/compared/configmaps/one/scale"),
    Compared("GET", "/nothing"),
    Compared("GET", MAPS),
    Compared("GET", f"{MAPS}?labelSelector=team%3Dorbit"),
    Compared("GET", f"{MAPS}?labelSelector=team!%3Dorbit"),
    Compared("GET", f"{MAPS}?labelSelector=team+in+(orbit,dev),tier"),
    Compared("GET", f"{MAPS}?labelSelector=!tier"),
    Compared("GET", f"{MAPS}?labelSelector=team+in"),
    Compared("GET", f"{MAPS}?labelSelector=%3D%3D"),
    Compared("GET", f"{MAPS}?fieldSelector=metadata.name%3Done"),
    Compared("GET", f"{MAPS}?fieldSelector=metadata.name!%3Done"),
    Compared("GET", f"{MAPS}?fieldSelector=metadata.namespace%3Dcompared"),
    Compared("GET", f"{MAPS}?fieldSelector=data.a%3D1"),
    Compared("GET", f"{MAPS}?fieldSelector=nothing"),
    Compared("GET", f"{MAPS}?limit=1"),
    Compared("GET", f"{MAPS}?limit=-1"),
    Compared("GET", f"{MAPS}?limit=x"),
    Compared("GET", f"{MAPS}?continue=nonsense"),
    Compared("GET", f"{MAPS}?resourceVersion=0"),
    Compared("GET", f"{MAPS}?resourceVersion=x"),
    Compared("GET", f"{MAPS}?resourceVersion=0&resourceVersionMatch=Exact"),
    Compared("GET", f"{MAPS}?resourceVersionMatch=NotOlderThan"),
    Compared("GET", f"{MAPS}?resourceVersion=1&resourceVersionMatch=Newest"),
    Compared("GET", f"{MAPS}?watch=1&resourceVersion=x"),
    Compared("GET", f"{MAPS}?watch=1&sendInitialEvents=true"),
    Compared("GET", f"{MAPS}?sendInitialEvents=true"),
    Compared("GET", MAPS, accept=TABLE),
    Compared("GET", ONE, accept=TABLE),
    Compared("GET", MAPS, accept=PARTIAL),
    Compared("GET", MAPS, accept="application/xml"),
    Compared("GET", ONE, accept="application/yaml"),
    Compared("GET", ONE, accept="*/*"),
    # updates
    Compared("PUT", ONE, a_map("one", {"a": "2"}, labels={"team": "orbit"})),
    Compared("PUT", ONE, a_map("other", {"a": "2"})),
    Compared("PUT", ONE, a_map("one", namespace="other")),
    Compared("PUT", ONE, a_map("one", {"a": "3"}, resourceVersion="1")),
    Compared("PUT", ONE, a_map("one", {"a": "3"}, resourceVersion="x")),
    Compared("PUT", ONE, a_map("one", {"a": "3"}, uid="00000000-0000-0000-0000-000000000000")),
    Compared("PUT", ONE, {**a_map("one"), "kind": "Secret"}),
    Compared("PUT", f"{MAPS}/new", a_map("new", {"a": "b"})),
    Compared("PUT", MAPS, a_map("one")),
    Compared("PUT", ONE, "{", JSON),
    # patches
    a_patch(ONE, {"data": {"b": "1"}}),
    a_patch(ONE, {"data": {"b": None}}),
    a_patch(ONE, {"data": None}),
    a_patch(ONE, {"metadata": {"labels": {"tier": "b"}}}),
    a_patch(ONE, {"metadata": {"name": "other"}}),
    a_patch(ONE, {"metadata": {"namespace": "other"}}),
    a_patch(ONE, {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}),
    a_patch(ONE, {"metadata": {"resourceVersion": "1"}, "data": {"c": "1"}}),
    a_patch(ONE, {"data": {"c": 1}}),
    a_patch(ONE, {"kind": "Secret"}),
    a_patch(ONE, "["),
    a_patch(ONE, "[]"),
    a_patch(ONE, '"text"'),
    a_patch(f"{MAPS}/missing", {"data": {}}),
    a_patch(ONE, {"data": {"s": "1"}}, STRATEGIC),
    a_patch(ONE, {"metadata": {"finalizers": ["example.org/a"]}}, STRATEGIC),
    a_patch(ONE, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.org/a"]}}, STRATEGIC),
    a_patch(ONE, {"data": {"$patch": "replace", "only": "1"}}, STRATEGIC),
    a_patch(ONE, {"data": {"$patch": "nonsense"}}, STRATEGIC),
    a_patch(ONE, [{"op": "add", "path": "/data/j", "value": "1"}], JSON_PATCH),
    a_patch(ONE, [{"op": "test", "path": "/data/j", "value": "2"}], JSON_PATCH),
    a_patch(ONE, [{"op": "remove", "path": "/data/nothing"}], JSON_PATCH),
    a_patch(f"{MAPS}/three", [{"op": "replace", "path": "/data/nothing", "value": "1"}], JSON_PATCH),
    a_patch(ONE, [{"op": "move", "from": "/data/j", "path": "/data/k"}], JSON_PATCH),
    a_patch(ONE, [{"op": "copy", "from": "/data/k", "path": "/data/l"}], JSON_PATCH),
    a_patch(ONE, [{"op": "nonsense", "path": "/data/k"}], JSON_PATCH),
    a_patch(ONE, [{"op": "add", "path": "data", "value": "1"}], JSON_PATCH),
    a_patch(ONE, {"op": "add"}, JSON_PATCH),
    a_patch(ONE, {"data": {}}, JSON),
    a_patch(ONE, {"data": {}}, "text/plain"),
    a_patch(f"{ONE}?dryRun=All", {"data": {"dry": "1"}}),
    a_patch(f"{ONE}?fieldManager={'m' * 129}", {"data": {"m": "1"}}),
    a_patch(f"{ONE}?force=true", {"data": {"m": "1"}}),
    a_patch(f"{MAPS}/applied?fieldManager=me", a_map("applied", {"a": "1"}), APPLY),
    a_patch(f"{MAPS}/applied", a_map("applied", {"a": "1"}), APPLY),
    a_patch(f"{MAPS}/applied?fieldManager=me", a_map("other", {"a": "1"}), APPLY),
    a_patch(f"{MAPS}/applied?fieldManager=me", {"data": {"a": "1"}}, APPLY),
    a_patch(f"{MAPS}/applied?fieldManager=me", a_map("applied", managedFields=[]), APPLY),
    a_patch(f"{MAPS}/applied?fieldManager=me", {**a_map("applied"), "kind": "Secret"}, APPLY),
    # other kinds
    Compared("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
    Compared("POST", SECRETS, {"metadata": {"name": "t"}, "data": {"a": "not base64!"}}),
    Compared("POST", SECRETS, {"metadata": {"name": "u"}, "type": "kubernetes.io/tls", "data": {}}),
    Compared("GET", f"{SECRETS}/s"),
    a_patch(f"{SECRETS}/s", {"stringData": {"c": "d"}}),
    a_patch(f"{SECRETS}/s", {"type": "other"}),
    Compared("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}),
    Compared("POST", LEASES, {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": "15"}}),
    Compared("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}}),
    Compared("GET", f"{NAMESPACES}/{NAMESPACE}"),
    Compared("GET", f"{NAMESPACES}/missing"),
    Compared("POST", NAMESPACES, {"metadata": {"name": "Upper"}}),
    # deletion
    Compared("DELETE", f"{MAPS}/missing"),
    Compared("DELETE", TWO, {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}),
    Compared("DELETE", TWO, {"preconditions": {"resourceVersion": "1"}}),
    Compared("DELETE", f"{TWO}?dryRun=All"),
    Compared("DELETE", TWO, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}),
    Compared("DELETE", TWO),
    Compared("DELETE", TWO, "{"),
    Compared("DELETE", f"{MAPS}/three", {"propagationPolicy": "Nonsense"}),
    Compared("DELETE", f"{MAPS}/three", {"gracePeriodSeconds": 0}),
    Compared("DELETE", f"{MAPS}?labelSelector=team%3Dorbit"),
    Compared("DELETE", f"{MAPS}?labelSelector=team+in"),
    Compared("GET", MAPS),
    # discovery and others
    Compared("GET", "/version"),
    Compared("GET", "/api"),
    Compared("GET", "/api/v2"),
    Compared("GET", "/apis/coordination.k8s.io"),
    Compared("GET", "/apis/nothing.example.org"),
    Compared("GET", "/openapi/v3/nothing"),
    Compared("OPTIONS", MAPS),
    Compared("HEAD", ONE),
    Compared("PATCH", MAPS, {"data": {}}, MERGE),
    Compared("DELETE", "/api/v1/configmaps"),
)


OF_KUBERNETES = "kube-root-ca.crt"
"""ConfigMap that Kubernetes itself puts into each namespace."""


def comparable(code: int, headers: Mapping[str, str], text: str) -> Document:
    """What two responses to one request have in common: no versions, times, uids, and no sentences."""
    try:
        body: Document = json.loads(text)
    except ValueError:
        return {"code": code, "body": "text"}
    if body.get("kind") == "Status":
        details = section(body, "details")
        about = {name: details[name] for name in ("name", "group", "kind") if name in details}
        fields = sorted({str(each.get("field") or "") for each in details.get("causes", ())})
        return {"code": code, "reason": body.get("reason"), "about": about, "fields": fields}
    found: Document = {"code": code, "kind": body.get("kind"), "warned": "Warning" in headers}
    if "items" in body:
        names = [each["metadata"]["name"] for each in body["items"] if "metadata" in each]
        found["items"] = [name for name in names if name != OF_KUBERNETES]
    elif body.get("kind") in ("ConfigMap", "Secret", "Lease"):
        metadata = section(body, "metadata")
        unequal = ("managedFields", "annotations", "generation", "deletionGracePeriodSeconds")
        found |= {
            "data": body.get("data"),
            "labels": metadata.get("labels"),
            "fields": sorted({*metadata} - {*unequal}),
        }
    return found
