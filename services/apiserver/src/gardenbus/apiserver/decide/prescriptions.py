"""What other objects prescribe to a new shoot: its exposure class a selector and tolerations, its project tolerations.

Prescribed parts are added on creation. Afterwards they only come back when a manifest that never had them is applied
again; changes of the class or the project do not reach existing shoots. Source: Gardener's admission plugins
ShootExposureClass and ShootTolerationRestriction.
"""

from collections.abc import Sequence
from typing import Any, cast

from gardenbus.common.errors import Forbidden
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.fitting import Tolerations
from gardenbus.common.resources.tolerations import is_allowed, pairs


def with_exposure_class(spec: Document, old: Document | None, exposure_class: Document) -> Document:
    """The spec of a shoot with what its class prescribes; `old` is the stored spec, None on creation.

    Raises Forbidden on creation when the shoot states another value for a label, or a toleration of the same key.
    """
    prescribed = section(exposure_class, "scheduling")
    name = str(section(exposure_class, "metadata").get("name"))
    selector = _with_selector(
        section(spec, "seedSelector"),
        None if old is None else section(old, "seedSelector"),
        section(prescribed, "seedSelector"),
        name,
    )
    added = entries(prescribed.get("tolerations"))
    if old is None:
        _refuse_same_keys(entries(spec.get("tolerations")), added, name)
    spec = with_tolerations(spec, old, added)
    return {**spec, "seedSelector": selector} if selector else spec


def with_tolerations(spec: Document, old: Document | None, prescribed: Sequence[Document]) -> Document:
    """The spec of a shoot with the tolerations prescribed whose keys it lacks (after creation: that it had)."""
    own = spec.get("tolerations")
    if own is not None and not isinstance(own, list):
        return spec
    had = entries((old or {}).get("tolerations"))
    keys = [toleration.get("key") for toleration in entries(own)]
    added = [
        toleration
        for toleration in prescribed
        if toleration.get("key") not in keys and (old is None or toleration in had)
    ]
    return {**spec, "tolerations": [*cast("list[Any]", own or []), *added]} if added else spec


def refused_tolerations(spec: Document, old: Document | None, allowed: Tolerations) -> Tolerations:
    """The tolerations (after creation: the new ones) that no entry allows.

    An entry without value allows its key with any value, one with a value exactly that.
    """
    had = pairs((old or {}).get("tolerations"))
    new = (toleration for toleration in pairs(spec.get("tolerations")) if toleration not in had)
    return tuple(toleration for toleration in new if not is_allowed(*toleration, allowed))


def entries(value: Any) -> Sequence[Document]:
    """The mappings of what should be a list of them."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Document", entry) for entry in listed if isinstance(entry, dict)]


def _with_selector(own: Document, old: Document | None, prescribed: Document, class_name: str) -> Document:
    labels = dict(section(own, "matchLabels"))
    for key, value in section(prescribed, "matchLabels").items():
        if old is None and labels.get(key, value) != value:
            raise Forbidden(
                f"spec.seedSelector.matchLabels[{key}]: {labels[key]!r} contradicts {value!r} of the exposure class "
                f"{class_name}: leave it out"
            )
        if old is None or section(old, "matchLabels").get(key) == value:
            labels.setdefault(key, value)
    selector = {**own, **({"matchLabels": labels} if labels else {})}
    for field in ("matchExpressions", "providerTypes"):
        mine = cast("list[Any]", own.get(field) or [])
        had = cast("list[Any]", (old or {}).get(field) or [])
        if not isinstance(own.get(field), list | None) or not isinstance(prescribed.get(field), list):
            continue
        added = [part for part in prescribed[field] if part not in mine and (old is None or part in had)]
        if added:
            selector[field] = [*mine, *added]
    return selector


def _refuse_same_keys(own: Sequence[Document], added: Sequence[Document], class_name: str) -> None:
    keys = [toleration.get("key") for toleration in own]
    for toleration in added:
        if toleration.get("key") in keys:
            raise Forbidden(
                f"spec.tolerations: {toleration.get('key')!r} is tolerated by the exposure class {class_name} already: "
                "leave it out"
            )
