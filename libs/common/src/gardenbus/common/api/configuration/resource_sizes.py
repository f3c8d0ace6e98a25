"""`server.resourceAdmissionConfiguration` of Gardener's admission controller: sizes and numbers of objects by resource.

limits:
- apiGroups: [core.gardener.cloud]
  apiVersions: ["*"]
  resources: [shoots]
  size: 100Ki
- apiGroups: [core.gardener.cloud]
  apiVersions: ["*"]
  resources: [projects]
  count: 200              # in the whole landscape
unrestrictedSubjects:
- kind: User
  name: system:admin
- kind: Group
  name: gardener.cloud:system:seeds
operationMode: block      # or log
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import ACCEPTED, Entries, Field, Table
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, groups_of_user
from gardenbus.common.api.quantities import parse_quantity

ANY = "*"
_SUBJECT_KINDS = ("User", "Group", "ServiceAccount")


class SizeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The largest size, in bytes, or number of the resources that are named, each list with `*` for all."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    size: int | None = None
    count: int | None = None

    def is_for(self, group: str, version: str, resource: str) -> bool:
        """True for a resource (a plural) of a group ("" is Kubernetes' core) in a version."""
        named = ((self.api_groups, group), (self.api_versions, version), (self.resources, resource))
        return all(ANY in names or name in names for names, name in named)


class UnrestrictedSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A user, a group or a service account, for whom no limit holds."""

    kind: str = ""
    name: str = ""
    namespace: str = ""

    def is_meant(self, user: str) -> bool:
        """True for the user, for one of the group, or for the service account."""
        match self.kind:
            case "Group":
                return self.name in groups_of_user(user)
            case "ServiceAccount":
                return user == f"{SERVICE_ACCOUNT_PREFIX}{self.namespace}:{self.name}"
            case _:
                return user == self.name


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
        for index, limit in enumerate(self.limits):
            if limit.size is None and limit.count is None:
                yield f"{path}.limits[{index}]: size or count is required"
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


_LIMIT: Table = {
    "apiGroups": Field("api_groups", _names, is_required=True),
    "apiVersions": Field("api_versions", _names, is_required=True),
    "resources": Field("resources", _names, is_required=True),
    "size": Field("size", _size),
    "count": Field("count", reader.count_or_zero),
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
