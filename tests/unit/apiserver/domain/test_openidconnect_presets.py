"""OpenIDConnectPresets: which of them a new shoot gets. The cases are those of Gardener's `plugin/pkg/shoot/oidc`."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import openidconnect_preset
from gardenbus.apiserver.domain.related_objects import KindQuery, ProjectQuery, RelatedObjects
from gardenbus.common.api.document import Document, section
from tests.support.builders import a_project, a_shoot, merged

CHAIN = Admission([openidconnect_preset.PLUGIN, openidconnect_preset.CLUSTER_PLUGIN])
OTHERS: Document = {"matchLabels": {"not": "existing"}}
LABELLED = merged(a_shoot(), {"metadata": {"labels": {"oidc": "yes"}}})


def a_preset(name: str, *, weight: int = 0, kind: str = "OpenIDConnectPreset", **spec: Any) -> Document:
    """A preset whose issuer is called as it is."""
    namespace = {"namespace": "garden-dev"} if kind == "OpenIDConnectPreset" else {}
    server = {"clientID": "client", "issuerURL": f"https://{name}", "caBundle": None}
    selectors = {"shootSelector": {"matchLabels": {"oidc": "yes"}}, "projectSelector": {}}
    return {
        "kind": kind,
        "metadata": {"name": name, **namespace},
        "spec": {"server": server, "weight": weight, **selectors, **spec},
    }


def a_cluster_preset(name: str, **spec: Any) -> Document:
    """A preset of the landscape."""
    return a_preset(name, kind="ClusterOpenIDConnectPreset", **spec)


def issuer(shoot: Document, *presets: Document, project: Document | None = None, old: Document | None = None) -> str:
    """The issuer that a shoot gets; "" for none."""
    related = RelatedObjects(
        all_of={
            kind.lower(): [preset for preset in presets if preset["kind"] == kind]
            for kind in ("OpenIDConnectPreset", "ClusterOpenIDConnectPreset")
        },
        projects={"garden-dev": project or a_project()},
    )
    spec = CHAIN.mutate(shoot, old, related, user="alice").document["spec"]
    configuration = section(spec, "kubernetes", "kubeAPIServer", "oidcConfig")
    return str(configuration.get("issuerURL", "")).removeprefix("https://")


@pytest.mark.parametrize(
    ("presets", "chosen"),
    [
        ([], ""),
        ([a_preset("one")], "one"),
        ([a_preset("one", weight=5), a_preset("two", weight=4)], "one"),
        ([a_preset("one"), a_preset("two")], "two"),
        ([a_preset("one", shootSelector={})], "one"),
        ([a_preset("one", shootSelector={"matchLabels": {"oidc": "no"}})], ""),
        ([a_preset("one", shootSelector=None)], ""),
        ([a_preset("one", shootSelector={"matchLabels": 5})], ""),
        ([merged(a_preset("one"), {"metadata": {"namespace": "garden-other"}})], ""),
        ([a_cluster_preset("all")], "all"),
        ([a_cluster_preset("all", weight=100), a_preset("one")], "one"),
        ([a_cluster_preset("all", projectSelector={"matchLabels": {"a": "b"}})], ""),
        ([a_cluster_preset("all", projectSelector=None)], ""),
        ([a_cluster_preset("all", projectSelector={"matchLabels": {"team": "red"}})], "all"),
        ([a_cluster_preset("all", shootSelector={"matchLabels": {"oidc": "no"}})], ""),
        ([a_cluster_preset("all"), a_preset("one", shootSelector={"matchLabels": {"oidc": "no"}})], "all"),
        ([a_cluster_preset("one", weight=100), a_cluster_preset("two", weight=50)], "one"),
        ([a_cluster_preset("one", weight=50), a_cluster_preset("two", weight=50)], "two"),
        ([a_cluster_preset("02", weight=0), a_cluster_preset("01", weight=0)], "02"),
        ([a_cluster_preset("one", weight=100, shootSelector=OTHERS), a_cluster_preset("two")], "two"),
        ([a_cluster_preset("one"), a_cluster_preset("two", weight=100, projectSelector=OTHERS)], "one"),
        ([a_preset("one", weight=100, shootSelector=OTHERS), a_preset("two")], "two"),
    ],
)
def test_the_heaviest_preset_that_selects_a_shoot_counts(presets: list[Document], chosen: str) -> None:
    project = merged(a_project(), {"metadata": {"labels": {"team": "red"}}})
    assert issuer(LABELLED, *presets, project=project) == chosen


def test_a_shoot_whose_namespace_has_no_project_gets_no_preset_of_the_landscape() -> None:
    related = RelatedObjects(all_of={"clusteropenidconnectpreset": [a_cluster_preset("all")]})
    assert (
        CHAIN.mutate(LABELLED, None, related, user="alice").document["spec"].get("kubernetes", {}).get("kubeAPIServer")
        is None
    )


def test_a_shoot_with_a_configuration_of_its_own_and_one_that_is_there_keep_theirs() -> None:
    own = {"kubernetes": {"kubeAPIServer": {"oidcConfig": {"issuerURL": "https://mine"}}}}
    assert issuer(merged(LABELLED, {"spec": own}), a_preset("one")) == "mine"
    assert issuer(LABELLED, a_preset("one"), old=LABELLED) == ""
    for field, value in (("oidcConfig", {}), ("structuredAuthentication", {"configMapName": "authn"})):
        shoot = merged(LABELLED, {"spec": {"kubernetes": {"kubeAPIServer": {field: value}}}})
        assert issuer(shoot, a_preset("one"), a_cluster_preset("all")) == "", field
        assert CHAIN.related_queries(shoot, None) == (), field
    assert CHAIN.related_queries(LABELLED, LABELLED) == ()
    assert CHAIN.related_queries(LABELLED, None) == (
        KindQuery("openidconnectpreset"),
        KindQuery("clusteropenidconnectpreset"),
        ProjectQuery("garden-dev"),
    )


def test_the_client_of_a_preset_comes_along_and_other_settings_stay() -> None:
    shoot = merged(LABELLED, {"spec": {"kubernetes": {"kubeAPIServer": {"logging": {"verbosity": 2}}}}})
    related = RelatedObjects(all_of={"openidconnectpreset": [a_preset("one", client={"secret": "s"})]})
    server = CHAIN.mutate(shoot, None, related, user="alice").document["spec"]["kubernetes"]["kubeAPIServer"]
    assert server["oidcConfig"] == {
        "clientID": "client",
        "issuerURL": "https://one",
        "clientAuthentication": {"secret": "s"},
    }
    assert server["logging"] == {"verbosity": 2}


FULL: Document = {
    "caBundle": "cert",
    "clientID": "client-id",
    "issuerURL": "https://foo.bar",
    "groupsClaim": "groupz",
    "groupsPrefix": "group-prefix",
    "requiredClaims": {"claim-1": "value-1", "claim-2": "value-2"},
    "signingAlgs": ["alg-1", "alg-2"],
    "usernameClaim": "user",
    "usernamePrefix": "user-prefix",
}
CLIENT: Document = {"secret": "secret", "extraConfig": {"foo": "bar", "baz": "dap"}}


@pytest.mark.parametrize("server", [None, {}])
@pytest.mark.parametrize("kind", ["OpenIDConnectPreset", "ClusterOpenIDConnectPreset"])
def test_every_field_of_a_preset_comes_along_and_nothing_else_changes(kind: str, server: Document | None) -> None:
    shoot = merged(LABELLED, {"spec": {"kubernetes": {"kubeAPIServer": server}}})
    preset = a_preset("one", kind=kind, server=FULL, client=CLIENT)
    related = RelatedObjects(all_of={kind.lower(): [preset]}, projects={"garden-dev": a_project()})
    expected = {"oidcConfig": {**FULL, "clientAuthentication": CLIENT}}
    without = CHAIN.mutate(shoot, None, RelatedObjects(), user="alice").document
    found = CHAIN.mutate(shoot, None, related, user="alice").document
    assert found == merged(without, {"spec": {"kubernetes": {"kubeAPIServer": expected}}})
