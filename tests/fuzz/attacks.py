"""Messages of somebody with a credential: what its row of the permission table grants, used to harm."""

import json
import random
from collections.abc import Callable, Sequence

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.permissions import permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from tests.fuzz.messages import Messages, Sent
from tests.support.garbage import Garbage, garbage_headers

SUBJECTS = Subjects()
MEBIBYTE = 1024 * 1024
ROOM = 2048
"""Bytes left to the rest of the largest message."""

FORGED = b'{"acc":"GARDEN","user":"operator"}'
GLUED = b"NATS/1.0\r\nNats-Request-Info: " + FORGED + b"\r\nNote: a"
"""A block without its end: a server writes its own header to the end of the last line."""

HEADERS: Sequence[bytes] = (
    b"",
    GLUED,
    b"NATS/1.0\r\nNats-Request-Info: " + FORGED + b"\r\n\r\n",
    b"NATS/1.0\r\nNats-Batch-Id: open\r\nNats-Batch-Sequence: 1\r\n\r\n",
    b"NATS/1.0\r\nNats-Msg-Id: 1\r\nNats-Rollup: all\r\n\r\n",
    b"NATS/1.0\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
)


def long_texts(size: int) -> Sequence[Document]:
    """Manifests and queries with one long or often repeated part, of about so many bytes."""
    metadata: Document = {"name": "long", "namespace": "garden-dev"}
    pools: list[Document] = [{}] * (size // 4)
    shoot: Document = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": metadata}
    names = [f"a.example.com/{number}" for number in range(size // 24)]
    return (
        {"labelSelector": "a=" + " " * size + "("},
        {"labelSelector": "a in (" + "b," * (size // 2)},
        {"fieldSelector": "metadata.name=" + "=" * size},
        {**shoot, "metadata": {**metadata, "finalizers": names}},
        {**shoot, "metadata": {**metadata, "labels": dict.fromkeys(names, "a")}},
        {**shoot, "metadata": {**metadata, "annotations": {"a": "x" * size}}},
        {**shoot, "spec": {"maintenance": {"timeWindow": {"begin": "0" * size}}}},
        {**shoot, "spec": {"resources": [{"name": name} for name in names]}},
        {**shoot, "spec": {"kubernetes": {"version": "1" * size}, "provider": {"workers": pools}}},
        {"kind": "List", "apiVersion": "v1", "items": [shoot] * (size // 120)},
    )


class Attacks:
    """Draws the messages of one principal; the same seed draws the same."""

    def __init__(self, principal: Principal, messages: Messages, seed: int) -> None:
        self._chance = random.Random(f"{principal.user} {seed}")
        self._user = principal.user
        self._messages = messages
        self._granted = permissions_of(principal, SUBJECTS).publish
        self._kinds: Sequence[Callable[[], Sent]] = (
            self._drawn,
            self._granted_subject,
            self._long_request,
            self._large_request,
            self._large_durable,
            self._forged,
            self._consumer,
        )

    def next(self) -> Sent:
        """The next message; a request if a response of the API is due to it."""
        return self._chance.choices(self._kinds, weights=(6, 4, 3, 1, 1, 3, 1))[0]()

    def _subject(self, tail: str) -> bytes:
        return SUBJECTS.as_user(self._user, tail).encode()

    def _drawn(self) -> Sent:
        """A damaged message as anybody's, in one's own name where it is a request."""
        sent = self._messages.next()
        _, _, tail = sent.message.subject.partition(b"api.")
        if not sent.is_request or not tail:
            return Sent(sent.message, is_request=False)
        return Sent(sent.message._replace(subject=self._subject("api.") + tail), is_request=True)

    def _granted_subject(self) -> Sent:
        """Anything on a subject that the row grants."""
        pattern = self._chance.choice(self._granted).replace("*", self._chance.choice(("a", "aws-cork", "x")))
        if pattern.endswith(">"):
            pattern = pattern[:-1] + self._chance.choice(("shoot.garden-dev.apollo", "seed._.aws-cork", "etcd", "a"))
        body = json.dumps(self._chance.choice(long_texts(1000))).encode()
        return Sent(Garbage(pattern.encode(), garbage_headers(self._chance), body), is_request=False)

    def _long_request(self) -> Sent:
        return self._request(self._chance.choice(long_texts(self._chance.choice((4_000, 40_000, 400_000)))))

    def _large_request(self) -> Sent:
        return self._request(self._chance.choice(long_texts(MEBIBYTE // 2)))

    def _request(self, value: Document) -> Sent:
        is_query = any("Selector" in name for name in value)
        body = json.dumps(value).encode()[: MEBIBYTE - ROOM]
        subject = self._subject(f"api.{'list.seed' if is_query else 'apply'}")
        return Sent(Garbage(subject, b"", body), is_request=True)

    def _large_durable(self) -> Sent:
        body = b'{"kind":"' + b"k" * (MEBIBYTE - ROOM) + b'"}'
        return Sent(Garbage(self._subject(self._chance.choice(("apply", "delete"))), b"", body), is_request=False)

    def _forged(self) -> Sent:
        """A write in one's own name, with headers by which it would be somebody else's."""
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forged", "namespace": "garden"}}
        tail = self._chance.choice(("apply", "api.apply"))
        message = Garbage(self._subject(tail), self._chance.choice(HEADERS), json.dumps(document).encode())
        return Sent(message, is_request=False)

    def _consumer(self) -> Sent:
        """A consumer that would push into a stream, in the name of whoever hosts it."""
        deliver = self._chance.choice(("garden.apply", "garden.as.quiet.apply", "garden.report.aws-cork.shoot.a.b"))
        config = {"deliver_subject": deliver, "idle_heartbeat": 100_000_000, "name": self._user, "ack_policy": "none"}
        stream = self._chance.choice(("BINDINGS", "OBJECTS", "EVENTS"))
        body = json.dumps({"stream_name": stream, "config": config}).encode()
        call = f"IN.API.CONSUMER.CREATE.{stream}.{self._user}"
        return Sent(Garbage(call.encode(), b"", body), is_request=False)
