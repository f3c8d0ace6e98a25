"""Inputs in process, each drawn from a seed and a number: the same two make the same input, whatever came before."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document
from tests.fuzz.corpus import Template, template_of
from tests.fuzz.mutations import TEXTS, anything, as_yaml, damaged, encoded, enlarged, header, mutated
from tests.support.garbage import BODIES, HEADER_NAMES

WEIGHTS: Mapping[str, int] = {
    "create": 360,
    "update": 260,
    "patch": 80,
    "report": 160,
    "bind": 30,
    "delete": 20,
    "query": 60,
    "headers": 28,
    "configuration": 2,
}
"""Targets, and how often each is drawn. `create` to `report` carry manifests."""

WORDS: Sequence[str] = (
    *("shoot", "seeds", "crp", "managedseedset", "event", "lease", "_", "garden-dev", "apollo", "aws-eu1", "as", "api"),
    *("get", "list", "patch", "apply", "explain", "explain-seed", "report", "garden", "member:m", "%00", "x" * 300, ""),
    *("é", "\ud800", "*", ">", "$G", "Shoot", "shoots.core.gardener.cloud", "garden.api", "\0", " "),
)
SUBJECTS: Sequence[str] = (
    *("garden.api.list.shoot.garden-dev", "garden.api.list.seed", "garden.api.get.shoot.garden-dev.apollo"),
    *("garden.as.ann.api.list.crp", "garden.report.aws-eu1.shoot.garden-dev.apollo", "garden.as.ann.api.apply"),
)
SELECTORS: Sequence[str] = (
    *("a=b", "a==b,c!=d", "e in (f,g)", "!old", "a notin ()", "(", "a in b", "=", ",", "a,,b", "a=b=c", "in in (in)"),
    *("spec.seedName=aws", "metadata.name!=x", "a..b=c", ".=", "spec.provider.workers=1", "a" * 400 + "=b", "a=\ud800"),
    *(" " * 3000, "a=" + " " * 20_000 + "(", "a=b," * 400, "!" * 300, "a in (" + "b," * 500 + ")", "x/y/z=1", "é=é"),
)


EVENT = template_of({"type": "Warning", "reason": "A", "message": "b", "action": "C", "count": 1})


class Input(NamedTuple):
    """One input. `base` is drawn to choose the stored object that it meets."""

    target: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    base: int


class Generator:
    """Draws inputs from templates; those that change something, from the manifests that are stored."""

    def __init__(self, templates: Sequence[Template], stored: Sequence[Template], seed: int) -> None:
        self._templates = templates
        self._stored = stored
        self._reported = [
            template_of({"status": each.document["status"]}) for each in stored if each.document.get("status")
        ]
        self._seed = seed
        self._targets = list(WEIGHTS)
        self._weights = list(WEIGHTS.values())
        self._chance = random.Random()

    def input(self, number: int) -> Input:
        """The input of a number."""
        chance = self._chance
        chance.seed((self._seed << 40) + number)
        target = chance.choices(self._targets, self._weights)[0]
        base = chance.randrange(1 << 30)
        match target:
            case "query":
                body = self._query(chance)
            case "headers" | "delete" | "bind":
                body = self._small(chance)
            case "report" if chance.random() < 0.9:
                body = self._report(chance)
            case "update" | "patch" if chance.random() < 0.9:
                body = self._body(self._stored[base % len(self._stored)], chance)
            case _:
                body = self._body(chance.choice(self._templates if chance.random() < 0.3 else self._stored), chance)
        return Input(target, self._subject(chance), self._headers(chance), body, base)

    def _body(self, template: Template, chance: random.Random) -> bytes:
        """The manifest of a template, changed as values, as text, or both."""
        draw = chance.random()
        if draw < 0.005:
            return chance.choice(BODIES)
        if draw < 0.08:
            return damaged(template.encoded, chance)
        document = mutated(template, chance)
        if draw > 0.9999:
            document = enlarged(document, chance)
        if draw < 0.10:
            text = as_yaml(document, chance).encode("utf-8", "surrogatepass")
            return damaged(text, chance) if chance.random() < 0.3 else text
        if draw < 0.12:
            return self._several(document, chance)
        body = encoded(document, chance)
        return damaged(body, chance) if draw < 0.15 else body

    def _report(self, chance: random.Random) -> bytes:
        """A report of a status, or of an Event."""
        if chance.random() < 0.1:
            return self._body(EVENT, chance)
        return self._body(chance.choice(self._reported), chance)

    def _several(self, document: Document, chance: random.Random) -> bytes:
        others = [document, chance.choice(self._templates).document]
        if chance.random() < 0.5:
            return b"\n".join(encoded(one, chance) for one in others)
        kind = chance.choice(("List", "ShootList", f"{document.get('kind')}List", "x"))
        return encoded({"apiVersion": "v1", "kind": kind, "items": [*others, anything(chance)]}, chance)

    def _small(self, chance: random.Random) -> bytes:
        """A body of one of the verbs that take no manifest."""
        names = (
            "kind",
            "namespace",
            "name",
            "seed",
            "replicas",
            "resourceVersion",
            "force",
            "limit",
            "confirm",
            "patch",
        )
        existing = {
            "kind": "shoot",
            "namespace": "garden-dev",
            "name": "apollo",
            "seed": "aws-eu1",
            "replicas": 2,
            "force": True,
        }
        value = {name: existing.get(name, "1") if chance.random() < 0.85 else anything(chance) for name in names}
        kept = {name: part for name, part in value.items() if chance.random() < 0.9}
        body = encoded(kept, chance)
        return damaged(body, chance) if chance.random() < 0.1 else body

    def _query(self, chance: random.Random) -> bytes:
        def one() -> object:
            return anything(chance) if chance.random() < 0.3 else chance.choice(SELECTORS)

        value: dict[str, object] = {"labelSelector": one(), "fieldSelector": one(), "limit": 5, "continue": one()}
        kept = {name: part for name, part in value.items() if chance.random() < 0.6}
        return encoded(kept, chance)

    def _subject(self, chance: random.Random) -> str:
        if chance.random() < 0.3:
            return chance.choice(SUBJECTS)
        words = chance.choices(WORDS, k=chance.randrange(6))
        subject = ".".join((chance.choice(("garden.api", "garden.report", "garden.as", "garden", "x")), *words))
        return as_received(subject)

    def _headers(self, chance: random.Random) -> Mapping[str, str]:
        if chance.random() < 0.7:
            return {}
        return {
            name: as_received(header(chance) if chance.random() < 0.8 else chance.choice(TEXTS))
            for name in chance.sample(HEADER_NAMES, chance.randrange(1, 5))
        }


def as_received(text: str) -> str:
    """A subject's or header's text as the bus hands it over: what is not UTF-8 is replaced."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
