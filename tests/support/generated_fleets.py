"""Random fleets, policies and bindings, small enough that everything meets everything."""

from typing import Any

from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from tests.support.fleets import CURRENT, OBSOLETE, a_binding, a_member, an_agent, at, leaving

NAMES = [f"c{place}" for place in range(8)]
REGIONS = ["eu", "us", "ap"]

_labels = st.fixed_dictionaries(
    {},
    optional={
        "env": st.sampled_from(["prod", "dev"]),
        "region": st.sampled_from(REGIONS),
        "zone": st.sampled_from(["1", "2"]),
    },
)
_own_labels = st.fixed_dictionaries(
    {"env": st.sampled_from(["prod", "prod", "dev"]), "region": st.sampled_from(REGIONS)},
    optional={"zone": st.sampled_from(["1", "2"])},
)
_agents = st.sampled_from([an_agent()] * 5 + [an_agent(heartbeat=-1000), an_agent(joined="False")])


# Built once: a strategy that is built in the midst of drawing is built, and validated, for each example anew.
_all_labels = st.one_of(_own_labels, _own_labels, _labels)
_taints = st.sampled_from([[], [], [], [{"key": "k", "effect": "NoSchedule"}]])
_properties = st.fixed_dictionaries({}, optional={"p": st.integers(0, 5).map(str)})
_one_in_sixteen = st.integers(0, 15).map(lambda number: number == 0)
_one_in_ten = st.integers(0, 9).map(lambda number: number == 0)
_states = st.sampled_from(["", "", "", "Scheduled", "Scheduled", "Bound", "Bound", "Unscheduled"])
_previous = st.sampled_from(["Scheduled", "Bound"])
_scores = st.one_of(st.none(), st.tuples(st.integers(-1, 1), st.integers(0, 2)))
_snapshots = st.sampled_from([CURRENT, CURRENT, CURRENT, OBSOLETE])


@st.composite
def members(draw: st.DrawFn, name: str) -> MemberCluster:
    """A cluster that is likely well."""
    cluster = a_member(name, draw(_all_labels), taints=draw(_taints), properties=draw(_properties), agent=draw(_agents))
    return leaving(cluster) if draw(_one_in_sixteen) else cluster


_members = {name: members(name) for name in NAMES}
_away = st.sets(st.sampled_from(NAMES), max_size=3)


@st.composite
def fleets(draw: st.DrawFn) -> list[MemberCluster]:
    """Some clusters."""
    away = draw(_away)
    return [draw(_members[name]) for name in NAMES if name not in away]


@st.composite
def existing_bindings(draw: st.DrawFn) -> list[ResourceBinding]:
    """At most one binding a cluster, and sometimes one more that is being deleted."""
    bindings: list[ResourceBinding] = []
    for name in [*NAMES, "gone"]:
        state = draw(_states)
        if not state:
            continue
        previous = draw(_previous) if state == "Unscheduled" else None
        score = draw(_scores)
        snapshot = draw(_snapshots)
        bindings.append(a_binding(name, state, snapshot, previous=previous, score=score))
        if draw(_one_in_ten):
            bindings.append(a_binding(name, "Bound", snapshot, name=f"web-{name}-old", deletionTimestamp=at()))
    return bindings


def _label_term(labels: dict[str, str]) -> Document:
    return {"labelSelector": {"matchLabels": labels}}


def _property_term(operator: str, bound: int) -> Document:
    return {"propertySelector": {"matchExpressions": [{"name": "p", "operator": operator, "values": [str(bound)]}]}}


def _sorter(order: str) -> Document:
    return {"propertySorter": {"name": "p", "sortOrder": order}}


def _weight(weight: int) -> Document:
    return {"weight": weight}


def _preference(liked: Document) -> Document:
    return {"preference": liked}


def _both(one: Document, other: Document) -> Document:
    return {**one, **other}


_label_terms = st.builds(_label_term, _labels)
_property_terms = st.builds(_property_term, st.sampled_from(["Gt", "Le", "Ne"]), st.integers(0, 5))
_sorters = st.builds(_sorter, st.sampled_from(["Descending", "Ascending"]))
_terms = st.one_of(_label_terms, _property_terms, st.builds(_both, _label_terms, _property_terms))
_liked = st.one_of(_label_terms, _sorters, st.builds(_both, _label_terms, _sorters))
_preferences = st.builds(_both, st.builds(_weight, st.integers(-100, 100)), st.builds(_preference, _liked))
_constraints = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(["region", "zone"]),
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    }
)


_fixed_names = st.lists(st.sampled_from([*NAMES, "gone"]), unique=True, min_size=1, max_size=5)
_required = st.lists(_terms, max_size=2)
_numbers = st.integers(0, 6)
_spreads = st.lists(_constraints, max_size=2, unique_by=str)
_preferred = st.lists(_preferences, max_size=3)
_tolerated = st.booleans().map(lambda tolerates: [{"key": "k", "operator": "Exists"}] if tolerates else [])


@st.composite
def policies(draw: st.DrawFn, kinds: tuple[str, ...] = ("PickAll", "PickN", "PickFixed")) -> Document:
    """A policy of one of some types."""
    kind = draw(st.sampled_from(kinds))
    if kind == "PickFixed":
        return {"placementType": kind, "clusterNames": draw(_fixed_names)}
    affinity: dict[str, Any] = {}
    if terms := draw(_required):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"clusterSelectorTerms": terms}
    policy: Document = {"placementType": kind, "tolerations": draw(_tolerated)}
    if kind == "PickN":
        policy["numberOfClusters"] = draw(_numbers)
        policy["topologySpreadConstraints"] = draw(_spreads)
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = draw(_preferred)
    policy["affinity"] = {"clusterAffinity": affinity}
    return policy
