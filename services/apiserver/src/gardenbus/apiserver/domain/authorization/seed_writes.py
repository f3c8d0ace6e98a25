"""Writes of a gardenlet by requests, as Gardener's sends them through the Kubernetes API; ours reports on the bus.

| kind | created | changed | deleted | status |
|---|---|---|---|---|
| Seed | its own | its own, but for a cordon or a removal | | its own |
| Shoot | | metadata and `spec.networking` | | while the seed is responsible |
| ManagedSeed, ControllerInstallation, Bastion | | metadata | | yes |
| Gardenlet | its own | its own | | its own |
| BackupBucket, BackupEntry | of its seed | of its seed | of its seed | of its seed |
| ShootState | of its shoots | yes | yes | |
| Secret, InternalSecret, ConfigMap called after a shoot | of its shoots | yes | yes | |
| Secret that a reference leads to | | finalizers | | |
| Event | about what it reads | | | |

Gardener's webhooks leave the contents of changes open: here a gardenlet changes nothing by which more would lead to it,
but for what its own Seed names in `garden`: that is what a report of it does as well.
Source: Gardener's seed authorizer and `pkg/admissioncontroller/webhook/admission/seedrestriction`.
"""

from collections.abc import Mapping

from gardenbus.apiserver.domain.authorization.actions import UPDATE_STATUS, Action
from gardenbus.apiserver.domain.authorization.seed_graph import is_of_seed, own_keys, shoot_called_after
from gardenbus.apiserver.domain.migration import source_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import key_of_document, without
from gardenbus.common.api.garden.seed_management import CORDONED_BY, REMOVAL_ANNOTATION
from gardenbus.common.api.identity import issued_credentials, requested_tokens

_CREATE, _CHANGE, _DELETE = "apply", "patch", "delete"
_OF_NAMED_SEED = frozenset({"backupbucket", "backupentry"})
"""Kinds whose objects state the seed that they are of."""

_VERBS: Mapping[str, frozenset[str]] = {
    "seed": frozenset({_CREATE, _CHANGE, UPDATE_STATUS}),
    "gardenlet": frozenset({_CREATE, _CHANGE, UPDATE_STATUS}),
    "shoot": frozenset({_CHANGE, UPDATE_STATUS}),
    "managedseed": frozenset({_CHANGE, UPDATE_STATUS}),
    "controllerinstallation": frozenset({_CHANGE, UPDATE_STATUS}),
    "bastion": frozenset({_CHANGE, UPDATE_STATUS}),
    "backupbucket": frozenset({_CREATE, _CHANGE, _DELETE, UPDATE_STATUS}),
    "backupentry": frozenset({_CREATE, _CHANGE, _DELETE, UPDATE_STATUS}),
    "shootstate": frozenset({_CREATE, _CHANGE, _DELETE}),
    "internalsecret": frozenset({_CREATE, _CHANGE, _DELETE}),
    "configmap": frozenset({_CREATE, _CHANGE, _DELETE}),
    "secret": frozenset({_CREATE, _CHANGE, _DELETE}),
}


def may_write(action: Action, seed: str, *, is_reachable: bool) -> bool:
    """True for a write that `change_problem` may still find a problem with."""
    if (action.verb, action.kind) == ("create", "event"):
        return True
    if action.verb not in _VERBS.get(action.kind, ()):
        return False
    match action.kind:
        case "seed" | "gardenlet":
            return action.key in own_keys(seed)
        case "backupbucket" | "backupentry" if action.verb == _CREATE:
            return True
        case "secret" if action.verb == _CHANGE:
            return is_reachable
        case "secret" | "internalsecret" | "configmap":
            return is_reachable and shoot_called_after(action.key) is not None
        case _:
            return is_reachable


def change_problem(old: Document | None, new: Document, seed: str) -> str:
    """The reason why a gardenlet may not make this change of an object that it writes; "" where it may."""
    key = key_of_document(new)
    for each in filter(None, (old, new)):
        if key.kind in _OF_NAMED_SEED and not is_of_seed(key, each, seed):
            return f"it is not of seed {seed}"
        if key.kind == "secret" and lets_somebody_in(each):
            return "it is a Secret with credentials of somebody"
    if old is None:
        return ""
    if key.kind == "shoot" and section(old, "status") != section(new, "status") and source_of(old) != seed:
        return f"seed {seed} is not responsible for it"
    before, after = _kept(old), _kept(new)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return f"a gardenlet does not change {', '.join(changed)} of it" if changed else ""


def lets_somebody_in(secret: Document) -> bool:
    """True for a Secret with credentials of somebody, or one that the identity service writes such into."""
    metadata = section(secret, "metadata")
    labels = section(metadata, "labels")
    is_token = str(metadata.get("name") or "").startswith("bootstrap-token-")
    is_requested = labels.get(requested_tokens.PURPOSE_LABEL) == requested_tokens.TOKEN_REQUESTOR
    return is_token or is_requested or issued_credentials.PURPOSE_LABEL in labels


def _kept(document: Document) -> Document:
    """Parts that a gardenlet leaves as they are; `spec` by its fields."""
    key = key_of_document(document)
    parts = without(document, "status", "metadata", "spec")
    spec = {f"spec.{name}": value for name, value in section(document, "spec").items()}
    match key.kind:
        case "shoot":
            return {**parts, **without(spec, "spec.networking")}
        case "seed":
            annotations = section(document, "metadata", "annotations")
            return {name: annotations[name] for name in (REMOVAL_ANNOTATION, CORDONED_BY) if name in annotations}
        case "managedseed" | "controllerinstallation" | "bastion":
            return {**parts, **spec}
        case "secret" if shoot_called_after(key) is None:
            metadata = without(section(document, "metadata"), "finalizers", "resourceVersion", "managedFields")
            return {**parts, "metadata": metadata}
        case _:
            return {}
