"""Limits on the entries of lists and mappings of a manifest."""

from collections.abc import Callable
from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.entry_limits import (
    FEWER_ENTRIES,
    METADATA_ENTRIES,
    MOST_ENTRIES,
    MOST_VALUES,
    check_entries,
    may_exceed,
)
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import InvalidResource
from tests.support.authorized_apiserver import AuthorizedApiserver, two_projects
from tests.support.valid_manifests import CLOUD_PROFILE, PROJECT, SHOOT, WORKER


def named(number: int) -> list[str]:
    return [f"n{each}" for each in range(number)]


def pools(number: int) -> list[Document]:
    return [{**WORKER, "name": name} for name in named(number)]


def with_spec(document: Document, **spec: Any) -> Document:
    return {**document, "spec": {**document["spec"], **spec}}


def with_pools(number: int) -> Document:
    return with_spec(SHOOT, provider={**SHOOT["spec"]["provider"], "workers": pools(number)})


def members(number: int) -> list[Document]:
    return [{"kind": "User", "name": name, "role": "viewer"} for name in named(number)]


def expressions(number: int) -> Document:
    return {"matchExpressions": [{"key": name, "operator": "Exists"} for name in named(number)]}


CASES: list[tuple[str, int, Callable[[int], Document]]] = [
    ("spec.provider.workers", FEWER_ENTRIES["workers"], with_pools),
    (
        "spec.seedSelector.matchExpressions",
        FEWER_ENTRIES["matchExpressions"],
        lambda number: with_spec(SHOOT, seedSelector=expressions(number)),
    ),
    (
        "spec.seedSelector.matchLabels",
        FEWER_ENTRIES["matchLabels"],
        lambda number: with_spec(SHOOT, seedSelector={"matchLabels": dict.fromkeys(named(number), "a")}),
    ),
    ("spec.members", MOST_ENTRIES, lambda number: with_spec(PROJECT, members=members(number))),
    (
        "spec.provider.workers[0].labels",
        MOST_ENTRIES,
        lambda number: with_spec(
            SHOOT,
            provider={
                **SHOOT["spec"]["provider"],
                "workers": [{**WORKER, "labels": dict.fromkeys(named(number), "a")}],
            },
        ),
    ),
    (
        "spec.machineTypes",
        MOST_ENTRIES,
        lambda number: with_spec(CLOUD_PROFILE, machineTypes=[{"name": name} for name in named(number)]),
    ),
]


@pytest.mark.parametrize(("path", "most", "manifest"), CASES)
def test_a_list_or_mapping_has_so_many_entries_and_no_more(
    path: str, most: int, manifest: Callable[[int], Document]
) -> None:
    check_entries(manifest(most))
    with pytest.raises(InvalidResource) as rejected:
        check_entries(manifest(most + 1))
    problems = {problem.field: problem.message for problem in rejected.value.problems}
    assert problems == {path: f"has {most + 1:,} entries, {most:,} are allowed"}
    assert may_exceed(encode(manifest(most + 1)))


def test_a_manifest_of_usual_length_is_not_walked() -> None:
    pools = [{"name": f"pool-{number}", "zones": ["a", "b", "c"], "minimum": 1, "maximum": 2} for number in range(20)]
    usual = {"kind": "Shoot", "metadata": {"name": "apollo"}, "spec": {"provider": {"workers": pools}}}
    assert not may_exceed(encode(usual))


@pytest.mark.parametrize(("field", "most"), METADATA_ENTRIES.items())
def test_metadata_is_bounded_before_its_texts_are_read(field: str, most: int) -> None:
    owners = [{"apiVersion": "v1", "kind": "Secret", "name": name, "uid": name} for name in named(most + 1)]
    values = {"finalizers": named(most + 1), "ownerReferences": owners}
    value = values.get(field, dict.fromkeys([*named(most), "not valid!"], "a"))
    with pytest.raises(InvalidResource) as rejected:
        key_of({**SHOOT, "metadata": {**SHOOT["metadata"], field: value}})
    assert [problem.field for problem in rejected.value.problems] == [f"metadata.{field}"]
    assert f"{most:,} are allowed" in rejected.value.message


def test_values_are_bounded_together_wherever_they_stand() -> None:
    settings = {f"p{each}": dict.fromkeys(named(100), 1) for each in range(MOST_VALUES // 100)}
    with pytest.raises(InvalidResource, match=r"spec: has more than 16,384 values"):
        check_entries(with_spec(SHOOT, settings=settings))
    check_entries(with_spec(CLOUD_PROFILE, settings=settings))


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "ResourceEnvelope"])
def test_texts_and_bundles_that_are_passed_on_may_have_more(kind: str) -> None:
    check_entries({"kind": kind, "metadata": {"name": "a"}, "data": dict.fromkeys(named(5000), "a")})


def test_a_patch_leaves_what_is_stored_as_long_as_it_is_and_makes_it_no_longer() -> None:
    stored = with_pools(300)
    for left in (300, 250, 1):
        check_entries(with_pools(left), stored)
    check_entries({**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}, stored)
    with pytest.raises(InvalidResource, match=r"spec\.provider\.workers: has 301 entries"):
        check_entries(with_pools(301), stored)


@pytest.fixture
async def apiserver() -> AuthorizedApiserver:
    return await two_projects()


async def rejection(apiserver: AuthorizedApiserver, tail: str, body: object) -> str:
    response = await apiserver.response("adam", tail, body)
    assert not response["ok"]
    assert response["error"]["code"] == 422 or response["error"]["code"] == 400
    return response["error"]["message"]


async def test_requests_beyond_a_limit_are_rejected_with_it(apiserver: AuthorizedApiserver) -> None:
    plain = {"machine": {"type": "m5.large"}, "minimum": 1, "maximum": 1}
    provider = {"type": "aws", "workers": [{"name": name, **plain} for name in named(4000)]}
    document = with_spec(SHOOT, provider=provider)
    document["metadata"] = {"name": "many", "namespace": "garden-dev"}
    small = with_pools(201)
    small["metadata"] = {"name": "many", "namespace": "garden-dev"}
    for body in (document, small, {"apiVersion": "v1", "kind": "List", "items": [small]}):
        assert "200 are allowed" in await rejection(apiserver, "apply", body)
    patch = {"spec": {"provider": {"workers": pools(201)}}}
    assert "200 are allowed" in await rejection(apiserver, "patch.shoot.garden-dev.apollo", patch)


async def test_patches_do_not_add_up_beyond_a_limit(apiserver: AuthorizedApiserver) -> None:
    for part in range(10):
        assert (await labelled(apiserver, part))["ok"]
    response = await labelled(apiserver, 10)
    assert "metadata.labels: has" in response["error"]["message"]


async def labelled(apiserver: AuthorizedApiserver, part: int) -> Document:
    """Response to a patch with 99 labels more."""
    labels = {f"l{part}-{each}": "a" for each in range(99)}
    return await apiserver.response("adam", "patch.shoot.garden-dev.apollo", {"metadata": {"labels": labels}})
