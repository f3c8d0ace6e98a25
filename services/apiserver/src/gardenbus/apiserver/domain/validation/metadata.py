"""Rules of metadata for every kind, also for kinds that are only stored.

Seeds, Shoots, Projects, ManagedSeeds (and sets), SeedAutoscalers, MemberClusters and namespaces have names without dots
(RFC 1123 labels), as they are parts of subjects; other names may have them, and those of RBAC's objects are hardly
bounded. Source: apimachinery's
`validation/objectmeta.go`.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from gardenbus.apiserver.domain.validation.entry_limits import check_metadata
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import CERTIFICATES, RBAC, KindSpec, by_word, resolve
from gardenbus.common.api.names import PATH_SEGMENT
from gardenbus.common.api.shown_values import shown, with_article
from gardenbus.common.api.uids import is_uid
from gardenbus.common.errors import BadRequest

LABEL_NAMES = frozenset(
    {"seed", "shoot", "project", "managedseed", "managedseedset", "seedautoscaler", "membercluster", "namespace"}
)
"""Kinds whose names are labels (without dots)."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253
_MOST_ANNOTATIONS = 256 * 1024


def key_of(document: Document) -> ObjectKey:
    """The key of a manifest with valid metadata.

    Raises BadRequest when kind or name are missing or no text, Unsupported for kinds that are not served, and
    InvalidResource with every problem in metadata.
    """
    return checked_key(document)[1]


def checked_key(document: Document) -> tuple[KindSpec, ObjectKey]:
    """The same, with the kind."""
    spec = resolve(_needed_text(document, "apiVersion"), _needed_text(document, "kind"))
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise BadRequest(f"metadata: must be a mapping with the object's name, not {shown(metadata)}")
    metadata = cast("Document", metadata)
    name = _needed_name(metadata)
    errors = FieldErrors()
    check_metadata(metadata, errors)
    errors.raise_if_any(f"{spec.kind} {name[:_LONGEST_SUBDOMAIN]}")
    place = FieldCursor(metadata, "metadata", errors)
    namespace = _checked_namespace(place, spec)
    check_labels(place, "labels", takes_capitals=True)
    _check_annotations(place)
    place.unique_texts("finalizers", rule=qualified_name_problem)
    _check_owners(place)
    for field in ("uid", "resourceVersion", "generateName", "creationTimestamp", "deletionTimestamp"):
        place.text(field)
    errors.raise_if_any(f"{spec.kind} {name[:_LONGEST_SUBDOMAIN]}")
    return spec, ObjectKey(spec.singular, namespace, name)


def reference_of(document: Document, stored: Sequence[str] = ()) -> ObjectKey:
    """The key that a request to delete means: a manifest, or `{"kind", "namespace", "name"}`.

    `stored` are singulars of kinds with stored objects, also unregistered ones. Raises BadRequest, Unsupported
    or InvalidResource as `key_of` does.
    """
    if "metadata" in document:
        return key_of(document)
    spec = by_word(_needed_text(document, "kind"), stored)
    name = _needed_name(document, "name")
    errors = FieldErrors()
    namespace = _checked_namespace(FieldCursor(document, "", errors), spec)
    errors.raise_if_any(f"{spec.kind} {name[:_LONGEST_SUBDOMAIN]}")
    return ObjectKey(spec.singular, namespace, name)


def label_problem(name: str) -> str:
    """Problem of an RFC 1123 label; "" when it is valid."""
    if len(name) <= _LONGEST_LABEL and _LABEL.fullmatch(name):
        return ""
    return f"{shown(name)} is no name here: use a-z, 0-9, '-', at most {_LONGEST_LABEL}, letters or digits at both ends"


def subdomain_problem(name: str) -> str:
    """Problem of a DNS subdomain; "" when it is valid."""
    if len(name) <= _LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(name):
        return ""
    return (
        f"{shown(name)} is no name: use a-z, 0-9, '-' and '.', at most {_LONGEST_SUBDOMAIN}, "
        "a letter or digit at both ends of each part"
    )


def object_name_problem(name: str, *, group: str, kind: str) -> str:
    """Problem of the name of an object of some kind; "" when it is valid.

    Names of RBAC's objects and of signing requests are no DNS names. Source: Kubernetes' `pkg/apis/rbac/validation` and
    `pkg/apis/certificates/validation`.
    """
    if group == RBAC or (group, kind) == (CERTIFICATES, "CertificateSigningRequest"):
        if PATH_SEGMENT.fullmatch(name):
            return ""
        return f"{shown(name)} is no name: use at most {_LONGEST_SUBDOMAIN} printable characters without space, / % * >"
    return label_problem(name) if kind.lower() in LABEL_NAMES else subdomain_problem(name)


def check_label_name(manifest: FieldCursor) -> None:
    """Note a name with dots, of a kind whose names are labels to Gardener alone."""
    name: Any = manifest.section("metadata").content.get("name")
    if isinstance(name, str) and (problem := label_problem(name)):
        manifest.add_error("metadata.name", problem)


def qualified_name_problem(key: str) -> str:
    """Problem of a key of labels, taints or annotations (`example.com/name`); "" when it is valid."""
    prefix, slash, name = key.rpartition("/")
    if not _QUALIFIED.fullmatch(name) or (slash and (not prefix or subdomain_problem(prefix.lower()))):
        return f"{shown(key)} is no key: write name or example.com/name, the name with at most 63 of A-Z a-z 0-9 - _ ."
    return ""


def label_value_problem(value: str) -> str:
    """Problem of the value of a label; "" when it is valid."""
    if not value or _QUALIFIED.fullmatch(value):
        return ""
    return f"{shown(value)} is no label value: use at most 63 of A-Z a-z 0-9 - _ . with a letter or digit at both ends"


def in_label(key: str, problem: str) -> str:
    """A problem of the value of a label, with the label's key; "" where there is none."""
    return problem and f"{shown(key)}: {problem}"


def check_labels(place: FieldCursor, field: str, *, takes_capitals: bool = False) -> None:
    """Note every label at a field that breaks the rules; `takes_capitals`: in prefixes, as what is stored may have."""
    for key, value in place.text_map(field).items():
        problem = qualified_name_problem(key) or in_label(key, label_value_problem(value))
        prefix = key.rpartition("/")[0]
        if not problem and not takes_capitals and prefix != prefix.lower():
            problem = f"{shown(key)}: the part before the / has no capitals: write {prefix.lower()}"
        if problem:
            place.add_error(field, problem)


def _needed_text(document: Document, field: str) -> str:
    value: Any = document.get(field)
    if not isinstance(value, str) or not value:
        missing = "is needed" if value in (None, "") else f"must be a string, not {shown(value)}"
        raise BadRequest(f"{field}: {missing}: write for example apiVersion: core.gardener.cloud/v1beta1, kind: Shoot")
    return value


def _needed_name(holder: Document, path: str = "metadata.name") -> str:
    name: Any = holder.get("name")
    if isinstance(name, str) and name:
        return name
    if name in (None, ""):
        if holder.get("generateName"):
            raise BadRequest(f"{path}: is needed: `gardenbus create` makes a name of generateName, apply wants one")
        raise BadRequest(f"{path}: is needed: give the object a name")
    raise BadRequest(f"{path}: must be a string, not {shown(name)}: put it in quotes")


def _checked_namespace(place: FieldCursor, spec: KindSpec) -> str:
    """Check name and namespace; returns the namespace, "" where there is none."""
    place.text("name", rule=partial(object_name_problem, group=spec.group, kind=spec.kind))
    namespace = place.text("namespace") or ""
    if namespace and spec.namespaced is False:
        place.add_error("namespace", f"{with_article(spec.kind)} belongs to no namespace: leave it out")
        return ""
    advice = "garden-<project>" if spec.group.endswith("gardener.cloud") else "<its name>"
    if not namespace and spec.namespaced and not place.has("namespace"):
        place.add_error("namespace", f"{with_article(spec.kind)} belongs to a namespace: write namespace: {advice}")
    elif not namespace and spec.namespaced:
        place.add_error("namespace", f"is empty: write namespace: {advice}")
    elif namespace and (problem := label_problem(namespace)):
        place.add_error("namespace", problem)
    return namespace


def _check_annotations(metadata: FieldCursor) -> None:
    total = 0
    for key, value in metadata.text_map("annotations").items():
        total += len(key) + (len(value) if value.isascii() else len(value.encode(errors="surrogatepass")))
        if problem := qualified_name_problem(key):
            metadata.add_error("annotations", problem)
    if total > _MOST_ANNOTATIONS:
        metadata.add_error("annotations", f"have {total} bytes together, {_MOST_ANNOTATIONS} are allowed")


def _check_owners(metadata: FieldCursor) -> None:
    controllers = 0
    for owner in metadata.entries("ownerReferences"):
        for field in ("apiVersion", "kind", "name"):
            owner.text(field, required=True)
        if (owner.content.get("apiVersion"), owner.content.get("kind")) == ("v1", "Event"):
            owner.add_error("kind", "an Event owns nothing")
        uid = owner.text("uid", required=True)
        if uid and not is_uid(uid):
            owner.add_error("uid", f"{shown(uid)} is the uid of no object: letters, digits and - are all that one has")
        owner.boolean("blockOwnerDeletion")
        controllers += bool(owner.boolean("controller"))
    if controllers > 1:
        metadata.add_error("ownerReferences", f"{controllers} of them are controllers: one at most may be")
