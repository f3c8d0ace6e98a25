"""`AdmissionConfiguration` of the apiserver, Kubernetes' file for admission plug-ins.

apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ShootVPAEnabledByDefault
  enabled: true

`enabled` is ours: Kubernetes switches plug-ins with flags of the API server. A plug-in that is not listed is as it is
by default. Only ResourceSize has a `configuration`, and is off without one: `server.resourceAdmissionConfiguration` of
Gardener's AdmissionControllerConfiguration.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader, resource_sizes
from gardenbus.common.api.configuration.reader import Entries, Field, Table
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes
from gardenbus.common.errors import SettingsInvalid

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
"""Names of the plug-ins in the order in which they act, and whether each is on by default."""

_SIZED = "ResourceSize"


class _Switch(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    enabled: bool = True
    sizes: ResourceSizes | None = None


def _switch(sizes: Mapping[str, Any] | None = None, **values: Any) -> _Switch:
    return _Switch(**values, sizes=None if sizes is None else ResourceSizes(**sizes))


class AdmissionConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Plug-ins that the file switches."""

    switched: Mapping[str, bool] = {}
    """By name: on or off."""

    resource_sizes: ResourceSizes = ResourceSizes()

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
    return AdmissionConfiguration(switched={one.name: one.enabled for one in listed}, resource_sizes=sizes)


def _configuration_problems(index: int, plugin: _Switch) -> Iterable[str]:
    path = f"plugins[{index}].configuration"
    if plugin.name == _SIZED and (plugin.sizes is not None or plugin.enabled):
        yield from (plugin.sizes or ResourceSizes()).problems(f"{path}.server.resourceAdmissionConfiguration")
    elif plugin.sizes is not None:
        yield f"{path}: {_SIZED} alone takes one: leave it out"


def _plugin(value: Any) -> str:
    if value not in ADMISSION_PLUGINS:
        raise ValueError(f"{value!r} is no admission plug-in: there are {', '.join(sorted(ADMISSION_PLUGINS))}")
    return str(value)


def _no_path(_value: Any) -> None:
    raise ValueError("no plug-in takes a file: write what is in it as configuration")


_PLUGIN: Table = {
    "name": Field("name", _plugin),
    "enabled": Field("enabled", reader.flag),
    "configuration": {
        "apiVersion": Field(parse=reader.exactly("admissioncontroller.config.gardener.cloud/v1alpha1")),
        "kind": Field(parse=reader.exactly("AdmissionControllerConfiguration")),
        "server": {"resourceAdmissionConfiguration": resource_sizes.table("sizes")},
    },
    "path": Field(parse=_no_path),
}
_TABLE: Table = {
    **reader.header(API_VERSION, KIND),
    "plugins": Entries("plugins", _PLUGIN, _switch, "plug-ins", may_be_empty=True),
}
