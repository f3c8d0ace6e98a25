"""`server.resourceAdmissionConfiguration` of Gardener's admission controller: the largest size of objects by resource.

limits:
- apiGroups: [core.gardener.cloud]
  apiVersions: ["*"]
  resources: [shoots]
  size: 100Ki
unrestrictedSubjects:
- kind: User
  name: system:admin
operationMode: block      # or log
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import ACCEPTED, Entries, Field, Table
from gardenbus.common.api.quantities import parse_quantity

ANY = "*"
_SUBJECT_KINDS = ("User", "ServiceAccount")


class SizeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The largest size, in bytes, of the resources that are named, each list with `*` for all."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    size: int = 0

    def is_for(self, group: str, version: str, resource: str) -> bool:
        """True for a resource (a plural) of a group ("" is Kubernetes' core) in a version."""
        named = ((self.api_groups, group), (self.api_versions, version), (self.resources, resource))
        return all(ANY in names or name in names for names, name in named)


class UnrestrictedSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A user, or a service account, for whom no limit holds."""

    kind: str = ""
    name: str = ""
    namespace: str = ""

    @property
    def user(self) -> str:
        """The user's name."""
        return f"system:serviceaccount:{self.namespace}:{self.name}" if self.kind == "ServiceAccount" else self.name


class ResourceSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Limits, of which the first that names a resource holds."""

    limits: tuple[SizeLimit, ...] = ()
    unrestricted: tuple[UnrestrictedSubject, ...] = ()
    mode: str = "block"

    @property
    def blocks(self) -> bool:
        """False when what is too large is taken, with a warning."""
        return self.mode == "block"

    def problems(self, path: str) -> Iterator[str]:
        """Problems that no field has alone."""
        if not self.limits:
            yield f"{path}.limits: is required: a list of limits"
        for index, subject in enumerate(self.unrestricted):
            if (subject.kind == "ServiceAccount") != bool(subject.namespace):
                yield f"{path}.unrestrictedSubjects[{index}].namespace: is for a ServiceAccount, which must have one"


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be a list of names, or of {ANY} alone, is {value!r}")
    return tuple(reader.text(one) for one in value)  # pyright: ignore[reportUnknownVariableType]


_quantity = reader.checked(
    lambda value: isinstance(value, str | int) and not isinstance(value, bool), "must be a quantity such as 100Ki"
)


def _size(value: Any) -> int:
    size = int(parse_quantity(_quantity(value)))
    if size <= 0:
        raise ValueError(f"must be above 0, is {value!r}")
    return size


def _no_count(_value: Any) -> None:
    raise ValueError("sizes alone are limited here; a ResourceQuota counts objects")


_LIMIT: Table = {
    "apiGroups": Field("api_groups", _names, is_required=True),
    "apiVersions": Field("api_versions", _names, is_required=True),
    "resources": Field("resources", _names, is_required=True),
    "size": Field("size", _size, is_required=True),
    "count": Field(parse=_no_count),
}
_SUBJECT: Table = {
    "apiGroup": ACCEPTED,
    "kind": Field("kind", reader.one_of(*_SUBJECT_KINDS), is_required=True),
    "name": Field("name", reader.name, is_required=True),
    "namespace": Field("namespace", reader.text),
}


def table(attribute: str) -> Table:
    """The table of the section, whose values are kept below an attribute."""
    return {
        "limits": Entries(f"{attribute}.limits", _LIMIT, SizeLimit, "limits"),
        "unrestrictedSubjects": Entries(
            f"{attribute}.unrestricted", _SUBJECT, UnrestrictedSubject, "subjects", may_be_empty=True
        ),
        "operationMode": Field(f"{attribute}.mode", reader.one_of("block", "log")),
    }
