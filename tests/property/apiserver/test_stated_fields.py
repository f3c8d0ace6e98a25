"""What a manifest states is stored, rejected, or named in a warning: nothing replaces it in silence."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.replaced_fields import replaced_fields
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fields.kinds import kind_shape, kinds_with_shape
from gardenbus.common.api.kinds import resolve
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.fuzz.corpus import value_of
from tests.support.builders import (
    a_cloudprofile,
    a_managed_seed,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
)
from tests.support.related import related_of

SET_HERE = {
    "Project": ("spec.createdBy",),
    "Bastion": ("spec.seedName", "spec.providerType"),
    "CertificateSigningRequest": ("spec.username", "spec.groups", "spec.uid", "spec.extra"),
}
"""Fields that Gardener sets whatever a manifest says; the sender is told so. Labels that it keeps come on top."""

EXPOSURE_CLASS: Document = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "ExposureClass",
    "metadata": {"name": "internet"},
    "handler": "internet",
    "scheduling": {"seedSelector": {"matchLabels": {"open": "true"}}, "tolerations": [{"key": "open"}]},
}
RELATED = related_of(
    a_project(),
    a_cloudprofile(),
    a_seed(spec={"dns": {"defaults": [{"domain": "shoots.example.org", "type": "aws-route53"}]}}),
    EXPOSURE_CLASS,
    a_shoot(metadata={"uid": "5e71"}, spec={"seedName": "aws-eu1"}),
    a_shoot("aws-eu1", "garden", spec={"seedName": "aws-eu1", "dns": {"domain": "a.example.org"}}),
)
BASES: tuple[Document, ...] = (
    a_shoot(),
    a_shoot(spec={"seedName": "aws-eu1", "exposureClassName": "internet", "dns": {"providers": [{"type": "aws"}]}}),
    a_seed(),
    a_project(),
    a_managed_seed(),
    a_namespaced_cloudprofile(),
    {
        "apiVersion": "operations.gardener.cloud/v1alpha1",
        "kind": "Bastion",
        "metadata": {"name": "one", "namespace": "garden-dev"},
        "spec": {"shootRef": {"name": "apollo"}},
    },
)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """All values at the ends of a document, which are not open."""
    if isinstance(value, dict):
        for name, part in cast("Document", value).items():
            yield from leaves(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(cast("list[Any]", value)):
            yield from leaves(part, (*path, index))
    elif value not in (None, ""):
        yield path, value


def overlaid(base: Any, drawn: Any) -> Any:
    """A base with what was drawn where it states nothing."""
    whole: Any = drawn if base is None else base
    if not isinstance(base, dict) or not isinstance(drawn, dict):
        return whole
    ours, others = cast("Document", base), cast("Document", drawn)
    return {name: overlaid(ours.get(name), others.get(name)) for name in {**others, **ours}}


def a_manifest(api_version: str, kind: str, chance: random.Random) -> Document:
    shape = kind_shape(api_version, kind)
    assert shape is not None
    drawn: Document = {name: part for name, part in value_of(shape, chance, 6).items() if name != "status"}
    namespace = {} if resolve(api_version, kind).namespaced is False else {"namespace": "garden-dev"}
    bases = [each for each in BASES if each["kind"] == kind]
    if bases and chance.random() < 0.8:
        return overlaid(deepcopy(chance.choice(bases)), drawn)
    return {**drawn, "apiVersion": api_version, "kind": kind, "metadata": {"name": "one", **namespace}}


@pytest.mark.parametrize(("api_version", "kind"), kinds_with_shape())
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_stated_field_is_kept_rejected_or_named_in_a_warning(api_version: str, kind: str, seed: int) -> None:
    chance = random.Random(seed)
    manifest = a_manifest(api_version, kind, chance)
    if (places := [path for path, _ in leaves(manifest) if path[0] == "spec" and len(path) > 2]) and seed % 2:
        place = chance.choice(places)
        holder: Any = manifest
        for name in place[: (depth := chance.randrange(1, len(place)))]:
            holder = holder[name]
        holder[place[depth]] = chance.choice(["x", 7, True, ["x"]])
    manifest["metadata"].setdefault("labels", {})["name.seed.gardener.cloud/another"] = "true"
    before = deepcopy(manifest)
    stored_ones = [None, *(each for each in BASES if each["kind"] == kind)]
    try:
        mutated = Admission().mutate(manifest, deepcopy(chance.choice(stored_ones)), RELATED, user="ann")
    except (Forbidden, InvalidResource):
        return

    assert manifest == before
    lost = list(replaced_fields(before, mutated.document))
    for each in lost:
        assert each.path.startswith((*SET_HERE.get(kind, ()), "metadata.labels[")), each
        assert each.warning in mutated.warnings
    named = {each.path.partition(".")[0] for each in lost}
    stored = {value if isinstance(value, str) else msgspec.json.encode(value) for _, value in leaves(mutated.document)}
    for path, value in leaves(before):  # told another way: where nothing is named, each value is there somewhere
        if path[0] not in named and path[0] != "status" and path[:2] != ("metadata", "annotations"):
            text = value if isinstance(value, str) else msgspec.json.encode(value)
            completed = isinstance(value, str) and any(
                isinstance(one, str) and one.startswith(f"{value.removeprefix('v')}.") for one in stored
            )
            assert text in stored or completed, path


def test_a_bastion_or_project_that_states_what_is_set_here_is_told_so() -> None:
    bastion = deepcopy(BASES[-1])
    bastion["spec"]["seedName"] = "another"
    project = a_project(spec={"createdBy": {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}})

    warnings = Admission().mutate(bastion, None, RELATED, user="ann").warnings
    assert "spec.seedName is ignored: it is set here, to 'aws-eu1'" in warnings
    mutated = Admission().mutate(project, None, RELATED, user="ann")
    assert section(mutated.document, "spec", "createdBy")["name"] == "ann"
    assert "spec.createdBy.name is ignored: it is set here, to 'ann'" in mutated.warnings
