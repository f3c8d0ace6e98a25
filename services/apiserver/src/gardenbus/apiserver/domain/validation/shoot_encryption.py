"""Rules of what of etcd is encrypted, and how: it changes where nothing else of it is under way.

Source: `ValidateEncryptionConfigUpdate` and `validateHibernationUpdate` in Gardener's
`pkg/api/core/validation/shoot.go`. There what the status does not report is not encrypted; here a status without
`credentials.encryptionAtRest` says nothing, as not every gardenlet reports it.
"""

from collections.abc import Iterator
from typing import cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.garden.rotations import was_created

_CONFIGURATION = "kubernetes.kubeAPIServer.encryptionConfig"
_DEFAULT_PROVIDER = "aescbc"
_PERIOD = "maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod"


def check_rotated_key(spec: FieldCursor) -> None:
    """Note AES-GCM whose key is not rotated by itself: too much would be encrypted with one."""
    if stated_in(spec.content, f"{_CONFIGURATION}.provider.type") != "aesgcm":
        return
    try:
        is_rotated = bool(parse_duration(stated_in(spec.content, _PERIOD) or "0s"))
    except ValueError:
        return
    if not is_rotated:
        spec.add_error(f"{_CONFIGURATION}.provider.type", f"aesgcm needs a rotation of its key: set {_PERIOD}")


def check_encryption_update(spec: FieldCursor, old: Document, status: Document) -> None:
    """Note a change of what is encrypted, or how, while another is under way, and with another at once."""
    resources, had_resources = (_resources_of(stated_in(each, _CONFIGURATION)) for each in (spec.content, old))
    provider, had_provider = (_provider_of(stated_in(each, _CONFIGURATION)) for each in (spec.content, old))
    if (resources, provider) == (had_resources, had_provider):
        return
    busy = list(_under_way(status, had_resources, had_provider))
    if is_hibernation_enabled(dict(spec.content)):
        busy.append("cannot be changed while the shoot is hibernated: end its hibernation first")
    for problem in busy if resources != had_resources else ():
        spec.add_error(f"{_CONFIGURATION}.resources", problem)
    if provider == had_provider:
        return
    if resources != had_resources:
        busy.append("cannot be changed together with the resources: change one after the other")
    if not was_created(status):
        busy.append("cannot be changed before the shoot was created successfully: wait for it")
    for problem in busy:
        spec.add_error(f"{_CONFIGURATION}.provider.type", problem)


def check_encryption_before_sleep(spec: FieldCursor, old: Document, status: Document) -> None:
    """Note a shoot that is put to sleep before its resources are encrypted as its spec says."""
    encrypted: object = section(status, "credentials").get("encryptionAtRest")
    if encrypted is None or not is_hibernation_enabled(dict(spec.content)) or is_hibernation_enabled(old):
        return
    if _resources_of(stated_in(old, _CONFIGURATION)) != _resources_of(encrypted):
        spec.add_error("hibernation.enabled", f"cannot be while resources of {_CONFIGURATION} are yet to be encrypted")


def _under_way(status: Document, resources: frozenset[str], provider: str) -> Iterator[str]:
    """Reasons why nothing of the encryption can be changed now."""
    credentials = section(status, "credentials")
    phase = section(credentials, "rotation", "etcdEncryptionKey").get("phase")
    if phase and phase != "Completed":
        yield "cannot be changed before status.credentials.rotation.etcdEncryptionKey.phase is Completed"
    encrypted = credentials.get("encryptionAtRest")
    if encrypted is not None and (resources, provider) != (_resources_of(encrypted), _provider_of(encrypted)):
        yield "cannot be changed before an earlier change is done: compare status.credentials.encryptionAtRest"


def _resources_of(configuration: object) -> frozenset[str]:
    stated = stated_in({"configuration": configuration}, "configuration.resources")
    named = cast("list[object]", stated) if isinstance(stated, list) else ()
    return frozenset(str(each).removesuffix(".") for each in named)


def _provider_of(configuration: object) -> str:
    return str(stated_in({"configuration": configuration}, "configuration.provider.type") or _DEFAULT_PROVIDER)
