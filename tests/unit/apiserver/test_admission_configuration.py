"""The file that switches admission plug-ins."""

import pytest

from gardenbus.apiserver.domain.plugins.table import DEFAULT_PLUGINS, PLUGINS, enabled_plugins
from gardenbus.apiserver.settings import load_settings
from gardenbus.common.api.configuration.admission import ADMISSION_PLUGINS, AdmissionConfiguration, parse_configuration
from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import SettingsInvalid


def a_file(*plugins: Document) -> bytes:
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    return encode({**kind, "plugins": list(plugins)})


def test_the_file_knows_the_plugins_that_run_in_their_order() -> None:
    assert [plugin.name for plugin in PLUGINS] == list(ADMISSION_PLUGINS)


def test_a_plugin_that_is_not_listed_is_as_it_is_by_default() -> None:
    assert enabled_plugins(parse_configuration(a_file())) == DEFAULT_PLUGINS
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
        ([{"name": "UseAsSeed", "configuration": {"a": 1}}], r"plugins\[0\]\.configuration: no plug-in takes"),
        ([{"name": "UseAsSeed", "path": "a.yaml"}], r"plugins\[0\]\.path: no plug-in takes"),
        ([{"name": "UseAsSeed", "enable": True}], r"plugins\[0\]\.enable: no such field"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(plugins: list[Document], problem: str) -> None:
    with pytest.raises(SettingsInvalid, match=problem):
        parse_configuration(a_file(*plugins))


def test_another_kind_is_rejected() -> None:
    with pytest.raises(SettingsInvalid, match="kind: must be AdmissionConfiguration"):
        parse_configuration(encode({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "Configuration"}))


def test_without_a_file_everything_is_as_by_default() -> None:
    assert load_settings([], {}).configuration == AdmissionConfiguration()
