"""CustomVerbAuthorizer: some changes of Projects and NamespacedCloudProfiles take a verb of their own.

Facts: the verbs of the sender, which the request brings along; services and operators have all of them, and everybody
has where nothing is enforced. Source: `plugin/pkg/global/customverbauthorizer`; `mark-self-hosted` has no meaning here.
"""

from gardenbus.apiserver.domain.authorization.custom_verbs import TAKES_VERB
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document


def _admit(document: Document, change: Change, _related: RelatedObjects) -> None:
    change.check_verbs(change.old, document)


PLUGIN = AdmissionPlugin(
    name="CustomVerbAuthorizer",
    acts="rejects changes of whitelist, members or owner of a project, or of fields of a profile, that take a verb",
    rejections=(TAKES_VERB,),
    rules=(AdmissionRule(("Project", "NamespacedCloudProfile"), admit=_admit),),
)
