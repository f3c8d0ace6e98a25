"""Writes that the audit log has a line of: what lets somebody in, says who may do what, or takes something away."""

from gardenbus.apiserver.domain.authorization.actions import WRITES, Action
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.api.verbs import VERBS

_ALWAYS = frozenset(verb.name for verb in VERBS.values() if verb.privileged)
_KINDS = frozenset({"secret", "internalsecret", "project", "certificatesigningrequest", "role", "rolebinding"})


def is_privileged(action: Action, *, is_operator: bool) -> bool:
    """True for a write of a Secret, a Project, a role or a revocation, a bind, and an operator's deletion."""
    if action.verb in _ALWAYS:
        return True
    if action.verb not in WRITES:
        return False
    is_role = action.kind == "configmap" and action.namespace == GARDEN_NAMESPACE
    return action.kind in _KINDS or is_role or (is_operator and action.verb == "delete")
