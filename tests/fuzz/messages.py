"""Messages for the wire: requests with damaged manifests, durable requests, reports, and garbage for every channel."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.fuzz.corpus import Template, template_of
from tests.fuzz.generator import SELECTORS, as_received
from tests.fuzz.mutations import TEXTS, anything, damaged, encoded, mutated
from tests.support.garbage import BODIES, TOKENS, Garbage, garbage, garbage_headers

OBJECTS: Sequence[str] = (
    *("shoot.garden-dev.apollo", "seed._.seed-a", "project._.dev", "cloudprofile._.aws", "seed.seed-a", "shoot.x.y"),
    *("managedseedset.garden.grove", "seedautoscaler.garden.grove", "crp._.forecast", "membercluster._.m", "event.x.y"),
    *("shoots.garden-dev.apollo", "namespacedcloudprofile.garden-dev.own", "secret.garden.backup-aws", "nothing.a.b"),
)
LISTS: Sequence[str] = (
    "shoot",
    "seed",
    "shoot.garden-dev",
    "event",
    "lease",
    "lease.gardener-system-seed-lease",
    "crp",
)
VERBS: Mapping[str, int] = {
    "apply": 40,
    "patch": 12,
    "get": 8,
    "list": 8,
    "names": 2,
    "delete": 4,
    "bind": 4,
    "scale": 3,
    "waiting": 3,
    "explain": 1,
    "retry": 2,
    "kinds": 1,
    "usage": 1,
    "unknown": 1,
    "adopt": 1,
    "forget": 1,
    "census": 1,
    "odd": 3,
}
SMALL: Mapping[str, object] = {"namespace": "garden-dev", "name": "apollo", "seed": "seed-a", "replicas": 2, "limit": 3}


class Sent(NamedTuple):
    """A message, and whether a response of the API is due."""

    message: Garbage
    is_request: bool


class Messages:
    """Draws messages; the same seed draws the same."""

    def __init__(self, templates: Sequence[Template], reports: Sequence[Template], seed: int) -> None:
        self._templates = templates
        self._reports = reports
        self._chance = random.Random(seed)
        self._garbage = self._endless(seed)
        self._verbs, self._weights = list(VERBS), list(VERBS.values())

    def next(self) -> Sent:
        """The next message."""
        draw = self._chance.random()
        if draw < 0.75:
            return Sent(self._request(), is_request=True)
        if draw < 0.85:
            return Sent(self._durable(), is_request=False)
        if draw < 0.95:
            return Sent(self._report(), is_request=False)
        return Sent(next(self._garbage), is_request=False)

    def _endless(self, seed: int) -> Iterator[Garbage]:
        """Garbage for every channel, a few for each at a time, in a shuffled order."""
        for number in itertools.count():
            some = [each for each in garbage("garden", seed + number, 5) if not _is_api(each.subject)]
            self._chance.shuffle(some)
            yield from some

    def _request(self) -> Garbage:
        chance = self._chance
        verb = chance.choices(self._verbs, self._weights)[0]
        user = f"as.{chance.choice(('ann', 'x', '_', 'system:admin'))}." if chance.random() < 0.2 else ""
        tail, body = self._call(verb)
        return Garbage(f"garden.{user}api.{tail}".encode(), garbage_headers(chance), body)

    def _call(self, verb: str) -> tuple[str, bytes]:
        chance = self._chance
        match verb:
            case "apply":
                return verb, self._manifest()
            case "patch":
                template = chance.choice(self._templates)
                return f"patch.{self._object()}", self._body(mutated(template, chance))
            case "names":
                query = {"prefix": chance.choice(("", "a", "[", "\u00e9", 7)), "limit": chance.choice((1, 3, 0))}
                kept = {name: part for name, part in query.items() if chance.random() < 0.6}
                return f"names.{chance.choice(LISTS)}", self._body(kept)
            case "list" | "waiting":
                query = {
                    "labelSelector": chance.choice(SELECTORS),
                    "fieldSelector": chance.choice(SELECTORS),
                    "limit": 3,
                }
                kept = {name: part for name, part in query.items() if chance.random() < 0.4}
                return f"{verb}.{chance.choice(LISTS)}" if verb == "list" else verb, self._body(kept)
            case "odd":
                return ".".join(self._token() for _ in range(chance.randrange(1, 6))), chance.choice(BODIES)
            case "bind" | "scale" | "delete" | "adopt" | "forget":
                value = {name: anything(chance) if chance.random() < 0.2 else part for name, part in SMALL.items()}
                value |= {"kind": chance.choice(("shoot", "seed", "crp", 1))} if verb == "delete" else {}
                tail = f"{verb}.{self._object()}" if verb in ("adopt", "forget") or chance.random() < 0.3 else verb
                return tail, self._body(value)
            case _:
                return f"{verb}.{self._object()}" if verb in ("get", "explain", "retry") else verb, b""

    def _durable(self) -> Garbage:
        user = "as.ann." if self._chance.random() < 0.2 else ""
        verb = "apply" if self._chance.random() < 0.9 else "delete"
        return Garbage(f"garden.{user}{verb}".encode(), garbage_headers(self._chance), self._manifest())

    def _report(self) -> Garbage:
        chance = self._chance
        reporter = chance.choice(("seed-a", "seed-a", "member:m", "aws-eu1", self._token()))
        body = self._body(mutated(chance.choice(self._reports), chance))
        if chance.random() < 0.2:
            body = self._manifest()
        return Garbage(f"garden.report.{reporter}.{self._object()}".encode(), garbage_headers(chance), body)

    def _object(self) -> str:
        if self._chance.random() < 0.85:
            return self._chance.choice(OBJECTS)
        return ".".join(self._token() for _ in range(self._chance.randrange(1, 5)))

    def _token(self) -> str:
        token = self._chance.choice((*(token.decode("utf-8", "replace") for token in TOKENS), *TEXTS))
        token = as_received(token)[:200]
        return "".join(letter for letter in token if letter.isprintable() and letter not in " .*>") or "_"

    def _manifest(self) -> bytes:
        chance = self._chance
        draw = chance.random()
        if draw < 0.02:
            return chance.choice(BODIES)
        template = chance.choice(self._templates)
        return damaged(template.encoded, chance) if draw < 0.1 else self._body(mutated(template, chance))

    def _body(self, value: object) -> bytes:
        body = encoded(value, self._chance)
        return damaged(body, self._chance) if self._chance.random() < 0.05 else body


def _is_api(subject: bytes) -> bool:
    return b".api." in subject or subject.endswith(b".api")


def messages_of(stored: Sequence[Template], seed: int) -> Messages:
    """Messages made of what a world stores."""
    reports = [template_of({"status": each.document["status"]}) for each in stored if each.document.get("status")]
    return Messages([*stored], reports, seed)
