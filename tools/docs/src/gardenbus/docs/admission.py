"""The page of the admission plug-ins, from the table that runs."""

from gardenbus.apiserver.domain.plugins.table import PLUGINS
from gardenbus.common.api.configuration.admission import ADMISSION_PLUGINS
from gardenbus.docs.markdown import row, table

_HEAD = """# Admission plug-ins

What the apiserver does to a manifest besides reading it and filling in the defaults of its kind, in this order: first
all plug-ins that change it, then, once it is valid, all that may reject it. An `AdmissionConfiguration` switches them;
`gardenbus up -f FILE` takes it, and `deploy/compose/admission.yaml` is one.
"""

_REJECTIONS = """
## Rejections

Every sentence with which a plug-in rejects something, `{…}` being a value of the case at hand; before it stands the
field, where a plug-in checks several. Reasons why a seed cannot take a shoot are those of the scheduler's filters.
`gardenbus explain apply FILE` says of a manifest which of them it would meet, and meets all of them in one run.
"""


def admission_page() -> str:
    """The page's Markdown."""
    rows = [
        row(
            f"`{plugin.name}`",
            "on" if ADMISSION_PLUGINS[plugin.name] else "off",
            ", ".join(sorted({kind for rule in plugin.rules for kind in rule.kinds}) or ("all",)),
            plugin.acts,
        )
        for plugin in PLUGINS
    ]
    rejections = [
        row(f"`{plugin.name}`", _shown(rejection.sentence)) for plugin in PLUGINS for rejection in plugin.rejections
    ]
    overview = table(("plug-in", "default", "kinds", "does"), rows)
    return f"{_HEAD}\n{overview}\n{_REJECTIONS}\n{table(('plug-in', 'rejects with'), rejections)}\n"


def _shown(sentence: str) -> str:
    """A sentence as code, so that nothing in it is read as Markdown or HTML."""
    return f"`{sentence}`"
