"""The chain: plug-ins in Gardener's order, those that are on, and only what concerns a kind."""

from collections.abc import Sequence

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.plugins.table import DEFAULT_PLUGINS, PLUGINS
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_seed, a_shoot

GARDENERS_ORDER = (
    "ResourceReferenceManager",
    "ShootTolerationRestriction",
    "ShootExposureClass",
    "ShootDNS",
    "ShootManagedSeed",
    "ShootMutator",
    "ShootValidator",
    "SeedValidator",
    "ControllerRegistrationResources",
    "NamespacedCloudProfileValidator",
    "ProjectMutator",
    "DeletionConfirmation",
    "CustomVerbAuthorizer",
    "ShootVPAEnabledByDefault",
    "ManagedSeed",
    "Bastion",
)
"""Of `plugin/pkg/plugins.go`."""


def test_plugins_stand_in_gardeners_order_and_each_has_one_name() -> None:
    names = [plugin.name for plugin in PLUGINS]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in GARDENERS_ORDER] == list(GARDENERS_ORDER)


def test_every_plugin_does_something() -> None:
    for plugin in PLUGINS:
        assert plugin.rules, plugin.name
        assert all(any(function is not None for function in rule[1:]) for rule in plugin.rules), plugin.name


def test_each_rule_sees_the_manifest_as_the_one_before_left_it() -> None:
    def add(letter: str) -> AdmissionPlugin:
        def mutate(shoot: Document, _change: Change, _related: RelatedObjects) -> Document:
            return {**shoot, "spec": {**shoot["spec"], "purpose": shoot["spec"]["purpose"] + letter}}

        def warn(shoot: Document, _change: Change, _related: RelatedObjects) -> Sequence[str]:
            return (shoot["spec"]["purpose"],)

        return AdmissionPlugin(letter, "adds a letter", (AdmissionRule(("Shoot",), mutate=mutate, warn=warn),))

    shoot = a_shoot(spec={"purpose": "x"})
    mutated = Admission((add("a"), add("b"))).mutate(shoot, None, RelatedObjects(), user="ann")
    assert mutated.document["spec"]["purpose"] == "xab"
    assert mutated.warnings[:2] == ("xab", "xab"), "warnings are of the manifest as it will be stored"
    assert mutated.warnings[2:] == ("spec.purpose is ignored: it is set here, to 'xab'",)


def test_a_rule_is_for_its_kinds_and_queries_are_asked_once() -> None:
    def reject(_stored: Document, _user: str | None, _related: RelatedObjects) -> None:
        raise Forbidden("not this one")

    def queries(_document: Document, _old: Document | None) -> Sequence[RelatedQuery]:
        return (query,)

    query = ProjectQuery("garden-dev")
    one = AdmissionPlugin("One", "", (AdmissionRule(("Shoot",), queries=queries, admit_deletion=reject),))
    two = AdmissionPlugin("Two", "", (AdmissionRule(queries=queries),))
    admission = Admission((one, two))
    assert admission.related_queries(a_shoot(), None) == (query,)
    admission.admit_deletion(a_seed())
    with pytest.raises(Forbidden):
        admission.admit_deletion(a_shoot())


def test_what_is_off_by_default_is_off() -> None:
    assert Admission().plugins == DEFAULT_PLUGINS
    assert {plugin.name for plugin in PLUGINS} - {plugin.name for plugin in DEFAULT_PLUGINS} == {
        "ShootVPAEnabledByDefault",
        "ResourceSize",
    }


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_the_page_says_of_each_plugin_that_rejects_what_it_rejects(plugin: AdmissionPlugin) -> None:
    """`docs/reference/admission.md` is made of these sentences."""
    rejects = any(rule.admit or rule.admit_deletion or rule.guards or rule.deletion_guards for rule in plugin.rules)
    assert not rejects or any(word in plugin.acts for word in ("rejects", "keeps"))
