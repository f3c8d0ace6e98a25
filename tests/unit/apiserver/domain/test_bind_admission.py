"""Whether a seed may take a shoot that somebody binds to it."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.bind_admission import admit_binding, admit_migration
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged


def rejection(
    shoot: Document | None = None,
    seed: Document | None = None,
    profile_spec: Document | None = None,
    usage: int | None = None,
) -> str:
    with pytest.raises(Forbidden) as caught:
        admit_binding(
            shoot or a_shoot(),
            seed or a_seed(),
            project=a_project(),
            profile_spec=a_cloudprofile()["spec"] if profile_spec is None else profile_spec,
            usage=usage,
        )
    return caught.value.message


def is_admitted(shoot: Document, seed: Document, profile_spec: Document | None = None) -> bool:
    profile_spec = a_cloudprofile()["spec"] if profile_spec is None else profile_spec
    try:
        admit_binding(shoot, seed, project=a_project(), profile_spec=profile_spec)
    except Forbidden:
        return False
    return True


def test_visibility_readiness_and_region_are_the_binders_business() -> None:
    seed = a_seed(ready=False, spec={"settings": {"scheduling": {"visible": False}}, "provider": {"region": "moon"}})
    assert is_admitted(a_shoot(), seed)


def test_a_seed_that_is_not_there_or_leaving_takes_nothing() -> None:
    with pytest.raises(Forbidden, match="there is no seed s1"):
        admit_binding(a_shoot(spec={"seedName": "s1"}), None, project=None, profile_spec=None)
    assert "being deleted" in rejection(seed=a_seed(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))


def test_a_shoot_in_no_project_waits_for_one() -> None:
    with pytest.raises(Forbidden, match="garden-dev belongs to no Project"):
        admit_binding(a_shoot(), a_seed(), project=None, profile_spec=a_cloudprofile()["spec"])


def test_a_malformed_default_range_is_refused_and_what_is_in_use_counts() -> None:
    malformed = a_seed(spec={"networks": {"shootDefaults": {"pods": "x"}}})
    assert "are no network range" in rejection(a_shoot(spec={"networking": {"pods": None}}), malformed)
    in_use = {"pods": ["10.241.0.0/20"], "services": ["100.64.0.0/13"]}
    assert "overlap with the seed's pods" in rejection(a_shoot(status={"networking": in_use}))
    assert is_admitted(a_shoot(status={"networking": {"egressCIDRs": ["1.2.3.4/32"]}}), a_seed())


def test_a_toleration_that_nobody_checked_counts_only_if_the_project_allows_it() -> None:
    note = {"annotations": {UNCHECKED_TOLERATIONS: '[{"key":"a","value":"x"}]'}}
    shoot = a_shoot(metadata=note, spec={"tolerations": [{"key": "a", "value": "x"}, {"key": "b"}]})
    seed = a_seed(spec={"taints": [{"key": "a", "value": "x"}]})
    assert "taints (a=x)" in rejection(shoot, seed)
    assert is_admitted(shoot, a_seed(spec={"taints": [{"key": "b"}]}))
    for field, value in (("whitelist", "x"), ("whitelist", None), ("defaults", "x")):
        project = a_project(spec={"tolerations": {field: [{"key": "a", "value": value}]}})
        admit_binding(shoot, seed, project=project, profile_spec=a_cloudprofile()["spec"])


def test_all_reasons_are_told_at_once() -> None:
    seed = a_seed(spec={"taints": [{"key": "a"}], "provider": {"zones": ["x"]}})
    shoot = a_shoot(
        spec={
            "accessRestrictions": [{"name": "eu"}],
            "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
        }
    )
    message = rejection(shoot, seed)
    assert all(part in message for part in ("taints (a)", "access restrictions eu", "1 zones", "seed aws-eu1"))


@pytest.mark.parametrize(
    ("taints", "tolerations", "tolerated"),
    [
        ([], [], True),
        ([{"key": "a"}], [], False),
        ([{"key": "a"}], [{"key": "a"}], True),
        ([{"key": "a"}], [{"key": "a", "value": "x"}], True),
        ([{"key": "a", "value": "x"}], [{"key": "a", "value": "x"}], True),
        ([{"key": "a", "value": "x"}], [{"key": "a"}], False),
        ([{"key": "a", "value": ""}], [{"key": "a"}], True),
        ([{"key": "a"}, {"key": "a", "value": "x"}], [{"key": "a", "value": "x"}], False),
        ([{"key": "a", "value": "x"}], [{"key": "a", "value": "x"}, {"key": "a", "value": "y"}], False),
    ],
)
def test_taints_must_be_tolerated(taints: list[Document], tolerations: list[Document], tolerated: bool) -> None:
    assert is_admitted(a_shoot(spec={"tolerations": tolerations}), a_seed(spec={"taints": taints})) is tolerated


def test_the_profile_selects_by_labels_and_provider_types() -> None:
    labelled = a_cloudprofile(spec={"seedSelector": {"matchLabels": {"a": "b"}}})["spec"]
    assert "seedSelector of the cloud profile (a=b)" in rejection(profile_spec=labelled)
    assert is_admitted(a_shoot(), a_seed(metadata={"labels": {"a": "b"}}), labelled)
    for types, admitted in ((["gcp"], False), (["gcp", "aws"], True), (["*"], True), ([], True)):
        profile_spec = a_cloudprofile(spec={"seedSelector": {"providerTypes": types}})["spec"]
        assert is_admitted(a_shoot(), a_seed(), profile_spec) is admitted


def test_the_shoots_own_provider_types_know_no_wildcard_and_its_labels_are_not_looked_at() -> None:
    assert is_admitted(a_shoot(spec={"seedSelector": {"matchLabels": {"no": "such"}}}), a_seed())
    assert is_admitted(a_shoot(spec={"seedSelector": {"providerTypes": ["aws"]}}), a_seed())
    assert not is_admitted(a_shoot(spec={"seedSelector": {"providerTypes": ["*"]}}), a_seed())


def test_the_control_planes_zones_must_be_the_seeds() -> None:
    assert is_admitted(a_shoot(spec={"controlPlane": {"zones": ["eu-west-1a"]}}), a_seed())
    assert "zones moon-1a" in rejection(a_shoot(spec={"controlPlane": {"zones": ["moon-1a"]}}))


def test_ranges_must_be_disjoint_from_the_seeds_and_not_reserved() -> None:
    assert "nodes 10.240.0.0/17 overlap with the seed's nodes" in rejection(
        a_shoot(spec={"networking": {"nodes": "10.240.0.0/17"}})
    )
    assert "reserved range 240.0.0.0/8" in rejection(a_shoot(spec={"networking": {"pods": "240.1.0.0/16"}}))
    own = {"nodes": None, "services": None, "pods": "fd00:1::/64", "ipFamilies": ["IPv6"]}
    seed = a_seed(spec={"networks": {"nodes": None, "services": None, "pods": "fd00::/16"}})
    assert "overlap with the seed's pods" in rejection(a_shoot(spec={"networking": own}), seed)


def test_a_default_range_that_overlaps_is_refused_too() -> None:
    seed = a_seed(spec={"networks": {"shootDefaults": {"pods": "10.241.0.0/16"}}})
    assert "overlap with the seed's pods" in rejection(a_shoot(spec={"networking": {"pods": None}}), seed)
    assert is_admitted(a_shoot(spec={"networking": {"pods": None}, "provider": {"workers": []}}), seed)


def test_a_domain_below_a_default_domain_is_the_one_that_the_shoot_would_get() -> None:
    seed = a_seed(spec={"dns": {"defaults": [{"domain": "example.com"}]}})
    assert is_admitted(a_shoot(spec={"dns": {"domain": "apollo.dev.example.com"}}), seed)
    assert is_admitted(a_shoot(spec={"dns": {"domain": "own.example.org"}}), seed)
    assert "must be apollo.dev.example.com" in rejection(a_shoot(spec={"dns": {"domain": "x.example.com"}}), seed)


def test_a_full_seed_is_refused_where_its_usage_is_known() -> None:
    assert "maximum number of shoots scheduled on it (2)" in rejection(seed=a_seed(shoots="1500m"), usage=2)
    admit_binding(
        a_shoot(), a_seed(shoots="1500m"), project=a_project(), profile_spec=a_cloudprofile()["spec"], usage=1
    )


def move_rejection(shoot: Document | None = None, **target: Any) -> str:
    """Why a shoot on a seed with a backup cannot move to another one, which has one too unless it is said."""
    source = a_seed("old", spec={"backup": {"provider": "aws"}})
    seed = merged(a_seed("new", spec={"backup": {"provider": "aws"}}), target)
    with pytest.raises(Forbidden) as rejected:
        admit_migration(shoot or a_shoot(), source, seed, project=a_project(), profile_spec=a_cloudprofile()["spec"])
    return rejected.value.message


def test_a_placed_shoot_moves_by_the_rules_of_a_bind_and_those_of_a_move() -> None:
    zonal = a_shoot(spec={"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}})
    assert "it has 1 zones" in move_rejection(zonal, spec={"provider": {"zones": ["x"]}})
    message = move_rejection(
        spec={"taints": [{"key": "special"}], "backup": None, "networks": {"pods": "100.96.0.0/16"}}
    )
    assert message.startswith("seed new cannot take the shoot over: ")
    for reason in ("taints (special)", "no spec.backup", "overlap with the seed's pods"):
        assert reason in message
    assert "being deleted" in move_rejection(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert "marked for removal" in move_rejection(metadata={"annotations": {REMOVAL_ANNOTATION: "garden/set"}})
    assert "access restrictions eu" in move_rejection(a_shoot(spec={"accessRestrictions": [{"name": "eu"}]}))


def test_the_profile_decides_about_a_move_too() -> None:
    selector = {"seedSelector": {"matchLabels": {"tier": "gold"}}}
    seeds = [a_seed(name, spec={"backup": {}}) for name in ("old", "new")]
    with pytest.raises(Forbidden, match="cloud profile"):
        admit_migration(a_shoot(), *seeds, project=a_project(), profile_spec=a_cloudprofile(spec=selector)["spec"])
    with pytest.raises(Forbidden, match="no Project"):
        admit_migration(a_shoot(), *seeds, project=None, profile_spec=a_cloudprofile()["spec"])
    admit_migration(a_shoot(), *seeds, project=a_project(), profile_spec=a_cloudprofile()["spec"])
    admit_migration(a_shoot(), None, seeds[1], project=a_project(), profile_spec=a_cloudprofile()["spec"])
