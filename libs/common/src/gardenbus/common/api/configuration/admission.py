"""`AdmissionConfiguration` of the apiserver, Kubernetes' file for admission plug-ins.

apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ShootVPAEnabledByDefault
  enabled: true

`enabled` is ours: Kubernetes switches plug-ins with flags of the API server. A plug-in that is not listed is as it is
by default. Three have a `configuration`: ResourceSize, which is off without one, Gardener's
AdmissionControllerConfiguration, of which `server.resourceAdmissionConfiguration` acts; ShootTolerationRestriction the
tolerations that all projects have by default, and may have; SchedulingRequirements the priority of shoots that state
none, by their purpose.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from gardenbus.common.api.configuration import reader, resource_sizes
from gardenbus.common.api.configuration.reader import ACCEPTED, Entries, Field, Table
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.scheduling_order import LEAST_PRIORITY, MOST_PRIORITY
from gardenbus.common.api.garden.shoots import PURPOSES
from gardenbus.common.errors import BadRequest, SettingsInvalid

API_VERSION = "apiserver.config.k8s.io/v1"
KIND = "AdmissionConfiguration"

ADMISSION_PLUGINS: Mapping[str, bool] = {
    "NamespaceLifecycle": True,
    "ResourceReferenceManager": True,
    "ExtensionValidator": True,
    "ExtensionLabels": True,
    "ShootTolerationRestriction": True,
    "ShootExposureClass": True,
    "UncheckedTolerations": True,
    "ShootDNS": True,
    "ShootManagedSeed": True,
    "UseAsSeed": True,
    "ShootQuotaValidator": True,
    "ShootMutator": True,
    "SchedulingRequirements": True,
    "FinalizerRemoval": True,
    "ShootValidator": True,
    "SeedValidator": True,
    "BackupBucketValidator": True,
    "ControllerRegistrationResources": True,
    "NamespacedCloudProfileValidator": True,
    "ProjectMutator": True,
    "ProjectValidator": True,
    "DeletionConfirmation": True,
    "CustomVerbAuthorizer": True,
    "OpenIDConnectPreset": True,
    "ClusterOpenIDConnectPreset": True,
    "ShootVPAEnabledByDefault": False,
    "ManagedSeed": True,
    "Bastion": True,
    "PlacementValidator": True,
    "OverrideValidator": True,
    "KubeconfigSecret": True,
    "ResourceSize": False,
    "ResourceQuota": True,
}
"""The plug-ins in the order in which they act, and whether each is on by default.

The order is Gardener's (`plugin/pkg/plugins.go`); ours stand behind those that they follow. The apiserver has one of
each name: its kinds, and its functions by phase.
"""

_SIZED = "ResourceSize"
_TOLERATING = "ShootTolerationRestriction"
_REQUIRING = "SchedulingRequirements"
ADMISSION_CONTROLLER = ("admissioncontroller.config.gardener.cloud/v1alpha1", "AdmissionControllerConfiguration")
"""API version and kind of Gardener's file for its admission controller."""

_CONFIGURATIONS: Mapping[str, tuple[str, str]] = {
    _SIZED: ADMISSION_CONTROLLER,
    _TOLERATING: ("shoottolerationrestriction.admission.gardener.cloud/v1alpha1", "Configuration"),
    _REQUIRING: ("schedulingrequirements.admission.gardenbus.io/v1alpha1", "Configuration"),
}
"""API version and kind of the configuration of each plug-in that has one."""


class TolerationLists(msgspec.Struct, frozen=True, kw_only=True):
    """Tolerations that shoots of all projects have by default, and that all of them may have besides."""

    defaults: tuple[Document, ...] = ()
    whitelist: tuple[Document, ...] = ()


class _Switch(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    enabled: bool = True
    api_version: str | None = None
    kind: str | None = None
    sizes: ResourceSizes | None = None
    defaults: tuple[Document, ...] | None = None
    whitelist: tuple[Document, ...] | None = None
    priority_by_purpose: Mapping[str, int] | None = None

    @property
    def is_configured(self) -> bool:
        """True when something of a configuration is stated."""
        stated = (self.api_version, self.kind, self.sizes, self.defaults, self.whitelist, self.priority_by_purpose)
        return any(part is not None for part in stated)


def _switch(sizes: Mapping[str, Any] | None = None, **values: Any) -> _Switch:
    return _Switch(**values, sizes=None if sizes is None else ResourceSizes(**sizes))


class AdmissionConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Plug-ins that the file switches."""

    switched: Mapping[str, bool] = {}
    """By name: on or off."""

    resource_sizes: ResourceSizes = ResourceSizes()
    tolerations: TolerationLists = TolerationLists()
    priority_by_purpose: Mapping[str, int] = {}
    """Of shoots that state no priority; what their Projects allow is the most."""

    log_level: str | None = None
    log_format: str | None = None

    def is_enabled(self, plugin: str) -> bool:
        """True for a plug-in that is on."""
        return self.switched.get(plugin, ADMISSION_PLUGINS[plugin])


def parse_configuration(text: str | bytes) -> AdmissionConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong."""
    listed: tuple[_Switch, ...] = tuple(reader.read_one(text, _TABLE).get("plugins", ()))
    names = [one.name for one in listed]
    problems = [f"plugins[{index}].name: is required" for index, name in enumerate(names) if not name]
    problems += [f"plugins: {name} is listed twice" for name in sorted(set(names)) if name and names.count(name) > 1]
    problems += [problem for index, one in enumerate(listed) for problem in _configuration_problems(index, one)]
    if problems:
        raise SettingsInvalid(tuple(problems))
    sizes = next((one.sizes for one in listed if one.sizes is not None), ResourceSizes())
    tolerating = next((one for one in listed if one.name == _TOLERATING), _Switch())
    requiring = next((one for one in listed if one.name == _REQUIRING), _Switch())
    return AdmissionConfiguration(
        switched={one.name: one.enabled for one in listed},
        resource_sizes=sizes,
        tolerations=TolerationLists(defaults=tolerating.defaults or (), whitelist=tolerating.whitelist or ()),
        priority_by_purpose=requiring.priority_by_purpose or {},
    )


def with_admission_controller(admission: Document | None, controller: Document) -> Document:
    """An AdmissionConfiguration whose ResourceSize is configured by an AdmissionControllerConfiguration.

    Raises BadRequest when it is configured already.
    """
    given: Document = admission or {"apiVersion": API_VERSION, "kind": KIND}
    plugins = mappings(given.get("plugins"))
    sized: Document = next((one for one in plugins if one.get("name") == _SIZED), {"name": _SIZED})
    if sized.get("configuration"):
        raise BadRequest(
            f"{ADMISSION_CONTROLLER[1]}: the {KIND} has a configuration of {_SIZED} too: give one of the two"
        )
    others = [one for one in plugins if one is not sized]
    return {**given, "plugins": [*others, {**sized, "configuration": controller}]}


def _configuration_problems(index: int, plugin: _Switch) -> Iterable[str]:
    path = f"plugins[{index}].configuration"
    if plugin.is_configured and plugin.name not in _CONFIGURATIONS:
        yield f"{path}: only {', '.join(sorted(_CONFIGURATIONS))} have one: leave it out"
        return
    expected = _CONFIGURATIONS.get(plugin.name, ("", ""))
    stated = (("apiVersion", plugin.api_version, expected[0]), ("kind", plugin.kind, expected[1]))
    yield from (
        f"{path}.{field}: must be {right}, is {value!r}"
        for field, value, right in stated
        if value is not None and value != right
    )
    if plugin.name == _SIZED and (plugin.sizes is not None or plugin.enabled):
        yield from (plugin.sizes or ResourceSizes()).problems(f"{path}.server.resourceAdmissionConfiguration")
    elif plugin.sizes is not None:
        yield f"{path}.server: is for {_SIZED}"
    if plugin.name != _TOLERATING and (plugin.defaults is not None or plugin.whitelist is not None):
        yield f"{path}: defaults and whitelist are for {_TOLERATING}"
    if plugin.name != _REQUIRING and plugin.priority_by_purpose is not None:
        yield f"{path}.priorityByPurpose: is for {_REQUIRING}"


def _plugin(value: Any) -> str:
    if value not in ADMISSION_PLUGINS:
        raise ValueError(f"{value!r} is no admission plug-in: there are {', '.join(sorted(ADMISSION_PLUGINS))}")
    return str(value)


def _no_path(_value: Any) -> None:
    raise ValueError("no plug-in takes a file: write what is in it as configuration")


def _toleration(key: str = "", value: str | None = None) -> Document:
    return {"key": key} | ({} if value is None else {"value": value})


_TOLERATION: Table = {
    "key": Field("key", reader.name, is_required=True),
    "value": Field("value", reader.text),
}


def _tolerations(attribute: str) -> Entries:
    return Entries(attribute, _TOLERATION, _toleration, "tolerations", may_be_empty=True)


def _priorities(value: Any) -> Mapping[str, int]:
    stated = cast("Document", value) if isinstance(value, dict) else {}
    for purpose, priority in stated.items():
        if purpose not in PURPOSES:
            raise ValueError(f"{purpose!r} is no purpose: there are {', '.join(PURPOSES)}")
        is_whole = isinstance(priority, int) and not isinstance(priority, bool)
        if not is_whole or not LEAST_PRIORITY <= priority <= MOST_PRIORITY:
            expected = f"must be a whole number from {LEAST_PRIORITY} to {MOST_PRIORITY}"
            raise ValueError(f"{purpose} {expected}, is {priority!r}")
    if not stated:
        raise ValueError(f"must be priorities by purpose, as {{production: 100}}, is {value!r}")
    return stated


_PLUGIN: Table = {
    "name": Field("name", _plugin),
    "enabled": Field("enabled", reader.flag),
    "configuration": {
        "apiVersion": Field("api_version", reader.text),
        "kind": Field("kind", reader.text),
        "server": {
            "resourceAdmissionConfiguration": resource_sizes.table("sizes"),
            **dict.fromkeys(("webhooks", "healthProbes", "metrics", "enableDebugHandlers"), ACCEPTED),
        },
        **dict.fromkeys(("gardenClientConnection", "logLevel", "logFormat", "debugging", "featureGates"), ACCEPTED),
        "defaults": _tolerations("defaults"),
        "whitelist": _tolerations("whitelist"),
        "priorityByPurpose": Field("priority_by_purpose", _priorities),
    },
    "path": Field(parse=_no_path),
}
_TABLE: Table = {
    **reader.header(API_VERSION, KIND),
    "plugins": Entries("plugins", _PLUGIN, _switch, "plug-ins", may_be_empty=True),
}
