"""Use of budgets in a landscape: what its replicas report in their STATS. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from gardenbus.common.api.budgets import LimitUse
from gardenbus.common.api.document import Document, section


def uses_of(responses: Iterable[Document], prefix: str) -> Sequence[LimitUse]:
    """The uses of a landscape, the highest share first: of each limit and user that of the replica where it is highest.

    What cannot be read (another version wrote it) is left out.
    """
    highest: dict[tuple[str, str], LimitUse] = {}
    for response in responses:
        if section(response, "metadata").get("prefix") != prefix:
            continue
        for use in _read(section(response, "data").get("budgets")):
            other = highest.get((use.user, use.limit))
            if other is None or use.share > other.share:
                highest[use.user, use.limit] = use
    return sorted(highest.values(), key=lambda use: (-use.share, use.user, use.limit))


def _read(uses: object) -> list[LimitUse]:
    try:
        return [use for use in msgspec.convert(uses, list[LimitUse]) if use.most > 0]
    except msgspec.ValidationError:
        return []
