"""The generated pages of the reference."""

from collections.abc import Callable, Mapping

from gardenbus.docs.admission import admission_page
from gardenbus.docs.commands import commands_page
from gardenbus.docs.gardener_rules import gardener_rules_page
from gardenbus.docs.kinds import kinds_page
from gardenbus.docs.metrics import metrics_page
from gardenbus.docs.permissions import permissions_page
from gardenbus.docs.settings import settings_page
from gardenbus.docs.store import store_page
from gardenbus.docs.subjects import subjects_page
from gardenbus.docs.texts import texts_page

WRITERS: Mapping[str, Callable[[], str]] = {
    "admission.md": admission_page,
    "commands.md": commands_page,
    "gardener-rules.md": gardener_rules_page,
    "kinds.md": kinds_page,
    "metrics.md": metrics_page,
    "permissions.md": permissions_page,
    "settings.md": settings_page,
    "store.md": store_page,
    "subjects.md": subjects_page,
    "texts.md": texts_page,
}
"""Writers of pages, by the name of the file."""


def pages() -> dict[str, str]:
    """The Markdown of each page by the name of its file."""
    return {name: write() for name, write in WRITERS.items()}
