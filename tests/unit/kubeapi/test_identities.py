"""People whom an OpenID Connect provider names, and those as whom an operator sends requests."""

import json
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from joserfc.jwk import ECKey, OctKey

from gardenbus.common.api.identity.roles import landscape_roles
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.kubeapi.access.id_tokens import IdTokenIssuer, IdTokens, provider_reader
from tests.support.builders import a_project
from tests.support.kube_apis import KubeApi, a_kube_api
from tests.support.oidc_provider import CLIENT, OidcProvider, running_provider

MAPS = "/api/v1/namespaces/garden-dev/configmaps"
PROJECTS = "/apis/core.gardener.cloud/v1beta1/projects"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class WithProvider:
    """A Kubernetes API, and the provider whose tokens it takes."""

    def __init__(self, kube: KubeApi, provider: OidcProvider) -> None:
        self.kube = kube
        self.provider = provider

    async def as_named(self, method: str, path: str, token: str = "", **options: Any) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {token or self.provider.id_token()}"}
        async with self.kube.request(method, path, user="", headers=headers, **options) as response:
            return response.status, await response.json()

    async def user_info(self) -> dict[str, Any]:
        code, review = await self.as_named("POST", REVIEW, json={})
        assert code == 201, review
        return review["status"]["userInfo"]


@pytest.fixture
async def api() -> AsyncGenerator[WithProvider]:
    clock = SystemClock()
    async with running_provider() as provider, aiohttp.ClientSession() as session:
        provider.now = int(clock.now().timestamp())
        provider.claims["groups"] = ["builders", "system:masters", "gardener.cloud:system:seeds", "ops"]
        issuer = IdTokenIssuer(provider.issuer, CLIENT, "email", "groups")
        tokens = IdTokens(issuer, provider_reader(session, ""), clock)
        async with a_kube_api(named_by=tokens.named) as kube:
            for path, document in (
                (
                    "/apis/core.gardener.cloud/v1beta1/projects",
                    a_project("dev", "garden-dev", spec={"members": [BUILDERS]}),
                ),
                ("/api/v1/namespaces/garden/configmaps", landscape_roles({"olga": "operator", "group:ops": "viewer"})),
            ):
                async with kube.request("POST", path, json=document) as response:
                    assert response.status == 201, await response.text()
            yield WithProvider(kube, provider)


BUILDERS = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "builders", "role": "admin"}


async def test_a_token_names_a_person_and_the_groups_that_persons_may_bring(api: WithProvider) -> None:
    info = await api.user_info()
    assert info["username"] == "ann@example.org"
    assert info["groups"] == ["builders", "ops", "system:authenticated"]


async def test_roles_and_projects_name_groups_of_a_provider(api: WithProvider) -> None:
    code, made = await api.as_named("POST", MAPS, json={"metadata": {"name": "one"}})
    assert (code, made["metadata"]["annotations"]["gardener.cloud/created-by"]) == (201, "ann@example.org")
    assert (await api.as_named("GET", "/apis/core.gardener.cloud/v1beta1/shoots"))[0] == 200
    api.provider.claims["groups"] = ["ops"]
    assert (await api.as_named("POST", MAPS, json={"metadata": {"name": "two"}}))[0] == 403
    api.provider.claims["groups"] = "builders"
    assert (await api.as_named("GET", "/apis/core.gardener.cloud/v1beta1/shoots"))[0] == 403


@pytest.mark.parametrize(
    "overrides",
    [
        {"iss": "https://other.example.org"},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"aud": CLIENT, "azp": "another"},
        {"exp": None},
        {"exp": 1},
        {"email": "system:anonymous"},
        {"email": "operator"},
        {"email": "seed:aws-cork"},
        {"email": None},
        {"email_verified": False},
    ],
    ids=str,
)
async def test_a_token_that_does_not_hold_lets_nobody_in(api: WithProvider, overrides: Mapping[str, Any]) -> None:
    api.provider.overrides = dict(overrides)
    code, status = await api.as_named("GET", MAPS)
    assert (code, status["reason"]) == (401, "Unauthorized")


async def test_signatures_of_others_and_of_none_let_nobody_in(api: WithProvider) -> None:
    own = api.provider.id_token()
    for key in (ECKey.generate_key("P-256", {"kid": "one"}), OctKey.import_key("the client's secret, and more")):
        api.provider.signs_with = key
        assert (await api.as_named("GET", MAPS))[0] == 401
    unsigned = f"eyJhbGciOiJub25lIn0.{own.split('.')[1]}."
    for token in (unsigned, own[:-2], "ey.ey.ey", f"{own}."):
        assert (await api.as_named("GET", MAPS, token))[0] == 401


async def test_a_key_that_comes_is_read_and_one_that_is_made_up_does_not_have_it_read_again(
    api: WithProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.user_info()
    monkeypatch.setattr("gardenbus.kubeapi.access.id_tokens.LEAST_SECONDS", 0.0)
    api.provider.key = ECKey.generate_key("P-256", {"kid": "two", "alg": "ES256", "use": "sig"})
    assert (await api.user_info())["username"] == "ann@example.org"
    reads = api.provider.key_reads
    monkeypatch.setattr("gardenbus.kubeapi.access.id_tokens.LEAST_SECONDS", 3600.0)
    api.provider.signs_with = ECKey.generate_key("P-256", {"kid": "three"})
    for _ in range(20):
        assert (await api.as_named("GET", MAPS))[0] == 401
    assert api.provider.key_reads == reads


async def test_a_login_ends_with_its_token(api: WithProvider) -> None:
    logins = api.kube.logins
    user = await logins.by_token(api.provider.id_token())
    assert await logins.is_valid(user)
    assert user.proof is not None
    assert user.proof.expires_at is not None
    ended = user._replace(proof=user.proof._replace(expires_at=user.proof.expires_at - timedelta(hours=1)))
    assert not await logins.is_valid(ended)


# ---------------------------------------------------------------------------------------------- impersonation


async def whoami(api: WithProvider, user: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    async with api.kube.request("POST", REVIEW, user=user, json={}, headers=dict(headers)) as response:
        return response.status, await response.json()


async def test_an_operator_sends_requests_as_somebody_else_with_the_groups_that_are_stated(api: WithProvider) -> None:
    as_bob = {"Impersonate-User": "bob", "Impersonate-Group": "builders"}
    code, review = await whoami(api, "olga", as_bob)
    assert code == 201
    assert review["status"]["userInfo"] == {"username": "bob", "groups": ["builders", "system:authenticated"]}
    async with api.kube.request(
        "POST", MAPS, user="olga", headers=as_bob, json={"metadata": {"name": "a"}}
    ) as response:
        assert (await response.json())["metadata"]["annotations"]["gardener.cloud/created-by"] == "bob"
    for path in ("/api/v1/namespaces/garden/secrets", "/apis/core.gardener.cloud/v1beta1/shoots"):
        async with api.kube.request("GET", path, user="olga", headers=as_bob) as response:
            assert response.status == 403


@pytest.mark.parametrize("user", ["ann", "vera"])
async def test_nobody_else_does(api: WithProvider, user: str) -> None:
    code, status = await whoami(api, user, {"Impersonate-User": "olga"})
    assert (code, status["reason"]) == (403, "Forbidden")
    assert status["message"].endswith(
        f'User "{user}" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-Group": "builders"},
        {"Impersonate-User": "bob", "Impersonate-Uid": "1"},
        {"Impersonate-User": "bob", "Impersonate-Extra-scopes": "a"},
        {"Impersonate-User": "system:serviceaccount:dev"},
        {"Impersonate-User": "bootstrap:x"},
        *({"Impersonate-User": name} for name in ("operator", "controllermanager", "identity", "seed:aws-cork")),
    ],
    ids=str,
)
async def test_headers_that_name_nobody_are_rejected(api: WithProvider, headers: Mapping[str, str]) -> None:
    code, status = await whoami(api, "olga", headers)
    assert (code, status["reason"]) == (400, "BadRequest")


async def test_nothing_is_deleted_nor_a_deletion_confirmed_as_somebody_else(api: WithProvider) -> None:
    as_bob = {"Impersonate-User": "bob", "Impersonate-Group": "builders"}
    one = f"{MAPS}/one"
    confirmed = {"metadata": {"name": "one", "annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
    async with api.kube.request("POST", MAPS, user="olga", headers=as_bob, json={"metadata": {"name": "one"}}) as made:
        assert made.status == 201
    escaped = json.dumps(confirmed).replace("gardener.cloud/", "gardener.cloud\\/").replace("confirm", "\\u0063onfirm")
    assert json.loads(escaped) == confirmed
    headers = {**as_bob, "Content-Type": "application/json"}
    for method, path, body in (
        ("DELETE", one, None),
        ("DELETE", MAPS, None),
        ("PUT", one, json.dumps(confirmed)),
        ("PUT", one, escaped),
    ):
        async with api.kube.request(method, path, user="olga", headers=headers, data=body) as response:
            assert (response.status, "use your own name" in await response.text()) == (403, True)
    async with api.kube.request("DELETE", one, user="olga") as response:
        assert response.status == 200


async def test_keys_that_come_in_parts_are_read_whole(api: WithProvider) -> None:
    api.provider.padding = "x" * 300_000
    assert (await api.user_info())["username"] == "ann@example.org"
