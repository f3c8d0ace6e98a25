"""Settings of controllermanager: the common ones, and Gardener's configuration file."""

from functools import partial
from typing import Annotated

import msgspec

from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    parse_controller_manager,
)
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings

USAGE = "usage: python -m gardenbus.controllermanager [--config FILE] (a ControllerManagerConfiguration)"


class ControllerManagerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a controllermanager process."""

    configuration: ControllerManagerConfiguration = ControllerManagerConfiguration()
    """The configuration file's content; Gardener's defaults without one."""

    cluster_identity: Annotated[str, msgspec.Meta(max_length=253)] = ""
    """Identity of the landscape, for a ConfigMap `kube-system/cluster-identity` that is missing; one is made else.
    Set, it is the same after a loss of all that is stored."""

    root_ca: str = ""
    """File of the authorities of the Kubernetes API's certificate, for the ConfigMap `kube-root-ca.crt`; without it
    those of NATS' certificate (`GARDENBUS_NATS_CA`)."""


load_settings = partial(load_configured, ControllerManagerSettings, parse_controller_manager, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
