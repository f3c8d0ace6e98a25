"""The page of all settings, service by service."""

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.autoscaler.settings import AutoscalerSettings
from gardenbus.common.runtime.settings import ENVIRONMENT_PREFIX, CommonSettings
from gardenbus.controllermanager.settings import ControllerManagerSettings
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.docs.markdown import row, table
from gardenbus.gardenlet.settings import GardenletSettings
from gardenbus.identity.settings import IdentitySettings
from gardenbus.kubeapi.domain.field_docs import field_docs
from gardenbus.kubeapi.settings import KubeApiSettings
from gardenbus.lifecycle.settings import LifecycleSettings
from gardenbus.managedseedset.settings import ManagedSeedSetSettings
from gardenbus.memberagent.settings import MemberAgentSettings
from gardenbus.placement.settings import PlacementSettings
from gardenbus.relay.settings import RelayServiceSettings
from gardenbus.scheduler.settings import SchedulerSettings

SERVICES: Mapping[str, type[CommonSettings]] = {
    "apiserver": ApiserverSettings,
    "scheduler": SchedulerSettings,
    "gardenlet": GardenletSettings,
    "lifecycle": LifecycleSettings,
    "controllermanager": ControllerManagerSettings,
    "managedseedset": ManagedSeedSetSettings,
    "autoscaler": AutoscalerSettings,
    "placement": PlacementSettings,
    "memberagent": MemberAgentSettings,
    "relay": RelayServiceSettings,
    "identity": IdentitySettings,
    "dashboard": DashboardSettings,
    "kubeapi": KubeApiSettings,
}

_HEAD = """# Settings

Every service reads these from the environment. What a Gardener configuration file says (`--config`) comes on top of it:
[SchedulerConfiguration](../operating.md#configuration-files), ControllerManagerConfiguration, GardenletConfiguration.
A value that is wrong stops the service with exit code 2 and one line for each problem.
"""


def settings_page() -> str:
    """The page's Markdown."""
    parts = [_HEAD, "## Every service\n", _of(CommonSettings, without=())]
    common = CommonSettings.__struct_fields__
    for service, struct in SERVICES.items():
        if set(struct.__struct_fields__) - {*common, "configuration", "configurations"}:
            parts += [f"## {service}\n", _of(struct, without=common)]
    return "\n".join(parts)


def _of(struct: type[msgspec.Struct], *, without: Sequence[str]) -> str:
    docs, hints = field_docs(struct), get_type_hints(struct, include_extras=True)
    rows = [
        row(
            f"`{ENVIRONMENT_PREFIX}{field.name.upper()}`",
            type_text(hints[field.name]),
            _default(field),
            docs[field.name],
        )
        for field in msgspec.structs.fields(struct)
        if field.name not in without and field.name not in {"configuration", "configurations"}
    ]
    return table(("variable", "value", "default", "meaning"), rows)


def type_text(hint: Any) -> str:
    """A type in words: `number > 0`, ``one of `a`, `b` ``."""
    if get_origin(hint) is typing.Annotated:
        base, *metas = get_args(hint)
        limits = " ".join(_limits(meta) for meta in metas if isinstance(meta, msgspec.Meta))
        return f"{type_text(base)} {limits}".strip()
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f"`{each}`" for each in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(type_text(each) for each in get_args(hint) if each is not type(None))
    return {"str": "text", "int": "whole number", "float": "number", "bool": "`true` or `false`"}.get(
        getattr(hint, "__name__", ""), str(getattr(hint, "__name__", hint))
    )


def _limits(meta: msgspec.Meta) -> str:
    words = (("≥", meta.ge), (">", meta.gt), ("≤", meta.le), ("<", meta.lt))
    limits = [f"{sign} {value:g}" for sign, value in words if value is not None]
    if meta.pattern is not None:
        limits.append(f"like `{meta.pattern}`")
    return ", ".join(limits)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "must be set"
    if field.default is msgspec.NODEFAULT:
        return "of its own"
    return f"`{field.default}`" if field.default not in ("", None) else "none"
