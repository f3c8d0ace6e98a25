"""What becomes of an agent's credentials when the object that it acts for is removed."""

from datetime import timedelta

import pytest

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.identity.bootstrap_tokens import Token, new_token_secret
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.names import service_account
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import REVOCATIONS, revocation
from gardenbus.common.api.identity.signing_requests import new_signing_request, with_certificate
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.agent_credentials import LONGEST_SESSION, AgentCredentials
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.clock import timestamp
from tests.support.builders import a_managed_seed, a_seed
from tests.support.clocks import FakeClock
from tests.support.fleets import a_member_document
from tests.support.memory.store import MemoryStore

CORK = Principal("gardenlet", "aws-cork")
SEED = ObjectKey("seed", "", "aws-cork")
DAY = timedelta(days=1)


class Records:
    """A store with what was issued, and the writer of requests."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.writer = Writer(self.store, self.clock)
        self.credentials = AgentCredentials(self.store, self.clock)

    async def issue(self, user: str, serial: str = "5e71a1") -> None:
        """Record a certificate."""
        ends = timestamp(self.clock.now() + DAY)
        request = new_signing_request(f"csr-{user.replace(':', '-')}-{serial}", b"request")
        await self.store.create(with_certificate(request, b"pem", serial=serial, not_after=ends, user=user))

    async def token(self, bound_to: Principal) -> ObjectKey:
        secret = new_token_secret(
            Token("4f2a91", "0123456789abcdef"), expires=self.clock.now() + DAY, bound_to=bound_to, description=""
        )
        return (await self.stored(secret)).key

    async def issued(self, name: str, principal: Principal) -> ObjectKey:
        secret = credentials_secret(name, principal, self.clock.now() + DAY, password="secret")
        return (await self.stored(secret)).key

    async def stored(self, document: Document) -> StoredObject:
        stored = await self.store.create(document)
        assert isinstance(stored, StoredObject)
        return stored

    async def revoked(self) -> list[str]:
        stored = await self.store.get(REVOCATIONS)
        return sorted(stored.document()["data"]) if stored is not None else []

    async def delete(self, key: ObjectKey) -> None:
        await self.writer.delete(key, ReadCache(self.store, ManifestCache(self.store)), user="ann")


@pytest.fixture
def records() -> Records:
    return Records()


async def test_the_removal_of_a_seed_revokes_what_its_agents_were_issued_and_removes_their_secrets(
    records: Records,
) -> None:
    await records.stored(a_seed("aws-cork"))
    await records.issue("seed:aws-cork")
    gone = [
        await records.token(CORK),
        await records.issued("cork", CORK),
        await records.issued("maker", Principal("extension", "aws-cork")),
    ]
    kept = await records.issued("dublin", Principal("gardenlet", "aws-dublin"))

    await records.delete(SEED)

    assert await records.store.get(SEED) is None
    assert await records.revoked() == ["extension:aws-cork", "seed:aws-cork"]
    assert not any(await records.store.get_many(gone))
    assert await records.store.get(kept) is not None


async def test_what_the_removal_of_a_member_cluster_revokes_is_its_agents(records: Records) -> None:
    status = {"clientCertificateExpirationTimestamp": "2026-04-01T00:00:00Z"}
    await records.stored(a_member_document("paris", status=status))

    await records.delete(ObjectKey("membercluster", "", "paris"))

    assert await records.revoked() == ["member:paris"]


async def test_where_nobody_was_issued_anything_nothing_is_revoked(records: Records) -> None:
    await records.stored(a_seed("aws-cork"))
    await records.issue("seed:aws-dublin")

    await records.delete(SEED)

    assert await records.revoked() == []


async def test_a_seed_that_waits_for_its_gardenlet_keeps_its_credentials_until_the_finalizer_goes(
    records: Records,
) -> None:
    await records.stored(a_seed("aws-cork", metadata={"finalizers": ["gardener"]}))
    await records.issue("seed:aws-cork")
    await records.delete(SEED)
    assert await records.revoked() == []

    reads = ReadCache(records.store, ManifestCache(records.store))
    await records.writer.patch(SEED, {"metadata": {"finalizers": []}}, reads, user="ann")

    assert await records.store.get(SEED) is None
    assert await records.revoked() == ["seed:aws-cork"]


async def test_lines_of_removals_whose_credentials_have_ended_make_room(records: Records) -> None:
    await records.stored(revocation("seed:old", records.clock.now() - 400 * DAY, "removed"))
    before = await records.store.get(REVOCATIONS)
    assert before is not None
    stolen = revocation("ann", records.clock.now() - 400 * DAY, "stolen")["data"]
    await records.store.update(before, {**before.document(), "data": {**before.document()["data"], **stolen}})
    await records.stored(a_seed("aws-cork"))
    await records.issue("seed:aws-cork")

    await records.delete(SEED)

    assert await records.revoked() == ["ann", "seed:aws-cork"]


async def test_a_removed_seed_is_registered_again_by_credentials_of_after_its_removal_alone(records: Records) -> None:
    await records.stored(a_seed("aws-cork"))
    await records.issue("seed:aws-cork")
    await records.delete(SEED)
    with pytest.raises(Forbidden, match="was issued none since"):
        await records.credentials.check_registration(CORK)
    await records.credentials.check_registration(Principal("gardenlet", "aws-dublin"))

    records.clock.advance(2)
    await records.issue("seed:aws-cork", "5e71a2")

    await records.credentials.check_registration(CORK)


async def test_once_each_session_of_before_has_ended_whoever_is_let_in_registers(records: Records) -> None:
    await records.stored(a_seed("aws-cork", status={"clientCertificateExpirationTimestamp": "2026-04-01T00:00:00Z"}))
    await records.delete(SEED)
    with pytest.raises(Forbidden):
        await records.credentials.check_registration(CORK)

    records.clock.advance(LONGEST_SESSION.total_seconds() + 1)

    await records.credentials.check_registration(CORK)


@pytest.mark.parametrize(
    ("revokes", "alive"), [(None, True), ("seed:aws-cork", False), ("5e71a1", False), ("b0b", True)]
)
async def test_a_certificate_lives_until_it_ends_or_is_revoked(
    records: Records, revokes: str | None, *, alive: bool
) -> None:
    status = {"clientCertificateExpirationTimestamp": timestamp(records.clock.now() + DAY)}
    await records.issue("seed:aws-cork")
    if revokes is not None:
        records.clock.advance(5)
        await records.stored(revocation(revokes, records.clock.now(), "stolen"))

    assert await records.credentials.is_certificate_alive(CORK, status) is alive

    records.clock.advance(DAY.total_seconds())
    assert not await records.credentials.is_certificate_alive(CORK, status)


def _requesting_secret(name: str, namespace: str, account: str) -> Document:
    prefix = "serviceaccount.resources.gardener.cloud/"
    metadata = {
        "name": name,
        "namespace": "garden",
        "labels": {"resources.gardener.cloud/purpose": "token-requestor"},
        "annotations": {f"{prefix}namespace": namespace, f"{prefix}name": account},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def test_the_removal_of_a_namespace_ends_the_credentials_of_its_service_accounts_alone(records: Records) -> None:
    await records.stored({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})
    gone = await records.issued("robot", service_account("garden-dev", "robot"))
    request = (await records.stored(_requesting_secret("asked", "garden-dev", "sweeper"))).key
    others = [
        await records.issued("there", service_account("garden-dev-2", "robot")),
        await records.issued("ann", Principal("user", "ann")),
    ]

    await records.delete(ObjectKey("namespace", "", "garden-dev"))

    accounts = ("robot", "sweeper")
    assert await records.revoked() == [f"system:serviceaccount:garden-dev:{name}" for name in accounts]
    assert await records.store.get(gone) is None
    assert all(await records.store.get_many([request, *others]))


async def test_a_removed_service_account_takes_its_credentials_along_and_nobody_elses(records: Records) -> None:
    manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "garden-dev"}}
    account = await records.stored(manifest)
    gone = await records.issued("robot", service_account("garden-dev", "robot"))
    kept = await records.issued("other", service_account("garden-dev", "robot-2"))

    await records.delete(account.key)

    assert await records.revoked() == ["system:serviceaccount:garden-dev:robot"]
    assert await records.store.get(gone) is None
    assert await records.store.get(kept) is not None


async def test_what_a_seed_that_never_came_was_issued_ends_with_its_managed_seed(records: Records) -> None:
    managed_seed = (await records.stored(a_managed_seed("aws-cork"))).key
    token = await records.token(CORK)

    await records.delete(managed_seed)

    assert await records.revoked() == ["seed:aws-cork"]
    assert await records.store.get(token) is None
    with pytest.raises(Forbidden, match="was issued none since"):
        await records.credentials.check_registration(CORK)


async def test_a_seed_that_stays_keeps_its_credentials_when_what_has_its_name_is_removed(records: Records) -> None:
    await records.stored(a_seed("aws-cork"))
    managed_seed = (await records.stored(a_managed_seed("aws-cork"))).key
    token = await records.token(CORK)

    await records.delete(managed_seed)

    assert await records.revoked() == []
    assert await records.store.get(token) is not None
