"""Rules of the add-ons of a Shoot. Source: Gardener's `validateAddons` in `pkg/api/core/validation/shoot.go`."""

import re

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.value_rules import check_values, one_of
from gardenbus.common.api.networks import is_cidr
from gardenbus.common.api.shown_values import shown

_DATA_KEY = re.compile(r"(?!\.\.)(?!\.\Z)[-._a-zA-Z0-9]{1,253}")
_MOST_DATA = 2**20
"""Characters of all values of a ConfigMap."""


def check_addons(spec: FieldCursor) -> None:
    """Note add-ons of a shoot that is no evaluation, and values that they do not have; what is off may say anything."""
    addons = spec.section("addons")
    dashboard, ingress = addons.section("kubernetesDashboard"), addons.section("nginxIngress")
    enabled = [each for each in (dashboard, ingress) if each.content.get("enabled") is True]
    if enabled and spec.content.get("purpose") not in (None, "", "evaluation"):
        enabled[0].add_error("enabled", "is for shoots with the purpose evaluation alone")
    if dashboard in enabled:
        check_values(dashboard, {"authenticationMode": one_of("token")})
    if ingress in enabled:
        check_values(ingress, {"externalTrafficPolicy": one_of("Cluster", "Local")})
        _check_ingress(ingress)


def _check_ingress(ingress: FieldCursor) -> None:
    for path, source in ingress.texts("loadBalancerSourceRanges"):
        if not is_cidr(source):
            ingress.errors.add_error(path, f"must be a range as 10.0.0.0/8, not {shown(source)}")
    configuration = ingress.text_map("config")
    for key in configuration:
        if not _DATA_KEY.fullmatch(key):
            ingress.errors.add_error(f"{ingress.at('config')}[{key[:80]}]", "is no key of a ConfigMap")
    if sum(map(len, configuration.values())) > _MOST_DATA:
        ingress.add_error("config", "is larger than a ConfigMap can be")
