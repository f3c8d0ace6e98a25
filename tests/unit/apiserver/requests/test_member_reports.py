"""What the agent of a member cluster may say."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.member_reports import cluster_of
from gardenbus.apiserver.messages.member_reports import reporter_name, with_agent_finalizer, with_taints_kept
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fleet.member_clusters import AGENT_CLEANUP, AGENT_LEFT, reporter_of
from tests.support.builders import NOW

LEFT = {"type": "Joined", "status": "False", "reason": AGENT_LEFT}


def a_cluster(metadata: Document | None = None, *conditions: Document, **spec: Any) -> Document:
    return {
        "kind": "MemberCluster",
        "metadata": {"name": "east", **(metadata or {})},
        "spec": spec,
        "status": {"conditions": list(conditions)},
    }


def test_a_reporter_is_a_gardenlet_or_the_agent_of_a_cluster() -> None:
    assert cluster_of(reporter_of("east")) == "east"
    assert cluster_of("east") == ""
    assert (reporter_name("a"), reporter_name("member:a")) == ("gardenlet-a", "memberagent-a")


def test_the_first_report_holds_a_cluster_and_the_next_change_nothing() -> None:
    held = with_agent_finalizer(a_cluster({"finalizers": ["mine"]}))
    assert held["metadata"]["finalizers"] == ["mine", AGENT_CLEANUP]
    assert with_agent_finalizer(held) is held


@pytest.mark.parametrize(
    ("finalizers", "conditions", "left"),
    [
        ([AGENT_CLEANUP], [LEFT], None),
        (["mine", AGENT_CLEANUP], [LEFT], ["mine"]),
        ([AGENT_CLEANUP], [], [AGENT_CLEANUP]),
        ([AGENT_CLEANUP], [{**LEFT, "reason": "Leaving"}], [AGENT_CLEANUP]),
        (["mine"], [], ["mine"]),
    ],
)
def test_a_cluster_goes_when_its_agent_has_left_it(
    finalizers: list[str], conditions: list[Document], left: list[str] | None
) -> None:
    leaving = a_cluster({"deletionTimestamp": NOW, "finalizers": finalizers}, *conditions)
    assert with_agent_finalizer(leaving)["metadata"].get("finalizers") == left


def test_a_cluster_that_stays_is_held_whatever_its_agent_says() -> None:
    assert with_agent_finalizer(a_cluster({}, LEFT))["metadata"]["finalizers"] == [AGENT_CLEANUP]


def test_an_agent_takes_off_the_taints_alone_that_it_has_stated() -> None:
    mine, its, new = ({"key": name, "effect": "NoSchedule"} for name in ("drain", "gpu", "arm"))
    before = a_cluster(taints=[mine, its])
    last_applied = encode(a_cluster(taints=[{"key": "gpu"}]))

    def taints(*stated: Document) -> list[Document]:
        return with_taints_kept(a_cluster(taints=list(stated)), before, last_applied)["spec"]["taints"]

    assert taints(its, new) == [mine, its, new]
    assert taints(its) == [mine, its]
    assert taints({"key": "drain"}) == [{"key": "drain"}]
    assert taints() == [mine]
    assert with_taints_kept(a_cluster(), before, last_applied)["spec"]["taints"] == [mine]
    assert with_taints_kept(a_cluster(), before, b"")["spec"]["taints"] == [mine, its]
    assert with_taints_kept(a_cluster(), a_cluster(taints=[its]), last_applied) == a_cluster()
