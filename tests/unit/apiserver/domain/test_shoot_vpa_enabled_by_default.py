"""ShootVPAEnabledByDefault, which somebody switches on."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.table import enabled_plugins
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.configuration.admission import parse_configuration
from gardenbus.common.api.document import Document, section
from tests.support.builders import a_shoot

ON = b"""
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ShootVPAEnabledByDefault
"""
WORKERS = [{"name": "one", "machine": {"type": "m"}, "minimum": 1, "maximum": 1}]


def autoscaler_of(shoot: Document, old: Document | None = None, *, on: bool = True) -> Any:
    admission = Admission(enabled_plugins(parse_configuration(ON))) if on else Admission()
    mutated = admission.mutate(shoot, old, RelatedObjects(), user="ann").document
    return section(mutated, "spec", "kubernetes").get("verticalPodAutoscaler")


def with_workers(**autoscaler: Any) -> Document:
    kubernetes = {"verticalPodAutoscaler": autoscaler} if autoscaler else {}
    return a_shoot(spec={"provider": {"workers": WORKERS}, "kubernetes": kubernetes})


def test_a_new_shoot_gets_its_autoscaler_only_where_it_is_on() -> None:
    assert autoscaler_of(with_workers()) == {"enabled": True}
    assert autoscaler_of(with_workers(), on=False) is None


@pytest.mark.parametrize("stated", [{"enabled": False}, {"enabled": True}])
def test_what_the_manifest_says_stays(stated: Document) -> None:
    assert autoscaler_of(with_workers(**stated)) == stated


def test_neither_a_shoot_without_workers_nor_one_that_is_there_gets_it() -> None:
    assert autoscaler_of(a_shoot(spec={"provider": {"workers": []}})) is None
    assert autoscaler_of(with_workers(), with_workers()) is None
