"""ShootVPAEnabledByDefault: new shoots have their vertical pod autoscaler.

Off by default. Shoots of the garden namespace get it without the plug-in too, since they may become seeds. Source:
`plugin/pkg/shoot/vpa`.
"""

from gardenbus.apiserver.domain.defaults import with_autoscaler
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document


def _mutate(shoot: Document, change: Change, _related: RelatedObjects) -> Document:
    return with_autoscaler(shoot) if change.old is None else shoot


PLUGIN = AdmissionPlugin(
    name="ShootVPAEnabledByDefault",
    acts="gives a new shoot with workers its vertical pod autoscaler, unless the manifest sets it",
    rules=(AdmissionRule(("Shoot",), mutate=_mutate),),
)
