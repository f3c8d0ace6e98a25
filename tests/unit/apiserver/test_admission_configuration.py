"""The file that switches admission plug-ins."""

import importlib
import pkgutil
import re
import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gardenbus.apiserver.domain import plugins
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import table
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin
from gardenbus.apiserver.domain.plugins.table import DEFAULT_PLUGINS, PLUGINS, enabled_plugins
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.settings import load_settings
from gardenbus.common.api.configuration import admission
from gardenbus.common.api.configuration.admission import (
    ADMISSION_PLUGINS,
    AdmissionConfiguration,
    TolerationLists,
    parse_configuration,
    with_admission_controller,
)
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS, resolved_of
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.docs.admission import admission_page
from tests.support.builders import a_project, a_shoot


def a_file(*plugins: Document) -> bytes:
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    return encode({**kind, "plugins": list(plugins)})


def sized(name: str = "ResourceSize", limit: Document | None = None, **section: Any) -> Document:
    one = {"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "resources": ["shoots"], "size": "1Ki"}
    sizes = {"limits": [{**one, **(limit or {})}], **section}
    return {"name": name, "configuration": {"server": {"resourceAdmissionConfiguration": sizes}}}


def tolerating(name: str = "ShootTolerationRestriction", **lists: Any) -> Document:
    version = "shoottolerationrestriction.admission.gardener.cloud/v1alpha1"
    kind = {"apiVersion": version, "kind": "Configuration"}
    return {"name": name, "configuration": {**kind, "defaults": [{"key": "foo"}], **lists}}


def test_tolerations_that_all_projects_have_are_read() -> None:
    lists = parse_configuration(a_file(tolerating(whitelist=[{"key": "bar", "value": "baz"}]))).tolerations
    assert lists == TolerationLists(defaults=({"key": "foo"},), whitelist=({"key": "bar", "value": "baz"},))


def requiring(priorities: Document) -> Document:
    version = "schedulingrequirements.admission.gardenbus.io/v1alpha1"
    configuration = {"apiVersion": version, "kind": "Configuration", "priorityByPurpose": priorities}
    return {"name": "SchedulingRequirements", "configuration": configuration}


def test_priorities_by_purpose_are_read_and_count_up_to_what_a_project_allows() -> None:
    configuration = parse_configuration(a_file(requiring({"production": 100, "testing": -100})))
    assert configuration.priority_by_purpose == {"production": 100, "testing": -100}
    admission = Admission([each for each in enabled_plugins(configuration) if each.name == "SchedulingRequirements"])
    project = a_project("dev", metadata={"annotations": {MAX_PRIORITY: "60"}})
    related = RelatedObjects(projects={"garden-dev": project})
    priorities = {
        (purpose, stated): resolved_of(
            admission.mutate(
                a_shoot(spec={"purpose": purpose}, metadata={"annotations": annotations}), None, related, user="ann"
            ).document
        ).priority
        for purpose in ("production", "testing", "evaluation")
        for stated, annotations in (("", {}), ("7", {REQUIREMENTS: "priority: 7"}))
    }
    assert priorities == {
        ("production", ""): 60,
        ("testing", ""): -100,
        ("evaluation", ""): 0,
        ("production", "7"): 7,
        ("testing", "7"): 7,
        ("evaluation", "7"): 7,
    }


ADMISSION_CONTROLLER: Document = {
    "apiVersion": "admissioncontroller.config.gardener.cloud/v1alpha1",
    "kind": "AdmissionControllerConfiguration",
    "gardenClientConnection": {"qps": 100},
    "server": {
        "webhooks": {"port": 2721},
        "resourceAdmissionConfiguration": {
            "limits": [
                {"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "resources": ["projects"], "count": 200}
            ],
            "unrestrictedSubjects": [
                {"kind": "Group", "name": "gardener.cloud:system:seeds", "apiGroup": "rbac.authorization.k8s.io"}
            ],
        },
    },
}


def test_gardeners_file_of_its_admission_controller_configures_the_sizes() -> None:
    configuration = parse_configuration(encode(with_admission_controller(None, ADMISSION_CONTROLLER)))
    (limit,), (subject,) = configuration.resource_sizes.limits, configuration.resource_sizes.unrestricted
    assert (limit.resources, limit.size, limit.count) == (("projects",), None, 200)
    assert [subject.is_meant(user) for user in ("seed:aws", "gardener.cloud:system:seeds", "ann")] == [
        True,
        False,
        False,
    ]
    given = msgspec.json.decode(a_file({"name": "ShootMutator", "enabled": False}, {"name": "ResourceSize"}))
    beside = parse_configuration(encode(with_admission_controller(given, ADMISSION_CONTROLLER)))
    assert (beside.resource_sizes, beside.is_enabled("ShootMutator")) == (configuration.resource_sizes, False)


def test_sizes_that_two_files_configure_are_rejected() -> None:
    with pytest.raises(BadRequest, match="has a configuration of ResourceSize too"):
        with_admission_controller(msgspec.json.decode(a_file(sized())), ADMISSION_CONTROLLER)


def test_each_plugin_of_the_apiserver_has_its_row_and_each_row_its_plugin() -> None:
    names = [module.name for module in pkgutil.iter_modules(plugins.__path__) if module.name not in ("plugin", "table")]
    modules = [importlib.import_module(f"{plugins.__name__}.{name}") for name in names]
    written = {
        value.name for module in modules for value in vars(module).values() if isinstance(value, AdmissionPlugin)
    }
    assert written == set(ADMISSION_PLUGINS)
    assert [plugin.name for plugin in PLUGINS] == list(ADMISSION_PLUGINS)


def test_the_order_stands_in_the_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = dict(reversed([*ADMISSION_PLUGINS.items()]))
    monkeypatch.setattr(admission, "ADMISSION_PLUGINS", turned)
    copy = runpy.run_path(str(table.__file__))
    assert [plugin.name for plugin in copy["PLUGINS"]] == list(turned)


def test_a_plugin_that_may_refuse_says_so_on_the_page_of_plugins() -> None:
    refusing = ("admit", "guards", "admit_deletion", "deletion_guards")
    table = admission_page().partition("## Rejections")[0]
    page = {row.split("`")[1]: row for row in table.splitlines() if row.startswith("| `")}
    assert list(page) == [plugin.name for plugin in PLUGINS]
    for plugin in PLUGINS:
        if any(getattr(rule, field) for rule in plugin.rules for field in refusing):
            assert re.search(r"\b(rejects|keeps)\b", page[plugin.name]), plugin.name


def test_a_plugin_that_is_not_listed_is_as_it_is_by_default() -> None:
    enabled = enabled_plugins(parse_configuration(a_file()))
    assert [plugin.name for plugin in enabled] == [plugin.name for plugin in DEFAULT_PLUGINS]
    assert {plugin.name for plugin in DEFAULT_PLUGINS} == {name for name, is_on in ADMISSION_PLUGINS.items() if is_on}


def test_a_plugin_is_switched_off() -> None:
    configuration = parse_configuration(a_file({"name": "UseAsSeed", "enabled": False}, {"name": "ShootMutator"}))
    on = [plugin.name for plugin in enabled_plugins(configuration)]
    assert "UseAsSeed" not in on
    assert "ShootMutator" in on


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ([{"name": "ShootValidater"}], r"plugins\[0\]\.name: 'ShootValidater' is no admission plug-in: there are"),
        ([{"enabled": True}], r"plugins\[0\]\.name: is required"),
        ([{"name": "UseAsSeed"}, {"name": "UseAsSeed"}], r"plugins: UseAsSeed is listed twice"),
        ([{"name": "UseAsSeed", "enabled": "no"}], r"plugins\[0\]\.enabled: must be true or false"),
        ([{"name": "UseAsSeed", "configuration": {"a": 1}}], r"plugins\[0\]\.configuration\.a: no such field"),
        ([sized(name="UseAsSeed")], r"plugins\[0\]\.configuration: only ResourceSize, Sch\w+, Shoo\w+ have one"),
        ([sized(name="ShootTolerationRestriction")], r"plugins\[0\]\.configuration\.server: is for ResourceSize"),
        ([tolerating(kind="Other")], r"plugins\[0\]\.configuration\.kind: must be Configuration, is 'Other'"),
        ([tolerating(defaults=[{"value": "a"}])], r"configuration\.defaults\[0\]\.key: must be a text"),
        (
            [tolerating(name="ResourceSize")],
            r"configuration: defaults and whitelist are for ShootTolerationRestriction",
        ),
        ([requiring({"prod": 1})], r"configuration\.priorityByPurpose: 'prod' is no purpose: there are evaluation"),
        ([requiring({"production": "1"})], r"priorityByPurpose: production must be a whole number from -1000 to"),
        ([requiring({"testing": -1001})], r"priorityByPurpose: testing must be a whole number from -1000 to"),
        ([requiring({})], r"priorityByPurpose: must be priorities by purpose"),
        (
            [{**requiring({"production": 1}), "name": "ResourceSize"}],
            r"configuration\.priorityByPurpose: is for SchedulingRequirements",
        ),
        ([{"name": "UseAsSeed", "path": "a.yaml"}], r"plugins\[0\]\.path: no plug-in takes"),
        ([{"name": "ResourceSize"}], r"plugins\[0\]\.configuration\.server\.\w+\.limits: is required"),
        ([sized(limit={"size": "-1"})], r"limits\[0\]\.size: must be above 0"),
        ([sized(limit={"size": "much"})], r"limits\[0\]\.size: .*much"),
        ([sized(limit={"resources": []})], r"limits\[0\]\.resources: must be a list of names"),
        ([sized(limit={"count": -3})], r"limits\[0\]\.count: must be a whole number, at least 0"),
        ([sized(limit={"size": None})], r"limits\[0\]: size or count is required"),
        ([sized(operationMode="warn")], r"operationMode: must be one of block, log"),
        ([sized(unrestrictedSubjects=[{"kind": "Team", "name": "a"}])], r"\[0\]\.kind: must be one of User, Group"),
        ([sized(unrestrictedSubjects=[{"kind": "ServiceAccount", "name": "a"}])], r"\[0\]\.namespace: is for a"),
        ([{"name": "UseAsSeed", "enable": True}], r"plugins\[0\]\.enable: no such field"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(plugins: list[Document], problem: str) -> None:
    with pytest.raises(SettingsInvalid, match=problem):
        parse_configuration(a_file(*plugins))


def test_the_limits_that_the_documentation_shows_are_read_and_switch_the_plugin_on() -> None:
    page = (Path(__file__).parents[3] / "docs" / "manifests.md").read_text().split("## Sizes of objects", 1)[1]
    configuration = parse_configuration(page.split("```yaml\n", 1)[1].split("```", 1)[0])
    (limit,) = configuration.resource_sizes.limits
    assert (limit.resources, limit.size) == (("shoots",), 100 * 1024)
    assert configuration.resource_sizes.blocks
    assert "ResourceSize" in [plugin.name for plugin in enabled_plugins(configuration)]
    off = parse_configuration(a_file({**sized(), "enabled": False}))
    assert "ResourceSize" not in [plugin.name for plugin in enabled_plugins(off)]


def test_another_kind_is_rejected() -> None:
    with pytest.raises(SettingsInvalid, match="kind: must be AdmissionConfiguration"):
        parse_configuration(encode({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "Configuration"}))


def test_without_a_file_everything_is_as_by_default() -> None:
    assert load_settings([], {}).configuration == AdmissionConfiguration()
