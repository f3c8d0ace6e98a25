"""Requests for certificates from their creation to their end."""

import base64
from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict
from gardenbus.credentials.certificates import (
    certified_principal,
    new_key,
    new_request,
    read_certificate,
    serial_of,
)
from tests.support.builders import a_managed_seed, a_project, a_seed, a_shoot, merged
from tests.support.signing import START, Signing, reasons

CORK, DUBLIN = Principal("gardenlet", "aws-cork"), Principal("gardenlet", "aws-dublin")
ANN = Principal("user", "ann")


@pytest.fixture
async def signing(tmp_path: Path) -> Signing:
    """A landscape without servers."""
    signing = Signing(tmp_path)
    await signing.start()
    return signing


def bootstrapper(token: str) -> str:
    return f"bootstrap:{token.partition('.')[0]}"


async def test_a_bootstrap_token_brings_a_certificate_of_thirty_days(signing: Signing) -> None:
    token = await signing.token(seed="aws-cork")
    key = new_key()
    request = await signing.query(bootstrapper(token), CORK, key=key)
    assert reasons(request) == {"Approved": "AutoApproved"}
    certificate = read_certificate(base64.b64decode(request["status"]["certificate"]))
    assert certified_principal(certificate, (signing.authority.certificate,), START) == CORK
    assert certificate.not_valid_after_utc == START + timedelta(days=30)
    assert certificate.public_key() == key.public_key()
    assert request["metadata"]["annotations"]["gardenbus.io/serial"] == serial_of(certificate)
    assert (await signing.secret(token[:6]))["spent-by"] == f"csr-1/{request['metadata']['uid']}"


async def test_who_sent_a_request_is_the_servers_to_say(signing: Signing) -> None:
    manifest = new_signing_request("csr-1", new_request(CORK, new_key()))
    manifest["spec"] |= {"username": "seed:aws-cork", "groups": ["gardener.cloud:system:seeds"], "uid": "x"}
    manifest["metadata"]["finalizers"] = ["example.com/for-ever"]
    manifest["status"] = {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "eA=="}
    created = await signing.result("ann", "csr.create", manifest)
    assert (created["spec"]["username"], created["spec"]["groups"]) == (
        "ann",
        ["gardenbus.io:system:users", "system:authenticated"],
    )
    assert "uid" not in created["spec"]
    assert "status" not in created
    assert "finalizers" not in created["metadata"]
    changed = await signing.result("operator", "apply", manifest, is_outside=False)
    assert changed["spec"] == created["spec"]


async def test_a_token_serves_once(signing: Signing) -> None:
    token = await signing.token(seed="aws-cork")
    await signing.query(bootstrapper(token), CORK)
    again = await signing.query(bootstrapper(token), CORK, name="csr-2")
    assert reasons(again) == {"Denied": "TokenUsed"}


async def test_a_request_that_arrives_twice_is_one(signing: Signing) -> None:
    token = await signing.token(seed="aws-cork")
    manifest = new_signing_request("csr-1", new_request(CORK, new_key()))
    first = await signing.result(bootstrapper(token), "csr.create", manifest)
    await signing.decided("csr-1")
    again = await signing.result(bootstrapper(token), "csr.create", manifest)
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert again["status"]["certificate"]


async def test_a_name_that_is_taken_is_not_taken_over(signing: Signing) -> None:
    await signing.result("seed:aws-cork", "csr.create", new_signing_request("csr-1", new_request(CORK, new_key())))
    other = new_signing_request("csr-1", new_request(DUBLIN, new_key()))
    assert (await signing.respond("seed:aws-dublin", "csr.create", other))["error"]["reason"] == "AlreadyExists"


async def test_a_replayed_request_is_denied_and_said_on_the_seed(signing: Signing) -> None:
    await signing.store.create(a_seed("aws-cork"))
    key = new_key()
    await signing.query("seed:aws-cork", CORK, key=key)
    signing.clock.advance(1)
    token = await signing.token(seed="aws-cork")
    replayed = await signing.query(bootstrapper(token), CORK, name="csr-2", key=key)
    assert reasons(replayed) == {"Denied": "Replayed"}
    assert "spent-by" not in await signing.secret(token[:6])
    assert signing.warnings() == [("seed aws-cork", "CertificateReplayed")]


async def test_another_seeds_name_is_denied_said_on_that_seed_and_written_down(
    signing: Signing, capsys: pytest.CaptureFixture[str]
) -> None:
    await signing.store.create(a_seed("aws-dublin"))
    denied = await signing.query("seed:aws-cork", DUBLIN)
    assert reasons(denied) == {"Denied": "NotOwnName"}
    assert denied["status"]["conditions"][0]["message"] == "seed:aws-cork requests a certificate of seed:aws-dublin"
    assert signing.warnings() == [("seed aws-dublin", "CertificateNotOwnName")]
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "certificate.denied" in line]
    assert all(part in line for part in ("seed:aws-cork", "NotOwnName", "csr-1"))
    token = await signing.token(seed="aws-cork")
    assert reasons(await signing.query(bootstrapper(token), DUBLIN, name="csr-2")) == {"Denied": "NotOwnName"}


async def test_a_gardenlet_renews_its_own_with_a_new_key(signing: Signing) -> None:
    key = new_key()
    await signing.query("seed:aws-cork", CORK, key=key)
    signing.clock.advance(60)
    assert reasons(await signing.query("seed:aws-cork", CORK, name="csr-2")) == {"Approved": "AutoApproved"}
    assert reasons(await signing.query("seed:aws-cork", CORK, name="csr-3", key=key)) == {"Denied": "Replayed"}


async def test_a_token_for_any_seed_waits_where_a_certificate_lives(signing: Signing) -> None:
    await signing.query("seed:aws-cork", CORK)
    request = await signing.query(bootstrapper(await signing.token()), CORK, name="csr-2")
    assert not reasons(request)
    approved = await signing.result("operator", "csr.approve", {"name": "csr-2"}, is_outside=False)
    assert reasons(approved) == {"Approved": "ApprovedByOperator"}
    assert (await signing.decided("csr-2"))["status"]["certificate"]


async def test_a_seed_that_says_that_its_certificate_lives_is_believed(signing: Signing) -> None:
    ends = (START + timedelta(days=1)).isoformat()
    await signing.store.create(a_seed("aws-cork", status={"clientCertificateExpirationTimestamp": ends}))
    token = await signing.token()
    assert not reasons(await signing.query(bootstrapper(token), CORK))
    signing.clock.advance(2 * 86_400)
    token = await signing.token()
    assert reasons(await signing.query(bootstrapper(token), CORK, name="csr-2")) == {"Approved": "AutoApproved"}


async def test_what_was_revoked_does_not_live_and_does_not_renew_itself(signing: Signing) -> None:
    await signing.query("seed:aws-cork", CORK)
    signing.clock.advance(60)
    await signing.revoke("seed:aws-cork")
    signing.clock.advance(1)
    assert not reasons(await signing.query("seed:aws-cork", CORK, name="csr-2"))
    request = await signing.query(bootstrapper(await signing.token()), CORK, name="csr-3")
    assert reasons(request) == {"Approved": "AutoApproved"}
    signing.clock.advance(1)
    assert reasons(await signing.query("seed:aws-cork", CORK, name="csr-4")) == {"Approved": "AutoApproved"}


async def test_a_request_that_was_sent_before_a_revocation_gets_no_certificate_after_it(signing: Signing) -> None:
    await signing.query("seed:aws-cork", CORK)
    token = await signing.token()
    await signing.result(bootstrapper(token), "csr.create", new_signing_request("csr-2", new_request(CORK, new_key())))
    await signing.revoke("seed:aws-cork")

    assert reasons(await signing.decided("csr-2")) == {"Denied": "Revoked"}

    signing.clock.advance(1)
    assert reasons(await signing.query(bootstrapper(token), CORK, name="csr-3")) == {"Approved": "AutoApproved"}


async def test_an_expired_token_brings_nothing_and_is_removed(signing: Signing) -> None:
    token = await signing.token(ttlSeconds=60)
    secret = ObjectKey("secret", "kube-system", f"bootstrap-token-{token[:6]}")
    assert await signing.controller.reconcile(secret) == 60
    signing.clock.advance(60)
    assert reasons(await signing.query(bootstrapper(token), CORK)) == {"Denied": "TokenExpired"}
    assert await signing.controller.reconcile(secret) is None
    assert await signing.store.get(secret) is None
    assert reasons(await signing.query(bootstrapper(token), CORK, name="csr-2")) == {"Denied": "TokenInvalid"}


@pytest.mark.parametrize(
    ("requested", "got"), [(60, 60), (3600, 3600), (365 * 86_400, 30 * 86_400), (None, 30 * 86_400)]
)
async def test_a_life_is_what_was_asked_for_within_the_landscapes(
    signing: Signing, requested: int | None, got: int
) -> None:
    request = await signing.query("seed:aws-cork", CORK, seconds=requested)
    certificate = read_certificate(base64.b64decode(request["status"]["certificate"]))
    assert certificate.not_valid_after_utc - START == timedelta(seconds=got)


async def test_requests_are_kept_while_they_say_something(signing: Signing) -> None:
    await signing.query("seed:aws-cork", CORK, seconds=600)
    assert signing.after == 600
    await signing.query("seed:aws-cork", DUBLIN, name="denied")
    assert signing.after == 3600
    await signing.query("ann", ANN, name="waiting")
    assert signing.after == 86_400
    signing.clock.advance(86_400)
    for name in ("csr-1", "denied", "waiting"):
        assert not await signing.decided(name)


async def test_a_person_is_approved_by_an_operator_only(signing: Signing) -> None:
    assert not reasons(await signing.query("ann", ANN))
    for user in ("ann", "seed:aws-cork"):
        rejected = await signing.respond(user, "csr.approve", {"name": "csr-1"})
        assert rejected["error"]["reason"] == "Forbidden"
    await signing.result("operator", "csr.deny", {"name": "csr-1", "message": "who is that?"}, is_outside=False)
    assert (await signing.respond("operator", "csr.approve", {"name": "csr-1"}, is_outside=False))["error"]
    assert reasons(await signing.decided("csr-1")) == {"Denied": "DeniedByOperator"}


async def test_what_is_approved_and_cannot_be_signed_has_failed(signing: Signing) -> None:
    operator = Principal("operator", "operator")
    manifest = new_signing_request("csr-1", new_request(operator, new_key()))
    await signing.result("ann", "csr.create", manifest)
    await signing.result("operator", "csr.approve", {"name": "csr-1"}, is_outside=False)
    assert reasons(await signing.decided("csr-1")) == {"Approved": "ApprovedByOperator", "Failed": "SigningFailed"}


async def test_others_requests_are_not_shown(signing: Signing) -> None:
    await signing.query("seed:aws-cork", CORK)
    assert (await signing.result("seed:aws-cork", "csr.get", {"name": "csr-1"}))["status"]["certificate"]
    for name in ("csr-1", "csr-2"):
        assert (await signing.respond("seed:aws-dublin", "csr.get", {"name": name}))["error"]["reason"] == "NotFound"


async def test_of_two_requests_for_one_token_one_gets_it_where_replicas_decide_at_once(signing: Signing) -> None:
    token = await signing.token(seed="aws-cork")
    for name in ("csr-1", "csr-2"):
        manifest = new_signing_request(name, new_request(CORK, new_key()))
        await signing.result(bootstrapper(token), "csr.create", manifest)
    await signing.observe()
    update = signing.store.update
    slow: list[object] = []

    async def second_first(*arguments: object, **options: object) -> object:
        """Before the first replica spends the token, a second one has done all its work for the other request."""
        if not slow:
            slow.append(arguments)
            await signing.decided("csr-2")
        return await update(*arguments, **options)  # pyright: ignore[reportArgumentType, reportCallIssue]

    signing.store.update = second_first  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(Conflict):
        await signing.decided("csr-1")
    assert reasons(await signing.decided("csr-1")) == {"Denied": "TokenUsed"}
    assert reasons(await signing.decided("csr-2")) == {"Approved": "AutoApproved"}


@pytest.mark.parametrize(("slower", "faster"), [("csr-1", "csr-2"), ("csr-2", "csr-1")])
async def test_of_two_tokens_for_any_seed_one_brings_a_certificate_where_replicas_decide_at_once(
    signing: Signing, slower: str, faster: str
) -> None:
    for name in ("csr-1", "csr-2"):
        manifest = new_signing_request(name, new_request(CORK, new_key()))
        await signing.result(bootstrapper(await signing.token()), "csr.create", manifest)
    await signing.observe()
    update = signing.store.update
    slow: list[object] = []

    async def faster_first(*arguments: object, **options: object) -> object:
        """Before the first replica spends its token, a second one has done all its work for the other request."""
        if not slow:
            slow.append(arguments)
            await signing.decided(faster)
        return await update(*arguments, **options)  # pyright: ignore[reportArgumentType, reportCallIssue]

    signing.store.update = faster_first  # pyright: ignore[reportAttributeAccessIssue]
    await signing.decided(slower)
    signing.store.update = update
    approved = [name for name in ("csr-1", "csr-2") if reasons(await signing.decided(name))]
    assert approved == ["csr-1"]


async def test_who_waits_for_another_token_gets_the_certificate_when_that_one_is_denied(signing: Signing) -> None:
    first, second = await signing.token(), await signing.token()
    for name, token in (("csr-1", first), ("csr-2", second)):
        await signing.result(bootstrapper(token), "csr.create", new_signing_request(name, new_request(CORK, new_key())))
    assert not reasons(await signing.decided("csr-2"))
    assert signing.after is not None
    assert signing.after < 60
    await signing.result("operator", "csr.deny", {"name": "csr-1", "message": "nobody knows it"}, is_outside=False)
    assert reasons(await signing.decided("csr-2")) == {"Approved": "AutoApproved"}


async def test_a_gardenlet_gets_tokens_for_the_seeds_that_it_hosts(signing: Signing) -> None:
    for document in (a_project("garden", "garden"), a_seed("aws-cork"), a_seed("aws-dublin")):
        await signing.store.create(document)
    await signing.store.create(a_shoot("host", "garden", spec={"seedName": "aws-cork"}))
    await signing.store.create(a_managed_seed("child", shoot="host"))
    token = (await signing.result("seed:aws-cork", "token.create", {"seed": "child", "ttlSeconds": 86_400}))["token"]
    data = await signing.secret(token[:6])
    assert (data["bound-to"], data["expiration"]) == ("seed:child", "2026-03-01T13:00:00Z")
    for user, requested in (
        ("seed:aws-dublin", {"seed": "child"}),
        ("seed:aws-cork", {"seed": "aws-dublin"}),
        ("seed:aws-cork", {}),
        ("seed:aws-cork", {"member": "paris"}),
        ("member:paris", {"seed": "child"}),
        ("ann", {"seed": "child"}),
    ):
        assert (await signing.respond(user, "token.create", requested))["error"]["reason"] == "Forbidden", (
            user,
            requested,
        )


async def test_the_account_of_a_managed_seed_has_one_token_and_none_is_for_who_brings_its_own(signing: Signing) -> None:
    for document in (a_project("garden", "garden"), a_seed("aws-cork")):
        await signing.store.create(document)
    for name, bootstrap in (("child", "ServiceAccount"), ("grown", "None")):
        await signing.store.create(a_shoot(name, "garden", spec={"seedName": "aws-cork"}))
        managed = merged(a_managed_seed(name, shoot=name), {"spec": {"gardenlet": {"bootstrap": bootstrap}}})
        await signing.store.create(managed)
    child = Principal("gardenlet", "child")
    first, second = [(await signing.result("seed:aws-cork", "token.create", {"seed": "child"}))["token"] for _ in "12"]
    assert (first[:6], first == second) == (second[:6], False)
    data = await signing.secret(second[:6])
    assert (data["token-secret"], data["bound-to"]) == (second[7:], "seed:child")
    assert data["description"] == "gardenlet-bootstrap-child"
    assert reasons(await signing.query(bootstrapper(second), child)) == {"Approved": "AutoApproved"}
    used = await signing.query(bootstrapper(second), child, name="csr-2")
    assert reasons(used) == {"Denied": "TokenUsed"}
    third = (await signing.result("seed:aws-cork", "token.create", {"seed": "child"}))["token"]
    assert reasons(await signing.query(bootstrapper(third), child, name="csr-3")) == {"Approved": "AutoApproved"}
    error = (await signing.respond("seed:aws-cork", "token.create", {"seed": "grown"}))["error"]
    assert (error["reason"], "brings its own credentials" in error["message"]) == ("Forbidden", True)


async def test_a_gardenlet_gets_no_token_for_a_seed_whose_certificate_lives(signing: Signing) -> None:
    await signing.store.create(a_project("garden", "garden"))
    await signing.store.create(a_seed("aws-cork"))
    await signing.store.create(a_shoot("host", "garden", spec={"seedName": "aws-cork"}))
    await signing.store.create(a_managed_seed("child", shoot="host"))
    ends = (START + timedelta(days=1)).isoformat()
    await signing.store.create(a_seed("child", status={"clientCertificateExpirationTimestamp": ends}))
    requested = {"seed": "child"}
    assert (await signing.respond("seed:aws-cork", "token.create", requested))["error"]["reason"] == "Forbidden"
    signing.clock.advance(2 * 86_400)
    assert await signing.result("seed:aws-cork", "token.create", requested)
