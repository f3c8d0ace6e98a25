"""Makes seeds of shoots: looks at a ManagedSeed and all that hangs on it, and does the one step `decide` says.

| told        | deployed              | what is done                                                       |
|-------------|-----------------------|--------------------------------------------------------------------|
| it          | anything              | the next pass (`decide.managed_seeds`)                             |
| a tombstone | something             | all of it is taken away: the shoot, or the ManagedSeed, left       |
| a tombstone | nothing               | it is reported gone, so that the tombstone may go too              |
| nothing     | something             | it is kept, and asked about                                        |
| by a replay | nothing               | it is asked about: what was taken off may have come back           |
"""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, Protocol, assert_never
from uuid import uuid4

import msgspec
import structlog

from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.machinery.backoff import Backoff
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, Header, ObjectKey, Subjects
from gardenbus.gardenlet.backend.children import Children
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.child import Deployed, is_bootstrapped
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration
from gardenbus.gardenlet.decide.lease import StandBy, judge_lease
from gardenbus.gardenlet.decide.managed_seeds import (
    DELETED,
    DeleteSeed,
    Deploy,
    Finding,
    Pass,
    Refuse,
    Register,
    RemoveBackupSecret,
    RemoveNamespace,
    Seen,
    ShootSeen,
    Stay,
    TakeDownGardenlet,
    delay_of_news,
    is_held,
    is_reconciled,
    next_pass,
    refused,
    status_patch,
)
from gardenbus.gardenlet.decide.record import ShootRecord
from gardenbus.gardenlet.decide.status import without_times
from gardenbus.gardenlet.reconcilers.heartbeat import LEASES, lease_seen
from gardenbus.gardenlet.reconcilers.reports import Reporter
from gardenbus.gardenlet.reconcilers.told import MANAGED_SEED, Gone, Told

_log = structlog.stdlib.get_logger()

BINDINGS = "BINDINGS"
ASK_AGAIN_SECONDS = 60.0
REPEAT_SECONDS = 30.0
UNSURE_SECONDS = 2.0
_SYNC_JITTER = 0.05
_BACKOFF = Backoff()
_decode = msgspec.json.Decoder(dict).decode


class Nursery(Protocol):
    """Where the gardenlets run that are deployed into shoots."""

    def deployments_changed(self) -> None:
        """Look at once at what is deployed."""
        ...

    def shoots_on(self, seed: str) -> int:
        """How many shoots the gardenlet of a seed was told of; 0 when it does not run here."""
        ...


class Elsewhere:
    """A `Nursery` that runs nothing: whoever reads the deployments does."""

    def deployments_changed(self) -> None:
        """Nobody here to tell."""

    def shoots_on(self, seed: str) -> int:  # noqa: ARG002 - the port's
        """Nothing known."""
        return 0


class _Saying(NamedTuple):
    """A status patch as it was reported: of which object, what (without the times in it), and when."""

    uid: str
    patch: Document
    at: float


class ManagedSeedReconciler:
    """See the module. `is_active`: whether this gardenlet may act; `record_of`: what is kept of a shoot."""

    def __init__(  # noqa: PLR0913 - the ports of one reconciler
        self,
        configuration: GardenletConfiguration,
        *,
        told: Told,
        children: Children,
        reporter: Reporter,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        record_of: Callable[[ShootName], ShootRecord | None],
        is_active: Callable[[], bool],
        nursery: Nursery,
    ) -> None:
        self._configuration = configuration
        self._settings = configuration.managed_seed
        self._seed_name = configuration.seed_name
        self._told = told
        self._children = children
        self._reporter = reporter
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._record_of = record_of
        self._is_active = is_active
        self._nursery = nursery
        self._heard: set[ShootName] = set()
        self._passed: set[ShootName] = set()
        self._unheld: set[ShootName] = set()
        self._shoots: dict[ShootName, ShootSeen | None] = {}
        self._attempts: dict[ShootName, int] = {}
        self._said: dict[ShootName, Finding] = {}
        self._reported: dict[ShootName, _Saying] = {}

    # ------------------------------------------------------------------------------------------ when to look

    def stand_by(self) -> None:
        """Forget what was seen and said: another one acts now."""
        self._heard.clear()
        self._passed.clear()
        self._unheld.clear()
        self._shoots.clear()
        self._attempts.clear()
        self._said.clear()
        self._reported.clear()

    def delay_of_news(self, name: ShootName) -> float | None:
        """Seconds after which to look at a ManagedSeed that something was told of; None: not for this."""
        document = self._told.managed_seed(*name)
        if document is None or self._is_doubtful(name):
            return 0.0
        within = delay_of_news(document, is_first=name not in self._heard, settings=self._settings)
        self._heard.add(name)
        if name in self._unheld and is_held(document):
            return 0.0
        return None if within is None else within.total_seconds() * random.random()

    def known(self) -> set[ShootName]:
        """Every ManagedSeed that was told of, or that something is deployed for."""
        told = {(key.namespace, key.name) for key in self._told.objects if key.kind == MANAGED_SEED}
        return told | {(each.namespace, each.managed_seed) for each in self._children.all()}

    def of_seed(self, seed: str) -> list[ShootName]:
        """The ManagedSeeds of a name, of which something of their seed is new; not those whose first look is due."""
        return [name for name in self._passed if name[1] == seed]

    def waiting_for(self, shoot: ShootName) -> list[ShootName]:
        """The ManagedSeeds to look at because their shoot is another than it was when they were looked at."""
        if shoot[0] != GARDEN_NAMESPACE or shoot not in self._shoots:
            return []
        names = [
            (key.namespace, key.name)
            for key, document in self._told.objects.items()
            if key.kind == MANAGED_SEED
            and not isinstance(document, Gone)
            and (key.namespace, section(document, "spec", "shoot").get("name")) == shoot
        ]
        return names if self._shoots[shoot] != self._shoot(shoot) else []

    # ------------------------------------------------------------------------------------------ looking

    async def look(self, name: ShootName) -> float | None:
        """Do the next step; answers when to look again (seconds, None: when told)."""
        if not self._is_active():
            return UNSURE_SECONDS
        key = ObjectKey(MANAGED_SEED, *name)
        said = self._told.objects.get(key)
        if said is None:
            return await self._ask(key)
        if isinstance(said, Gone):
            return await self._let_go(key, said)
        if self._is_doubtful(name):
            return await self._doubt(key, said)
        return await self._pass(name, said)

    def _is_doubtful(self, name: ShootName) -> bool:
        """Whether a replay alone tells of a ManagedSeed for which nothing stands here: it may be over."""
        return self._told.is_hearsay(ObjectKey(MANAGED_SEED, *name)) and self._children.of(*name) is None

    async def _doubt(self, key: ObjectKey, document: Document) -> float | None:
        if not self._told.is_complete:
            return None
        await self._reporter.ask(key, str(section(document, "metadata").get("uid") or ""))
        return ASK_AGAIN_SECONDS

    async def _ask(self, key: ObjectKey) -> float | None:
        deployed = self._children.of(key.namespace, key.name)
        if deployed is None or not self._told.is_complete:
            return None
        await self._reporter.ask(key, deployed.uid)
        return ASK_AGAIN_SECONDS

    async def _let_go(self, key: ObjectKey, tombstone: Gone) -> float | None:
        """Take away what stands here for a ManagedSeed that is no more, or whose shoot has gone to another seed."""
        deployed = self._children.of(key.namespace, key.name)
        if deployed is not None:
            self._children.remove((deployed.namespace, deployed.shoot))
            self._nursery.deployments_changed()
            _log.info("gardenlet.removed", seed=self._seed_name, managed_seed=key.name, reason="it left")
        await self._reporter.gone(key, tombstone=tombstone.sequence)
        self._told.forget_object(key, tombstone)
        for memory in (self._said, self._reported, self._attempts):
            memory.pop((key.namespace, key.name), None)
        for names in (self._heard, self._passed, self._unheld):
            names.discard((key.namespace, key.name))
        return None

    async def _pass(self, name: ShootName, document: Document) -> float | None:
        began = self._clock.monotonic()
        self._passed.add(name)
        (self._unheld.discard if is_held(document) else self._unheld.add)(name)
        decided = next_pass(
            await self._seen(document),
            parent=self._configuration.document,
            settings=self._settings,
            now=self._clock.now(),
        )
        problem = decided.step.problem if isinstance(decided.step, Refuse) else None
        if problem is None:
            self._report(name, document, decided.before)
            try:
                await self._take(document, decided)
            except (GardenbusError, OSError) as error:
                problem = error.message if isinstance(error, GardenbusError) else str(error)
                if not self._is_active():
                    return UNSURE_SECONDS
        if problem is not None:
            findings = (*decided.before, refused(problem))
            self._attempts[name] = self._attempts.get(name, 0) + 1
            again: float | None = _BACKOFF.delay_seconds(self._attempts[name], random.random())
        else:
            findings = tuple({each.kind: each for each in (*decided.before, *decided.after)}.values())
            self._attempts.pop(name, None)
            again = None if decided.again is None else self._jittered(decided.again)
        is_news = self._report(name, document, findings)
        await self._tell(name, document, findings)
        if not isinstance(decided.step, Stay):
            _log.info(
                "reconcile.finished",
                controller="managedseed",
                seed=self._seed_name,
                object="/".join(name),
                reconcile_id=uuid4().hex[:12],
                outcome="error" if problem is not None else type(decided.step).__name__,
                reason=problem or "",
                attempt=self._attempts.get(name, 0),
                duration_ms=round(1000 * (self._clock.monotonic() - began)),
            )
        return min(again, REPEAT_SECONDS) if is_news and again is not None else again

    async def _seen(self, document: Document) -> Seen:
        metadata = section(document, "metadata")
        namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
        shoot = (namespace, str(section(document, "spec", "shoot").get("name") or ""))
        self._shoots[shoot] = self._shoot(shoot)
        seen = Seen(document, self._shoots[shoot], await self._seed(name), self._children.load(shoot))
        if not metadata.get("deletionTimestamp"):
            return seen
        return seen._replace(is_running=await self._is_running(name), shoots_on_it=self._nursery.shoots_on(name))

    def _shoot(self, shoot: ShootName) -> ShootSeen | None:
        """The shoot, with the status that was reported last, which may not have been told back yet."""
        told = self._told.shoot(shoot)
        if told is None:
            return None
        record = self._record_of(shoot)
        status = record.status if record is not None and record.uid == told.uid else told.status
        return ShootSeen(
            is_here=told.status_seed == self._seed_name,
            is_reconciled=is_reconciled(generation=told.generation, status=status),
        )

    async def _seed(self, name: str) -> Document | None:
        """The Seed as it was announced last, to its own gardenlet."""
        subject = self._subjects.view(name, ObjectKey("seed", "", name))
        last = await self._bus.last(self._subjects.stream(BINDINGS), subject)
        if last is None or last.marker is not None or last.headers.get(Header.VERB) == "deleted":
            return None
        if Header.TOO_LARGE in last.headers:
            return {}
        seed: Document = _decode(last.body)
        return seed

    async def _is_running(self, seed: str) -> bool:
        """Whether somebody holds the Lease of a seed, or may yet believe so."""
        stream = self._subjects.stream(LEASES)
        judgement = judge_lease(
            lease_seen(await self._bus.last(stream, self._subjects.lease(seed))),
            identity="",
            is_held=False,
            now=await self._bus.server_now(stream),
            patience=self._configuration.lease.patience,
        )
        return isinstance(judgement, StandBy)

    # ------------------------------------------------------------------------------------------ acting

    async def _take(self, document: Document, decided: Pass) -> None:
        """Carry the step out. Raises FencedOff, Unavailable, OSError."""
        metadata, step = section(document, "metadata"), decided.step
        key = ObjectKey("seed", "", str(metadata["name"]))
        shoot = (str(metadata["namespace"]), str(section(document, "spec", "shoot").get("name")))
        match step:
            case Deploy(gardenlet, has_backup_secret):
                self._children.save(
                    Deployed(
                        namespace=shoot[0],
                        shoot=shoot[1],
                        managed_seed=key.name,
                        uid=str(metadata.get("uid") or ""),
                        generation=metadata.get("generation") or 0,
                        deployed_at=self._clock.now(),
                        bootstrapped_at=self._clock.now() if is_bootstrapped(document) else None,
                        gardenlet=gardenlet,
                        has_backup_secret=has_backup_secret,
                    )
                )
                self._nursery.deployments_changed()
            case Register(seed):
                await self._reporter.apply(key, seed)
            case DeleteSeed():
                await self._reporter.delete(key)
            case TakeDownGardenlet() | RemoveBackupSecret():
                self._change(shoot, step)
                self._nursery.deployments_changed()
            case RemoveNamespace():
                self._children.remove(shoot)
            case Stay() | Refuse():
                pass
            case _:
                assert_never(step)

    def _change(self, shoot: ShootName, step: TakeDownGardenlet | RemoveBackupSecret) -> None:
        deployed = self._children.load(shoot)
        if deployed is None:
            return
        gone = {"gardenlet": None} if isinstance(step, TakeDownGardenlet) else {"has_backup_secret": False}
        self._children.save(msgspec.structs.replace(deployed, **gone))

    def _report(self, name: ShootName, document: Document, findings: tuple[Finding, ...]) -> bool:
        """Report what is not as found, once, and again when it has no effect; answers whether anything was."""
        patch = status_patch(document, findings, self._clock.now())
        uid, now = str(document["metadata"].get("uid") or ""), self._clock.monotonic()
        said = self._reported.get(name)
        saying = _Saying(uid, without_times(patch), now)
        is_repeated = said is not None and said[:2] == saying[:2] and now - said.at < REPEAT_SECONDS - 1
        if patch and not is_repeated:
            self._reported[name] = saying
            self._reporter.status(ObjectKey(MANAGED_SEED, *name), uid, patch)
        return bool(patch)

    async def _tell(self, name: ShootName, document: Document, findings: tuple[Finding, ...]) -> None:
        """Leave an Event when the last finding is another one; it is news, so an outage of the bus may swallow it."""
        if not findings or self._said.get(name) == findings[-1]:
            return
        found = self._said[name] = findings[-1]
        is_news = "conditions" in status_patch(document, (found,), self._clock.now())
        if not is_news or found.reason == DELETED:  # nothing is left then that an Event could be about
            return
        kind = "Warning" if found.reason == refused("").reason else "Normal"
        uid = str(document["metadata"].get("uid") or "")
        try:
            await self._reporter.event(
                ObjectKey(MANAGED_SEED, *name), uid, kind=kind, reason=found.reason, message=found.message
            )
        except Unavailable as error:
            _log.info("event.lost", managed_seed="/".join(name), reason=error.message)

    def _jittered(self, period: timedelta) -> float:
        """Spread the syncs of those that were settled together."""
        seconds = period.total_seconds()
        return seconds * (1 + _SYNC_JITTER * random.random())
