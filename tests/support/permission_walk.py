"""A walk of the permission table: every principal tries every family of subjects on a real server."""

import re
from collections.abc import Collection, Sequence

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.api.identity.permissions import STREAMS, covers, permissions_of, service_names
from gardenbus.common.api.identity.principals import Principal
from tests.support.identities import SUBJECTS

OUTSIDERS = (
    Principal("gardenlet", "aws-cork"),
    Principal("member-agent", "paris"),
    Principal("user", "ann"),
    Principal("scheduler", "mine"),
    Principal("extension", "aws-cork"),
    Principal("plugin", "carbon"),
    Principal("bootstrap", "4f2a91"),
)
PRINCIPALS = (*(Principal("service", name) for name in service_names()), Principal("operator", "operator"), *OUTSIDERS)

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')


class _Probe(Connection):
    """A connection that remembers what the server refused."""

    def __init__(self) -> None:
        super().__init__()
        self.rejected: set[tuple[str, str]] = set()

    async def _process_err(self, err_msg: str) -> None:
        if found := _VIOLATION.search(err_msg.lower()):
            self.rejected.add((found[1], found[2]))
        else:
            await super()._process_err(err_msg)


def _names() -> Sequence[str]:
    return ("aws-cork", "aws-dublin", "member:paris", "member:rome", "mine", "carbon", "default-scheduler")


def every_subject() -> Sequence[str]:
    """Every family of subjects, with names of ones own and of others."""
    users = (
        "seed:aws-cork",
        "seed:aws-dublin",
        "member:paris",
        "ann",
        "root",
        "scheduler:mine",
        "extension:aws-cork",
        "plugin:carbon",
        "bootstrap:4f2a91",
    )
    tails = (
        "apply",
        "delete",
        "api.get.secret.garden.a",
        "api.csr.create",
        "api.whoami",
        "api.bind",
        "api.delete.seed.a",
    )
    families = (
        *("lease", "report", "binding", "view", "scheduler", "changed", "event", "queue", "later", "extension"),
        "plugin",
    )
    endings = ("", ".etcd", ".shoot.dev.a", ".work.fleet-member-paris.a")
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
                *(f"garden.{origin}.{user}.{tail}" for origin in ("as", "out") for user in users for tail in tails),
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


async def rejections(
    url: str, credentials: Credentials, principal: Principal, subjects: Sequence[str]
) -> Collection[tuple[str, str]]:
    """What the server refuses a principal: `publish` or `subscription`, and the subject in small letters."""
    probe = _Probe()
    await probe.open(url, "probe", credentials=credentials, on_reconnect=lambda: None)
    await probe.send([publish_command(subject, b"") for subject in subjects])
    if principal.account == "GARDEN":
        for subject in subjects:
            await probe.listen(subject, lambda _: None)
    else:  # they may have few subscriptions: each ends at once
        for subject in subjects:
            await probe.stop_listening([await probe.listen(subject, lambda _: None)])
    await probe.flush_fully()
    await probe.close()
    return probe.rejected


async def unlike_the_table(url: str, credentials: Credentials, principal: Principal) -> Sequence[str]:
    """What the server allows a principal, or refuses it, unlike the table."""
    granted, probed = permissions_of(principal, SUBJECTS), every_subject()
    rejected = await rejections(url, credentials, principal, probed)
    return [
        f"{verb} {subject}: {'refused' if is_granted else 'allowed'}"
        for verb, allowed in (("publish", granted.publish), ("subscription", granted.subscribe))
        for subject in probed
        if (is_granted := covers(allowed, subject)) == ((verb, subject.lower()) in rejected)
    ]
