"""The page of the admission plug-ins, from the table that runs."""

from gardenbus.apiserver.domain.plugins.table import PLUGINS
from gardenbus.common.api.configuration.admission import ADMISSION_PLUGINS
from gardenbus.docs.markdown import row, table

_HEAD = """# Admission plug-ins

What the apiserver does to a manifest besides reading it and filling in the defaults of its kind, in this order: first
all plug-ins that change it, then, once it is valid, all that may reject it. An `AdmissionConfiguration` switches them;
`gardenbus up -f FILE` takes it, and `deploy/compose/admission.yaml` is one.
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
    return f"{_HEAD}\n{table(('plug-in', 'default', 'kinds', 'does'), rows)}\n"
