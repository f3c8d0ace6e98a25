"""Nodes, webhooks and the gardenlet's own objects are judged by what is in the cluster."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.control_plane import ClusterParameters
from gardenbus.gardenlet.domain.system_components import (
    differs,
    nodes_problem,
    system_components,
    webhook_problem,
)

CLUSTER = ClusterParameters(technical_id="shoot--dev--apollo", version="1.34.4")
READY: Document = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def a_webhook(**changes: Any) -> Document:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "resources": ["pods"]}
    webhook = {"name": "deny.example.org", "failurePolicy": "Fail", "rules": [rule], **changes}
    return {"metadata": {"name": "mine"}, "webhooks": [webhook]}


def test_the_shoots_facts_are_in_its_cluster() -> None:
    info, identity = system_components(
        {"region": "eu-west-1", "provider": {"type": "aws"}}, CLUSTER, shoot=("garden-dev", "apollo"), uid="u1"
    )
    assert info.path == "/api/v1/namespaces/kube-system/configmaps/shoot-info"
    assert info.manifest["data"]["projectName"] == "dev"
    assert info.manifest["data"]["kubernetesVersion"] == "1.34.4"
    assert identity.manifest["data"]["cluster-identity"] == "shoot--dev--apollo-u1"
    assert differs(info, None)
    assert differs(info, {"data": {}})
    assert not differs(info, {**info.manifest, "metadata": {"resourceVersion": "5"}})


def test_nodes_are_missing_until_as_many_are_ready_as_there_must_be() -> None:
    assert nodes_problem([], wanted=0) is None
    assert nodes_problem([READY, READY], wanted=2) is None
    problem = nodes_problem([READY, {"status": {}}], wanted=2)
    assert problem is not None
    assert problem.startswith("1 of at least 2 nodes")


@pytest.mark.parametrize(
    ("changes", "blocks"),
    [
        ({}, True),
        ({"failurePolicy": None}, True),
        ({"failurePolicy": "Ignore"}, False),
        ({"rules": [{"operations": ["DELETE"], "resources": ["pods"]}]}, False),
        ({"rules": [{"operations": ["*"], "resources": ["*"]}]}, True),
        ({"rules": [{"operations": ["CREATE"], "resources": ["widgets"]}]}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
    ],
)
def test_a_webhook_that_fails_closed_on_the_systems_own_writes_is_a_problem(
    changes: dict[str, Any], blocks: bool
) -> None:
    assert (webhook_problem([a_webhook(**changes)]) is not None) is blocks
