"""Consumers by which outsiders follow a stream: what they may say of one. Pure.

JetStream delivers a consumer's messages, and its heartbeats, to whatever subject its creator names, in the account of
the services: a permission is about the subject of the request alone. So these are pull consumers, made of the few
fields here; the subject of the request says which, and the permission table who may send it.
"""

from typing import Annotated, Literal, NamedTuple

import msgspec

from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX
from gardenbus.common.api.identity.permissions import own_consumers
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest

LARGEST = 4096
"""Bytes of a request."""

LONGEST_INACTIVE_NANOSECONDS = 300 * 1_000_000_000
"""Longest life of a consumer that nobody fetches from."""

LARGEST_BATCH = 100
"""Messages of one request: of a mebibyte each they are less than a server keeps for a connection that does not read."""


class ConsumerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a pull consumer, by JetStream's names; others are rejected, `deliver_subject` among them."""

    name: str = ""
    durable_name: Literal[""] = ""
    filter_subject: str = ""
    deliver_policy: Literal["all", "last", "last_per_subject", "new", "by_start_sequence"] = "all"
    opt_start_seq: Annotated[int, msgspec.Meta(ge=0)] = 0
    ack_policy: Literal["none", "explicit"] = "none"
    replay_policy: Literal["instant"] = "instant"
    headers_only: bool = False
    mem_storage: bool = True
    num_replicas: Annotated[int, msgspec.Meta(ge=0, le=1)] = 1
    max_waiting: Literal[1] = 1
    inactive_threshold: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_INACTIVE_NANOSECONDS)] = 60 * 1_000_000_000
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_BATCH)] = LARGEST_BATCH
    metadata: Annotated[dict[str, Annotated[str, msgspec.Meta(max_length=128)]], msgspec.Meta(max_length=4)] = {}


class _Creation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of JetStream's request."""

    config: ConsumerConfig
    stream_name: str = ""
    action: Literal["", "create", "update"] = ""


class OwnConsumer(NamedTuple):
    """A consumer that is to be made."""

    stream: str
    name: str
    filter_subject: str
    body: bytes
    """Request for JetStream, made of what was permitted."""


def own_consumer(subject: str, body: bytes, subjects: Subjects) -> OwnConsumer:
    """The consumer of a request on `subjects.consumer(…)`. Raises BadRequest with the field that may not be so."""
    stream, _, rest = subject.removeprefix(subjects.consumer("")).partition(".")
    name, _, filter_subject = rest.partition(".")
    owner = _owner(filter_subject, subjects)
    is_followed = stream == subjects.stream("BINDINGS" if owner.role == "gardenlet" else "OBJECTS")
    if not is_followed or own_consumers(owner, subjects).get(filter_subject) != name:
        raise BadRequest(f"{name!r} is no consumer of anybody's for {filter_subject!r}")
    if len(body) > LARGEST:
        raise BadRequest(f"a request for a consumer has at most {LARGEST} bytes")
    try:
        creation = msgspec.json.decode(body, type=_Creation)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"a pull consumer with one filter alone: {error}") from error
    config = creation.config
    for field, stated, wanted in (
        ("stream_name", creation.stream_name, stream),
        ("name", config.name, name),
        ("filter_subject", config.filter_subject, filter_subject),
    ):
        if stated not in ("", wanted):
            raise BadRequest(f"{field}: is {stated!r}, the subject has {wanted!r}")
    return OwnConsumer(stream, name, filter_subject, _encoded(stream, name, filter_subject, creation))


def _owner(filter_subject: str, subjects: Subjects) -> Principal:
    """The principal that has a consumer with that filter, if anybody has."""
    family, *rest = filter_subject.removeprefix(f"{subjects.prefix}.").split(".")
    if family in ("binding", "view"):
        return Principal("gardenlet", rest[0] if rest else "")
    place = 1 if rest[:1] == ["work"] else 2
    name = rest[place] if len(rest) > place else ""
    return Principal("member-agent", name.removeprefix(CLUSTER_NAMESPACE_PREFIX))


def _encoded(stream: str, name: str, filter_subject: str, creation: _Creation) -> bytes:
    """JetStream's request. In memory and not replicated, whatever was requested: it ends with its owner."""
    config = msgspec.structs.replace(
        creation.config, name=name, filter_subject=filter_subject, mem_storage=True, num_replicas=1
    )
    return msgspec.json.encode(msgspec.structs.replace(creation, stream_name=stream, config=config))
