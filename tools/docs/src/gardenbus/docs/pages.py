"""The generated pages of the reference."""

from gardenbus.docs.commands import commands_page
from gardenbus.docs.kinds import kinds_page
from gardenbus.docs.metrics import metrics_page
from gardenbus.docs.settings import settings_page
from gardenbus.docs.subjects import subjects_page


def pages() -> dict[str, str]:
    """The Markdown of each page by the name of its file."""
    return {
        "commands.md": commands_page(),
        "kinds.md": kinds_page(),
        "metrics.md": metrics_page(),
        "settings.md": settings_page(),
        "subjects.md": subjects_page(),
    }
