"""Roles and requests: who may do what, from a table that is written by hand and not from the rules of the code."""

from typing import Any, NamedTuple

import pytest

from gardenbus.common.api.document import Document
from tests.support.authorized_apiserver import AuthorizedApiserver, a_secret, two_projects
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

LABEL = {"metadata": {"labels": {"a": "b"}}}


def a_configmap(name: str, namespace: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


class Attempt(NamedTuple):
    """A request, below `garden.as.<user>.api.`; it is allowed unless its code is 403."""

    tail: str
    body: Any = b""


def _in_project(namespace: str, shoot: str, cloud: str, project: str, seed: str) -> dict[str, Attempt]:
    """Requests about a Project and its namespace. What would be deleted is not there: that is asked afterwards."""
    binding = {"namespace": namespace, "name": shoot, "seed": seed}
    return {
        "get shoot": Attempt(f"get.shoot.{namespace}.{shoot}"),
        "list shoots": Attempt(f"list.shoot.{namespace}"),
        "create shoot": Attempt("apply", a_shoot("another", namespace)),
        "patch shoot": Attempt(f"patch.shoot.{namespace}.{shoot}", LABEL),
        "delete shoot": Attempt(f"delete.shoot.{namespace}.ghost"),
        "bind shoot": Attempt("bind", binding),
        "get secret": Attempt(f"get.secret.{namespace}.{cloud}"),
        "list secrets": Attempt(f"list.secret.{namespace}"),
        "create secret": Attempt("apply", a_secret("another", namespace)),
        "patch secret": Attempt(f"patch.secret.{namespace}.{cloud}", LABEL),
        "delete secret": Attempt(f"delete.secret.{namespace}.ghost"),
        "get configmap": Attempt(f"get.configmap.{namespace}.notes"),
        "create configmap": Attempt("apply", a_configmap("another", namespace)),
        "get internalsecret": Attempt(f"get.internalsecret.{namespace}.ghost"),
        "get shootstate": Attempt(f"get.shootstate.{namespace}.ghost"),
        "get project": Attempt(f"get.project._.{project}"),
        "patch project": Attempt(f"patch.project._.{project}", {"spec": {"description": "another"}}),
        "patch members": Attempt(
            f"patch.project._.{project}",
            {"spec": {"members": [{"kind": "User", "name": "ivy", "role": "viewer"}]}},
        ),
    }


OWN = _in_project("garden-dev", "apollo", "dev-cloud", "dev", "aws")
OTHERS = {
    f"other {name}": each for name, each in _in_project("garden-prod", "zeus", "prod-cloud", "prod", "gcp").items()
}
LANDSCAPE = {
    "list all shoots": Attempt("list.shoot"),
    "list all secrets": Attempt("list.secret"),
    "get seed": Attempt("get.seed._.aws"),
    "patch seed": Attempt("patch.seed._.aws", LABEL),
    "create seed": Attempt("apply", a_seed("another")),
    "delete seed": Attempt("delete.seed._.ghost"),
    "get cloudprofile": Attempt("get.cloudprofile._.aws"),
    "create cloudprofile": Attempt("apply", a_cloudprofile("another")),
    "create project": Attempt("apply", a_project("another", "garden-another")),
    "get roles": Attempt("get.configmap.garden.landscape-roles"),
    "give roles": Attempt("patch.configmap.garden.landscape-roles", {"data": {"zoe": "viewer"}}),
    "create secret in garden": Attempt("apply", a_secret("another", "garden")),
    "create token": Attempt("token.create", {"seed": "aws"}),
    "approve csr": Attempt("csr.approve", {"name": "ghost"}),
    "get csr": Attempt("csr.get", {"name": "ghost"}),
    "census": Attempt("census"),
    "whoami": Attempt("whoami"),
}
ATTEMPTS = {**OWN, **OTHERS, **LANDSCAPE}

REQUESTS = {"get csr", "whoami"}
EVERYBODY = REQUESTS | {"get seed", "get cloudprofile"}
VIEWER = EVERYBODY | {"get shoot", "list shoots", "get configmap", "get project"}
WRITES = {f"{verb} {kind}" for verb in ("create", "patch", "delete") for kind in ("shoot", "secret")}
MEMBER = VIEWER | WRITES | {"get secret", "list secrets", "create configmap", "patch project"}
SCHEDULED = {"get shoot", "list shoots", "get project"}
READS = {"get shoot", "list shoots", "get configmap", "get project"}

TABLE: dict[str, set[str]] = {
    "carl": EVERYBODY,
    "vera": VIEWER,
    "adam": MEMBER,
    "otto": MEMBER | {"patch members"},
    "uma": EVERYBODY | {"get project", "patch project", "patch members"},
    "eve": EVERYBODY | READS | {f"other {each}" for each in READS} | {"list all shoots", "get roles", "census"},
    "root": set(ATTEMPTS),
    "seed:aws": EVERYBODY | {"get shoot", "get secret", "get project", "patch seed", "patch shoot"},
    "seed:gcp": EVERYBODY | {f"other {each}" for each in ("get shoot", "get secret", "get project", "patch shoot")},
    "member:paris": EVERYBODY,
    "scheduler:mine": EVERYBODY | SCHEDULED | {f"other {each}" for each in SCHEDULED} | {"list all shoots"},
    "extension:aws": set(),
    "plugin:carbon": set(),
    "bootstrap:4f2a91": {"get csr", "whoami"},
}
"""A user of each role, and what they may; everything else of `ATTEMPTS` is refused."""


async def _a_landscape() -> AuthorizedApiserver:
    landscape = await two_projects()
    await landscape.create([a_configmap("notes", namespace) for namespace in ("garden-dev", "garden-prod")])
    return landscape


@pytest.mark.parametrize("user", TABLE)
async def test_a_role_may_what_its_row_says_and_nothing_else(user: str) -> None:
    landscape = await _a_landscape()
    codes = {name: await landscape.code(user, attempt.tail, attempt.body) for name, attempt in ATTEMPTS.items()}
    allowed = {name for name, code in codes.items() if code != 403}
    assert (allowed - TABLE[user], TABLE[user] - allowed) == (set(), set())
    assert not [name for name in allowed if codes[name] >= 500], codes
