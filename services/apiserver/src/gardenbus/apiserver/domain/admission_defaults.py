"""Defaults of a new shoot from its exposure class (selector, tolerations) and its project (tolerations).

They are added on creation. Later they only come back when a manifest that never had them is applied again; changes of
the class or the project do not reach existing shoots. Source: Gardener's admission plugins ShootExposureClass and
ShootTolerationRestriction.
"""

from collections.abc import Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, name_of
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.garden.tolerations import is_allowed, toleration_pairs
from gardenbus.common.api.members import Members
from gardenbus.common.errors import Forbidden

_CONTRADICTS = RejectionMessage(
    "spec.seedSelector.matchLabels[{key}]: {own} contradicts {value} of the exposure class {exposure_class}: leave it"
    " out"
)
_TOLERATED = RejectionMessage(
    "spec.tolerations: {key} is tolerated by the exposure class {exposure_class} already: leave it out"
)
EXPOSURE_CLASS_REJECTIONS = (_CONTRADICTS, _TOLERATED)


def with_exposure_class(spec: Document, old: Document | None, exposure_class: Document) -> Document:
    """The spec of a shoot with the defaults of its class; `old` is the stored spec, None on creation.

    Raises Forbidden on creation when the shoot states another value for a label, or a toleration of the same key.
    """
    defaults = section(exposure_class, "scheduling")
    name = name_of(exposure_class)
    selector = _with_selector(
        section(spec, "seedSelector"),
        None if old is None else section(old, "seedSelector"),
        section(defaults, "seedSelector"),
        name,
    )
    added = mappings(defaults.get("tolerations"))
    if old is None:
        _reject_same_keys(mappings(spec.get("tolerations")), added, name)
    spec = with_tolerations(spec, old, added)
    return {**spec, "seedSelector": selector} if selector else spec


def with_tolerations(spec: Document, old: Document | None, defaults: Sequence[Document]) -> Document:
    """The spec of a shoot with the default tolerations whose keys it lacks (after creation: that it had)."""
    own = spec.get("tolerations")
    if own is not None and not isinstance(own, list):
        return spec
    had = Members(mappings((old or {}).get("tolerations")))
    keys = Members(toleration.get("key") for toleration in mappings(own))
    added = [
        toleration
        for toleration in defaults
        if toleration.get("key") not in keys and (old is None or toleration in had)
    ]
    return {**spec, "tolerations": [*cast("list[Any]", own or []), *added]} if added else spec


def disallowed_tolerations(spec: Document, old: Document | None, allowed: Tolerations) -> Tolerations:
    """The tolerations (after creation: the new ones) that no entry allows.

    An entry without value allows its key with any value, one with a value exactly that.
    """
    had, among = Members(toleration_pairs((old or {}).get("tolerations"))), Members(allowed)
    new = (toleration for toleration in toleration_pairs(spec.get("tolerations")) if toleration not in had)
    return tuple(toleration for toleration in new if not is_allowed(*toleration, among))


def _with_selector(own: Document, old: Document | None, defaults: Document, class_name: str) -> Document:
    labels = dict(section(own, "matchLabels"))
    for key, value in section(defaults, "matchLabels").items():
        if old is None and labels.get(key, value) != value:
            raise Forbidden(_CONTRADICTS(key=key, own=repr(labels[key]), value=repr(value), exposure_class=class_name))
        if old is None or section(old, "matchLabels").get(key) == value:
            labels.setdefault(key, value)
    selector = {**own, **({"matchLabels": labels} if labels else {})}
    for field in ("matchExpressions", "providerTypes"):
        if not isinstance(own.get(field), list | None) or not isinstance(defaults.get(field), list):
            continue
        mine = cast("list[Any]", own.get(field) or [])
        there, had = Members(mine), Members(cast("list[Any]", (old or {}).get(field) or []))
        added = [part for part in defaults[field] if part not in there and (old is None or part in had)]
        if added:
            selector[field] = [*mine, *added]
    return selector


def _reject_same_keys(own: Sequence[Document], added: Sequence[Document], class_name: str) -> None:
    keys = Members(toleration.get("key") for toleration in own)
    for toleration in added:
        if toleration.get("key") in keys:
            raise Forbidden(_TOLERATED(key=repr(toleration.get("key")), exposure_class=class_name))
