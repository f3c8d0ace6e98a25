"""The whole permission table is walked on a real server: what it grants goes, and whatever else is refused."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.connection import Connection, publish_command
from gardenbus.common.api.identity.accounts import crossings
from gardenbus.common.api.identity.permissions import STREAMS, covers, permissions_of, service_names
from gardenbus.common.api.identity.principals import Principal
from tests.support.identities import SUBJECTS, Guarded, guarded

OUTSIDERS = (
    Principal("gardenlet", "aws-cork"),
    Principal("member-agent", "paris"),
    Principal("user", "ann"),
    Principal("scheduler", "mine"),
    Principal("bootstrap", "4f2a91"),
)
PRINCIPALS = (*(Principal("service", name) for name in service_names()), Principal("operator", "operator"), *OUTSIDERS)

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')


class _Probe(Connection):
    """A connection that remembers what the server refused."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[tuple[str, str]] = set()

    async def _process_err(self, err_msg: str) -> None:
        if found := _VIOLATION.search(err_msg.lower()):
            self.refused.add((found[1], found[2]))
        else:
            await super()._process_err(err_msg)


def _names() -> Sequence[str]:
    return ("aws-cork", "aws-dublin", "member:paris", "member:rome", "mine", "default-scheduler")


def _subjects() -> Sequence[str]:
    """Every family of subjects, with names of ones own and of others."""
    users = ("seed:aws-cork", "seed:aws-dublin", "member:paris", "ann", "root", "scheduler:mine", "bootstrap:4f2a91")
    tails = (
        "apply",
        "delete",
        "api.get.secret.garden.a",
        "api.csr.create",
        "api.whoami",
        "api.bind",
        "api.delete.seed.a",
    )
    families = ("lease", "report", "binding", "view", "scheduler", "changed", "event", "queue", "later")
    endings = ("", ".shoot.dev.a", ".work.fleet-member-paris.a")
    endpoints = (
        *(f"STREAM.{verb}.{stream}" for verb in _STREAM_VERBS for stream in STREAMS),
        *(f"CONSUMER.{verb}.{stream}.{name}" for verb in _CONSUMER_VERBS for stream in STREAMS for name in _CONSUMERS),
        *(
            f"CONSUMER.CREATE.BINDINGS.{consumer}.garden.{family}.{seed}.>"
            for consumer in ("aws-cork", "aws-cork-view", "other")
            for family in ("binding", "view")
            for seed in _SEEDS
        ),
        *(f"DIRECT.GET.{stream}.garden.{family}.{seed}" for stream, family in _KEPT for seed in _SEEDS),
        "INFO",
        "ACCOUNT.PURGE.GARDEN",
    )
    return tuple(
        dict.fromkeys(
            (
                *("garden.apply", "garden.delete", "garden.rejected", "garden.lease._canary"),
                *(f"garden.{tail}" for tail in tails),
                *(f"garden.as.{user}.{tail}" for user in users for tail in tails),
                *(f"garden.{family}.{name}{ending}" for family in families for name in _names() for ending in endings),
                *(f"{api}.{endpoint}" for api in ("$JS.API", "IN.API") for endpoint in endpoints),
                *(f"$JS.ACK.{stream}.{consumer}.1.1.1.1.0" for stream in STREAMS for consumer in _CONSUMERS),
                *(f"_INBOX.{who.token}.x" for who in PRINCIPALS),
                "$SYS.REQ.SERVER.PING",
                "$SYS.REQ.USER.AUTH",
                "_R_.x",
            )
        )
    )


_STREAM_VERBS = ("INFO", "CREATE", "UPDATE", "DELETE", "PURGE", "MSG.GET", "MSG.DELETE", "SNAPSHOT", "RESTORE")
_CONSUMER_VERBS = ("CREATE", "DURABLE.CREATE", "INFO", "MSG.NEXT", "DELETE", "NAMES", "PAUSE")
_CONSUMERS = ("aws-cork", "aws-cork-view", "aws-dublin", "member-paris", "apiserver", "scheduling-mine", "follower-1")
_SEEDS = ("aws-cork", "aws-dublin")
_KEPT = (("BINDINGS", "binding"), ("BINDINGS", "view"), ("LEASES", "lease"))


async def test_everybody_gets_their_row_and_nothing_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        wrong = {who.user: found for who in PRINCIPALS if (found := await _wrong(landscape, who))}
    assert not wrong


async def _wrong(landscape: Guarded, principal: Principal) -> Sequence[str]:
    """What the server allows a principal, or refuses it, unlike the table."""
    probe = _Probe()
    await probe.open(
        landscape.server.url, "probe", credentials=landscape.credentials(principal), on_reconnect=lambda: None
    )
    granted, probed = permissions_of(principal, SUBJECTS), _subjects()
    await probe.send([publish_command(subject, b"") for subject in probed])
    if principal.account == "GARDEN":
        for subject in probed:
            await probe.listen(subject, lambda _: None)
    else:  # they may have few subscriptions: each ends at once
        for subject in probed:
            await probe.stop_listening([await probe.listen(subject, lambda _: None)])
    await probe.flush_fully()
    await probe.close()
    return [
        f"{verb} {subject}: {'refused' if is_granted else 'allowed'}"
        for verb, allowed in (("publish", granted.publish), ("subscription", granted.subscribe))
        for subject in probed
        if (is_granted := covers(allowed, subject)) == ((verb, subject.lower()) in probe.refused)
    ]


def test_nothing_crosses_between_the_accounts_that_no_row_grants() -> None:
    rows = [permissions_of(who, SUBJECTS) for who in OUTSIDERS]
    for crossing in crossings(SUBJECTS):
        local = crossing.local or crossing.subject
        beginning = local.split("*", maxsplit=1)[0].split(">", maxsplit=1)[0]
        subjects = [each for row in rows for each in (row.publish if crossing.inward else row.subscribe)]
        assert any(each.startswith(beginning) for each in subjects), f"nobody uses {local}"


@pytest.mark.parametrize("principal", OUTSIDERS, ids=lambda who: who.user)
def test_nobody_outside_has_a_grant_that_no_crossing_carries(principal: Principal) -> None:
    inward = [each.local or each.subject for each in crossings(SUBJECTS) if each.inward]
    for subject in permissions_of(principal, SUBJECTS).publish:
        probe = subject.replace(">", "x.y").replace("*", "x")
        assert covers(inward, probe), f"{subject} leads nowhere"
