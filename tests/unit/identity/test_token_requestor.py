"""Secrets that ask for credentials get them, renewed in time, and nobody's whom they may not name."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.issued_credentials import has_password, read_credentials
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.identity.roles import landscape_roles
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict
from gardenbus.identity.controllers.token_requestor import REJECTED_SECONDS, TokenRequestorController
from gardenbus.identity.domain.token_requests import BUNDLE_PERIOD
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.signing import START

KEY = ObjectKey("secret", "garden", "anns")
DURATION = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
RENEW = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
ACCOUNT = "serviceaccount.resources.gardener.cloud/"
BUNDLE = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
KUBECONFIG: Document = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "one",
    "contexts": [{"name": "one", "context": {"cluster": "lab", "user": "here"}}],
    "clusters": [{"name": "lab", "cluster": {"server": "tls://nats.example.com:4222"}}],
    "users": [{"name": "there", "user": {"token": "another's"}}, {"name": "here", "user": {}}],
}


class Requesting:
    """The controller on a store in memory."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.store = MemoryStore(self.clock)
        self.revoked = Revocations()
        self.authorities = "those of this year"
        self.controller = TokenRequestorController(
            self.store, self.clock, lambda: self.revoked, lambda: self.authorities
        )

    async def query(self, content: Document | None = None, /, **annotations: str) -> float | None:
        metadata = {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "labels": {"resources.gardener.cloud/purpose": "token-requestor"},
            "annotations": annotations,
        }
        await self.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **(content or {})})
        return await self.controller.reconcile(KEY)

    async def secret(self) -> Document:
        stored = await self.store.get(KEY)
        assert stored is not None
        return stored.document()

    async def token(self) -> Any:
        return json.loads(base64.b64decode((await self.secret())["data"]["token"]))

    async def bundle(self) -> str | None:
        encoded = (await self.secret())["data"].get("bundle.crt")
        return None if encoded is None else base64.b64decode(encoded).decode()

    async def checked(self) -> list[ObjectKey]:
        """The Secrets that credentials are checked with."""
        page = await self.store.list_page("secret", "garden")
        return [each.key for each in page.objects if each.key != KEY]

    async def lets_in(self, password: str) -> bool:
        found = [await self.store.get(key) for key in await self.checked()]
        return any(has_password(read_credentials(each.encoded()), password) for each in found if each is not None)


@pytest.fixture
def requesting() -> Requesting:
    """A landscape without servers."""
    return Requesting()


@pytest.mark.parametrize(
    ("duration", "expires", "renewed"),
    [(None, 12.0, 9.6), ("10h", 10.0, 8.0), ("30h", 30.0, 24.0), ("720h", 720.0, 24.0)],
)
async def test_credentials_are_renewed_at_four_fifths_or_after_a_day(
    requesting: Requesting, duration: str | None, expires: float, renewed: float
) -> None:
    given = {DURATION: duration} if duration else {}
    after = await requesting.query(**{"gardenbus.io/user": "ann"}, **given)
    assert after == pytest.approx(renewed * 3600)
    first = await requesting.token()
    assert first["user"] == "ann"
    assert first["expires"] == (START + timedelta(hours=expires)).isoformat().replace("+00:00", "Z")
    requesting.clock.advance(renewed * 3600 - 1)
    assert await requesting.controller.reconcile(KEY) == pytest.approx(1)
    assert await requesting.token() == first
    requesting.clock.advance(1)
    await requesting.controller.reconcile(KEY)
    second = await requesting.token()
    assert second["password"] != first["password"]
    assert await requesting.lets_in(first["password"])
    assert await requesting.lets_in(second["password"])


async def test_old_credentials_are_removed_at_their_own_end(requesting: Requesting) -> None:
    await requesting.query(**{"gardenbus.io/user": "scheduler:mine"})
    (first,) = await requesting.checked()
    assert await requesting.controller.reconcile(first) == pytest.approx(12 * 3600)
    requesting.clock.advance(12 * 3600)
    await requesting.controller.reconcile(KEY)
    await requesting.controller.reconcile(first)
    (second,) = await requesting.checked()
    assert second != first


@pytest.mark.parametrize("broken", ["kubeconfig", "duration"])
async def test_a_request_that_cannot_be_read_any_more_ends_no_credentials(requesting: Requesting, broken: str) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    (issued,) = await requesting.checked()
    stored = await requesting.store.get(KEY)
    assert stored is not None
    document = stored.document()
    if broken == "kubeconfig":
        document["data"]["kubeconfig"] = base64.b64encode(b"current-context: nothing").decode()
    else:
        document["metadata"]["annotations"][DURATION] = "for ever"
    await requesting.store.update(stored, document)
    await requesting.controller.reconcile(issued)
    assert await requesting.checked() == [issued]


@pytest.mark.parametrize(
    "user", ["operator", "seed:aws-cork", "member:paris", "bootstrap:4f2a91", "apiserver", "identity", "", "Not A Name"]
)
async def test_identities_that_may_not_be_requested_get_nothing(requesting: Requesting, user: str) -> None:
    assert await requesting.query(**{"gardenbus.io/user": user}) is None
    assert "data" not in await requesting.secret()
    assert not await requesting.checked()


async def test_a_user_who_is_an_operator_cannot_be_requested(requesting: Requesting) -> None:
    await requesting.store.create(landscape_roles({"ann": "operator"}))
    assert await requesting.query(**{"gardenbus.io/user": "ann"}) == REJECTED_SECONDS
    assert "data" not in await requesting.secret()


async def test_a_service_account_is_named_as_in_gardeners_manifests(requesting: Requesting) -> None:
    await requesting.query(**{f"{ACCOUNT}name": "robot", f"{ACCOUNT}namespace": "garden-dev"})
    assert (await requesting.token())["user"] == "system:serviceaccount:garden-dev:robot"


async def test_a_service_account_without_its_namespace_gets_nothing(requesting: Requesting) -> None:
    assert await requesting.query(**{f"{ACCOUNT}name": "robot"}) is None
    assert not await requesting.checked()


@pytest.mark.parametrize("field", ["data", "stringData"])
async def test_a_kubeconfig_gets_the_token_of_its_current_user_and_the_authorities(
    requesting: Requesting, field: str
) -> None:
    text = yaml.safe_dump(KUBECONFIG)
    given = base64.b64encode(text.encode()).decode() if field == "data" else text
    await requesting.query({field: {"kubeconfig": given}}, **{"gardenbus.io/user": "ann", BUNDLE: "true"})
    secret = await requesting.secret()
    assert set(secret["data"]) == {"kubeconfig"}
    assert "stringData" not in secret
    written = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    (other, own) = written["users"]
    assert other == KUBECONFIG["users"][0]
    login = json.loads(own["user"].pop("token"))
    assert login["user"] == "ann"
    assert await requesting.lets_in(login["password"])
    data = written["clusters"][0]["cluster"].pop("certificate-authority-data")
    assert base64.b64decode(data).decode() == requesting.authorities
    assert written == KUBECONFIG
    assert await requesting.controller.reconcile(KEY) == BUNDLE_PERIOD.total_seconds()
    assert await requesting.secret() == secret


@pytest.mark.parametrize(
    ("kubeconfig", "reason"),
    [
        ("a: [", "data.kubeconfig: "),
        ("- 1", "one YAML map"),
        ("{}", "current-context names None"),
        (yaml.safe_dump(KUBECONFIG | {"users": []}), "the current context's user names 'here'"),
        (yaml.safe_dump(KUBECONFIG | {"clusters": [7]}), "the current context's cluster names 'lab'"),
    ],
)
async def test_what_is_no_kubeconfig_is_left_alone_and_said_so(
    requesting: Requesting, kubeconfig: str, reason: str
) -> None:
    data = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
    with capture_logs() as logs:
        assert await requesting.query({"data": data}, **{"gardenbus.io/user": "ann"}) is None
    assert reason in logs[0]["reason"]
    assert (await requesting.secret())["data"] == data
    assert not await requesting.checked()


async def test_authorities_are_written_when_they_are_asked_for_and_again_when_they_are_others(
    requesting: Requesting,
) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann", BUNDLE: "true"})
    assert await requesting.bundle() == "those of this year"
    requesting.authorities = "those of next year"
    requesting.clock.advance(BUNDLE_PERIOD.total_seconds() - 1)
    await requesting.controller.reconcile(KEY)
    assert await requesting.bundle() == "those of this year"
    requesting.clock.advance(1)
    await requesting.controller.reconcile(KEY)
    assert await requesting.bundle() == "those of next year"
    stored = await requesting.store.get(KEY)
    assert stored is not None
    document = stored.document()
    del document["metadata"]["annotations"][BUNDLE], document["metadata"]["annotations"][RENEW]
    await requesting.store.update(stored, document)
    await requesting.controller.reconcile(KEY)
    assert await requesting.bundle() is None


@pytest.mark.parametrize("duration", ["1m", "721h", "soon", "-1h"])
async def test_a_life_that_cannot_be_is_rejected(requesting: Requesting, duration: str) -> None:
    assert await requesting.query(**{"gardenbus.io/user": "ann", DURATION: duration}) is None
    assert not await requesting.checked()


async def test_who_was_revoked_is_not_renewed(requesting: Requesting) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    first = await requesting.token()
    requesting.clock.advance(3600)
    requesting.revoked = Revocations({"ann": requesting.clock.now()})
    requesting.clock.advance(10 * 3600)
    assert await requesting.controller.reconcile(KEY) == REJECTED_SECONDS
    assert await requesting.token() == first


@pytest.mark.parametrize("change", ["gone", "label", "user"])
async def test_what_nobody_requests_any_more_is_removed(requesting: Requesting, change: str) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    (issued,) = await requesting.checked()
    stored = await requesting.store.get(KEY)
    assert stored is not None
    document = stored.document()
    if change == "gone":
        await requesting.store.delete(stored)
    else:
        if change == "label":
            document["metadata"]["labels"] = {}
        else:
            document["metadata"]["annotations"]["gardenbus.io/user"] = "ben"
        await requesting.store.update(stored, document)
    await requesting.controller.reconcile(issued)
    assert not await requesting.checked()


async def test_a_slower_replica_leaves_nothing_behind(requesting: Requesting, monkeypatch: pytest.MonkeyPatch) -> None:
    before = requesting.store.update

    async def changed_meanwhile(base: Any, document: Document) -> Any:
        await before(base, {**document, "metadata": {**document["metadata"], "labels": {}}})
        return await before(base, document)

    monkeypatch.setattr(requesting.store, "update", changed_meanwhile)
    with pytest.raises(Conflict):
        await requesting.query(**{"gardenbus.io/user": "ann"})
    assert not await requesting.checked()


async def test_a_replica_that_died_in_between_is_made_up_for(requesting: Requesting) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    (key,) = await requesting.checked()
    issued = await requesting.store.get(key)
    assert issued is not None
    await requesting.store.delete(issued)
    first = await requesting.token()
    await requesting.controller.reconcile(KEY)
    assert await requesting.token() == first
    assert await requesting.lets_in(first["password"])


@pytest.mark.parametrize("token", ["", "?", "e30=", "W10=", "eyJ1c2VyIjog", "bnVsbA=="])
async def test_a_token_that_cannot_be_read_is_written_anew(requesting: Requesting, token: str) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    stored = await requesting.store.get(KEY)
    assert stored is not None
    await requesting.store.update(stored, {**stored.document(), "data": {"token": token, "other": "eA=="}})
    await requesting.controller.reconcile(KEY)
    assert (await requesting.token())["user"] == "ann"
    assert (await requesting.secret())["data"]["other"] == "eA=="


async def test_removing_the_time_of_renewal_renews(requesting: Requesting) -> None:
    await requesting.query(**{"gardenbus.io/user": "ann"})
    first = await requesting.token()
    stored = await requesting.store.get(KEY)
    assert stored is not None
    document = stored.document()
    del document["metadata"]["annotations"][RENEW]
    await requesting.store.update(stored, document)
    await requesting.controller.reconcile(KEY)
    assert (await requesting.token())["password"] != first["password"]
