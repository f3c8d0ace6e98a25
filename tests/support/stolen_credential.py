"""Random requests of a thief of a gardenlet's credential: what its row grants, and what it does not."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gardenbus.common.adapters.nats.messages import encode_headers, publish_command
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.identity.permissions import permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import new_key, new_request
from tests.support.garbage import BODIES, HEADER_NAMES, NUMBERS, TOKENS, garbage, garbage_headers
from tests.support.identities import SUBJECTS
from tests.support.permission_walk import every_subject

_VERBS = ("status", "apply", "delete", "event", "exists", "gone")
_ROLLUPS = ("all", "sub")
_FENCE, _FENCED = "1000000000000000000.1", 0.9
"""A fencing token as a gardenlet has one, and the share of messages with it: reports without it are refused."""
_REQUESTS = ("apply", "delete", "api.apply", "api.bind", "api.token.create", "api.csr.create", "api.csr.approve")


class Victim(NamedTuple):
    """An object of somebody else: its key, its uid, and what is stored."""

    key: ObjectKey
    uid: str
    document: Any


class Thief:
    """Requests of somebody with the credential of a seed's gardenlet, about objects of others; seeded."""

    def __init__(self, principal: Principal, victims: Sequence[Victim], seed: int) -> None:
        self._random = random.Random(seed)
        self._principal = principal
        self._victims = victims
        self._granted = permissions_of(principal, SUBJECTS).publish
        self._families = every_subject()
        self._garbage = list(garbage(SUBJECTS.prefix, seed, 20))
        pem = new_request(Principal("gardenlet", "aws-dublin"), new_key())
        self._signing = encode(new_signing_request("stolen", pem))

    def commands(self, number: int) -> Iterator[bytes]:
        """So many publications, as the protocol has them."""
        while number:
            victim = self._random.choice(self._victims)
            reply = self._reply(victim)
            try:
                yield publish_command(self._subject(victim), self._body(victim), self._headers(victim), reply)
            except BadRequest:
                continue
            number -= 1

    def _subject(self, victim: Victim) -> str:
        draw = self._random.random()
        if draw < 0.4:
            return self._expanded(self._random.choice(self._granted), victim)
        if draw < 0.6:
            return SUBJECTS.report(self._principal.name, victim.key)
        if draw < 0.75:
            return SUBJECTS.as_user(self._principal.user, f"api.{self._tail(victim)}")
        if draw < 0.95:
            return self._random.choice(self._families)
        return self._random.choice(self._garbage).subject.decode("latin-1")

    def _expanded(self, pattern: str, victim: Victim) -> str:
        """A subject that a grant covers, about an object of somebody else."""
        if pattern.endswith(".>"):
            pattern = pattern[:-1] + self._random.choice((victim.key.tail, self._token(), self._tail(victim)))
        return pattern.replace("*", self._token())

    def _tail(self, victim: Victim) -> str:
        verb = self._random.choice(("get", "list", "delete", "patch", "status", "scale", "watch", "position", "drain"))
        return self._random.choice((f"{verb}.{victim.key.tail}", f"{verb}.{victim.key.kind}", "token.create", "bind"))

    def _token(self) -> str:
        return self._random.choice(TOKENS).decode("latin-1")

    def _reply(self, victim: Victim) -> str:
        """Where an answer goes: one's own inbox, nowhere, or where it would make somebody else act."""
        request = self._random.choice((*_REQUESTS, f"api.delete.{victim.key.tail}"))
        deputies = (
            SUBJECTS.as_user(self._random.choice(("root", "operator", "seed:aws-dublin")), request),
            SUBJECTS.report("aws-dublin", victim.key),
            SUBJECTS.lease("aws-dublin"),
            SUBJECTS.changed(victim.key),
            SUBJECTS.binding("aws-dublin", "garden-dev", "zeus"),
            "$JS.API.STREAM.PURGE.BINDINGS",
            "IN.API.STREAM.PURGE.BINDINGS",
            "$SYS.REQ.USER.AUTH",
        )
        return self._random.choice(("", f"{self._principal.inbox}.x", self._random.choice(deputies)))

    def _headers(self, victim: Victim) -> bytes:
        if self._random.random() < 0.2:
            return garbage_headers(self._random)
        headers = {
            "Gardenbus-Uid": victim.uid,
            "Nats-Request-Info": '{"acc":"GARDEN","user":"operator"}',
            "Nats-Rollup": self._random.choice(_ROLLUPS),
            "Nats-Msg-Id": f"{victim.uid}",
            self._random.choice(HEADER_NAMES): self._random.choice(NUMBERS[1:3]).decode("latin-1"),
        }
        kept = {name: headers[name] for name in self._random.sample(sorted(headers), self._random.randrange(3))}
        kept["Gardenbus-Verb"] = self._random.choice(_VERBS)
        if self._random.random() < _FENCED:
            kept["Gardenbus-Fence"] = _FENCE
        return encode_headers(kept)

    def _body(self, victim: Victim) -> bytes:
        if self._random.random() < 0.3:
            return self._random.choice(BODIES)
        metadata: Document = {
            **victim.document["metadata"],
            "labels": {"is": "stolen"},
            "finalizers": [],
            "resourceVersion": "",
        }
        status = {"lastOperation": {"type": "Delete", "state": "Succeeded", "progress": 100}, "seedName": "aws-cork"}
        return self._random.choice(
            (
                encode({**victim.document, "metadata": metadata}),
                encode({**victim.document, "status": status}),
                encode({"status": status}),
                encode({"metadata": {"labels": {"is": "stolen"}}, "spec": {"seedName": "aws-cork"}}),
                encode({"namespace": victim.key.namespace, "name": victim.key.name, "seed": "aws-cork"}),
                encode({"seed": "aws-dublin", "ttlSeconds": 3600}),
                encode({"type": "Warning", "reason": "Stolen", "message": "it is"}),
                encode(
                    {"config": {"filter_subject": "garden.binding.aws-dublin.>", "deliver_subject": "garden.apply"}}
                ),
                encode({"last_by_subj": SUBJECTS.changed(victim.key)}),
                b'{"batch": 100, "no_wait": true}',
                self._signing,
            )
        )
