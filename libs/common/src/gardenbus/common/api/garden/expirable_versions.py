"""Versions that a cloud profile lists: their numbers, which are on offer, and which come after another.

A listed version is a mapping `{version, classification, expirationDate}`. One whose numbers cannot be read is older
than every other, and is never chosen. Source: Gardener's `v1beta1/helper/cloudprofile.go`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import mappings

PREVIEW = "preview"
DEPRECATED = "deprecated"

_VERSION = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")
_PARTIAL = re.compile(r"(?:v?\d{1,6}(?:\.\d{0,6})?)?")

Numbers = tuple[int, ...]


def numbers_of(version: object) -> Numbers:
    """The numbers of a version, as (1, 34, 1); () for what is none. A pre-release's suffix does not count."""
    found = _VERSION.match(version) if isinstance(version, str) else None
    return tuple(int(number) for number in found.groups() if number is not None) if found else ()


def is_expired(value: object, now: datetime) -> bool:
    """True when an instant has passed; one that cannot be read has not."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return False
    if not isinstance(value, datetime):
        return False
    return (value if value.tzinfo else value.replace(tzinfo=UTC)) <= now


def partial_numbers(version: str) -> Numbers | None:
    """The numbers of a version that states a major, and perhaps a minor; () for "", None for any other text."""
    found = _PARTIAL.fullmatch(version)
    return numbers_of(version) if found else None


def newest_version(listed: object, wanted: Numbers, now: datetime, *, accepts_deprecated: bool = False) -> str | None:
    """The newest of a list of versions that nobody has named in full; None if none.

    `wanted` are the numbers that it begins with: () for any, (1, 34) for a patch of that minor. Previews and what has
    expired are left out; deprecated versions count where `accepts_deprecated`, and no other is left.
    """
    found = [one for one in _unexpired(listed, now) if _numbers(one)[: len(wanted)] == wanted]
    newest = _newest(one for one in found if one.get("classification") != DEPRECATED)
    return newest or (_newest(found) if accepts_deprecated else None)


def newest_above(listed: object, current: str, now: datetime, *, same: int) -> str | None:
    """The newest version above another, for an automatic update; None if there is none.

    The first `same` numbers must be equal (2: another patch, 1: another minor, 0: any). Deprecated versions count only
    where no other is left.
    """
    numbers = _full(numbers_of(current))
    above = [
        one for one in _unexpired(listed, now) if _numbers(one) > numbers and _numbers(one)[:same] == numbers[:same]
    ]
    return _newest(one for one in above if one.get("classification") != DEPRECATED) or _newest(above)


def consecutive_minor(listed: object, current: str, now: datetime) -> str | None:
    """The newest patch of the very next minor version, of which a forced update may also take an expired one."""
    numbers = _full(numbers_of(current))
    following = [one for one in _chosen_from(listed) if _numbers(one)[:2] == (numbers[0], numbers[1] + 1)]
    return _newest(one for one in following if not _has_expired(one, now)) or _newest(following)


def next_higher(listed: object, current: str, now: datetime, *, position: int) -> str | None:
    """The newest version of the lowest higher minor (`position` 1) or major (0): what a forced update goes to.

    What has expired is taken where nothing else is left, and where the alternative were to leave out a minor or major.
    """
    numbers = _full(numbers_of(current))
    higher = [
        one
        for one in _chosen_from(listed)
        if _numbers(one)[:position] == numbers[:position] and _numbers(one)[position] > numbers[position]
    ]
    found = _of_the_lowest([one for one in higher if not _has_expired(one, now)], position)
    if found is not None and numbers_of(found)[position] == numbers[position] + 1:
        return found
    with_expired = _of_the_lowest(higher, position)
    if found is None or with_expired is None:
        return with_expired
    return min(found, with_expired, key=lambda version: numbers_of(version)[position])


def _of_the_lowest(listed: Sequence[Document], position: int) -> str | None:
    lowest = min((_numbers(one)[position] for one in listed), default=None)
    return _newest(one for one in listed if _numbers(one)[position] == lowest)


def _newest(listed: Iterable[Document]) -> str | None:
    return max((str(one["version"]) for one in listed), key=_order, default=None)


def _order(version: str) -> tuple[Numbers, str]:
    return numbers_of(version), version


def _unexpired(listed: object, now: datetime) -> Sequence[Document]:
    return [one for one in _chosen_from(listed) if not _has_expired(one, now)]


def _chosen_from(listed: object) -> Sequence[Document]:
    """The versions that somebody may get without having named them: all but previews."""
    return [one for one in mappings(listed) if numbers_of(one.get("version")) and one.get("classification") != PREVIEW]


def _has_expired(one: Document, now: datetime) -> bool:
    return is_expired(one.get("expirationDate"), now)


def _numbers(one: Document) -> Numbers:
    return _full(numbers_of(one.get("version")))


def _full(numbers: Numbers) -> Numbers:
    """Three numbers at least: those that are missing are 0."""
    return numbers + (0,) * (3 - len(numbers))
