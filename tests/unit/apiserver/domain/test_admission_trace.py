"""A traced chain does what the chain does, and tells of each plug-in what it changed or would refuse."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.apiserver.domain.admission import NOTHING_RELATED, Admission
from gardenbus.apiserver.domain.admission_trace import AdmissionStep, AdmissionTrace, FieldChange, field_changes
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_seed, a_shoot

VALUES = st.recursive(
    st.none() | st.integers(0, 2) | st.text("ab", max_size=1),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("a", "b", "c.d/e")), inner, max_size=3)
    ),
    max_leaves=6,
)

DIFFERENCES: list[tuple[Document, Document, list[Any]]] = [
    ({}, {"a": {"b": 1}}, [("a.b", msgspec.UNSET, 1)]),
    ({"a": 1}, {}, [("a", 1, msgspec.UNSET)]),
    ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("a[1].b", 2, 3)]),
    ({"a": [1]}, {"a": [1, 2]}, [("a", [1], [1, 2])]),
    ({"a": {}}, {"a": {"gardener.cloud/x": ""}}, [("a[gardener.cloud/x]", msgspec.UNSET, "")]),
    ({}, {"a": {}}, [("a", msgspec.UNSET, {})]),
    ({"a": None}, {"a": 0}, [("a", None, 0)]),
]


def _purpose(value: str) -> AdmissionRule:
    def mutate(shoot: Document, _change: Change, _related: RelatedObjects) -> Document:
        return {**shoot, "spec": {**shoot["spec"], "purpose": value}}

    return AdmissionRule(("Shoot",), mutate=mutate)


def _rejecting(message: str) -> AdmissionRule:
    def admit(_shoot: Document, _change: Change, _related: RelatedObjects) -> None:
        raise Forbidden(message)

    return AdmissionRule(("Shoot",), admit=admit)


def _passes(_shoot: Document, _change: Change, _related: RelatedObjects) -> None:
    """Let anything pass."""


def _chain(**rules: AdmissionRule) -> AdmissionTrace:
    return AdmissionTrace(Admission([AdmissionPlugin(name, "", (rule,)) for name, rule in rules.items()]))


def test_each_change_is_told_with_its_path_before_and_after() -> None:
    plugins = [
        AdmissionPlugin(name, "", (_purpose(to),)) for name, to in (("First", "a"), ("Second", "b"), ("Third", "b"))
    ]
    untraced = Admission(plugins)
    trace = AdmissionTrace(untraced)
    shoot = a_shoot(spec={"purpose": "x"})
    mutated = trace.admission.mutate(shoot, None, NOTHING_RELATED, user="ann")
    assert mutated == untraced.mutate(shoot, None, NOTHING_RELATED, user="ann")
    defaults, first, second, third = trace.taken()
    assert (defaults.plugin, defaults.outcome) == ("Defaults", "changed")
    assert first == AdmissionStep("First", "changed", (FieldChange("spec.purpose", "x", "a"),))
    assert second.changes == (FieldChange("spec.purpose", "a", "b"),)
    assert third == AdmissionStep("Third", "passed")
    assert trace.taken() == (), "what was taken is not told again"


def test_all_that_refuse_are_told_and_the_first_is_raised() -> None:
    trace = _chain(One=_rejecting("no"), Two=AdmissionRule(admit=_passes), Three=_rejecting("never"))
    document = trace.admission.mutate(a_shoot(), None, NOTHING_RELATED, user="ann").document
    with pytest.raises(Forbidden, match="no"):
        trace.admission.admit(document, None, NOTHING_RELATED)
    assert [(step.plugin, step.outcome, step.messages) for step in trace.taken()][1:] == [
        ("One", "refuses", ("no",)),
        ("Two", "passed", ()),
        ("Three", "refuses", ("never",)),
    ]


def test_after_a_default_that_cannot_be_filled_in_nobody_is_asked() -> None:
    def mutate(_shoot: Document, _change: Change, _related: RelatedObjects) -> Document:
        raise Forbidden("it contradicts")

    trace = _chain(One=AdmissionRule(mutate=mutate), Two=_purpose("b"), Three=AdmissionRule(admit=_passes))
    with pytest.raises(Forbidden):
        trace.admission.mutate(a_shoot(), None, NOTHING_RELATED, user="ann")
    assert [step.outcome for step in trace.taken()][1:] == ["refuses", "not reached", "not reached"]


def test_a_second_attempt_is_told_alone_and_only_plugins_of_the_kind_are_named() -> None:
    trace = _chain(One=_purpose("a"), Two=AdmissionRule(admit=_passes))
    for _attempt in range(2):
        trace.admission.mutate(a_shoot(spec={"purpose": "x"}), None, NOTHING_RELATED, user="ann")
    _defaults, one, two = trace.taken()
    assert len(one.changes) == 1
    assert two.outcome == "not reached", "of a manifest that is not valid"
    trace.admission.mutate(a_seed(), None, NOTHING_RELATED, user="ann")
    assert [step.plugin for step in trace.taken()] == ["Defaults", "Two"]


@pytest.mark.parametrize(("before", "after", "changes"), DIFFERENCES)
def test_fields_that_differ_are_named(before: Document, after: Document, changes: list[Any]) -> None:
    assert list(field_changes(before, after)) == [FieldChange(*change) for change in changes]


@given(VALUES, VALUES)
def test_there_is_a_change_just_when_the_values_differ(before: Any, after: Any) -> None:
    assert bool(list(field_changes(before, after))) == (before != after)
