"""The party in whose name a dependent is deleted whose owner is gone: whoever set the reference to that owner.

| dependent, and who set the reference | deleted as |
|---|---|
| of a kind that people's roles cannot write, and only services and gardenlets do | the system |
| credentials that an extension has generated for a BackupBucket | the system |
| by a service without requests of its own, as the apiserver | the system |
| by a service with requests of its own, as managedseedset | that service |
| by anybody else | that user, by the roles of now |
| unknown: stored before setters were recorded, or restored from the bus | nobody: it is kept |

A reference says "delete this with that": whoever may not delete the one gets nothing by deleting the other.
"""

from gardenbus.apiserver.domain.authorization.actions import Requester
from gardenbus.apiserver.domain.authorization.decision import SERVICES
from gardenbus.apiserver.domain.controller_owned_kinds import CONTROLLER_OWNED_KINDS
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.garden.backup_references import is_generated
from gardenbus.common.api.identity.names import requester
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.users import ANONYMOUS
from gardenbus.common.errors import BadRequest, Forbidden

SERVICES_KINDS = CONTROLLER_OWNED_KINDS | {"controllerrevision", "shootstate", "backupbucket", "backupentry"}

_NOBODYS = RejectionMessage(
    "metadata.ownerReferences: it is not known who set the one to {owner}: take it off and set it again, or delete"
    " {object}"
)
_NO_REQUESTER = RejectionMessage("metadata.ownerReferences: {setter}, who set the one to {owner}, deletes nothing")

COLLECTOR = Requester(OPERATOR, is_insider=True)
"""The system itself."""


def collector_of(key: ObjectKey, owner: str, setter: str) -> Requester:
    """The requester of a dependent's deletion. Raises Forbidden where nobody is known to have set the reference."""
    if key.kind in SERVICES_KINDS or is_generated(key):
        return COLLECTOR
    if not setter:
        raise Forbidden(_NOBODYS(owner=owner, object=key))
    if setter in (ANONYMOUS, OPERATOR):
        return COLLECTOR._replace(user=setter)
    try:
        principal = requester(setter)
    except BadRequest as error:
        raise Forbidden(_NO_REQUESTER(owner=owner, setter=setter)) from error
    if principal.role != "service":
        return Requester(setter)
    return Requester(setter, is_insider=True) if setter in SERVICES else COLLECTOR
