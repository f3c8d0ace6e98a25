"""Harness: a landscape, its clients, and rounds of faults; after each round every invariant is awaited and checked."""

import asyncio
import contextlib
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import nats
from nats.aio.client import Client

from tests.chaos import manifests
from tests.chaos.clients import Crowd
from tests.chaos.faults import FaultMaker, Skipped
from tests.chaos.invariants import ControlPlaneHistory, Violation, breaches, unsettled
from tests.chaos.kube_watchers import KubeWatchers
from tests.chaos.landscape import ChaosLandscape
from tests.chaos.ledger import Ledger
from tests.chaos.observing import NotSeen, Observer, Versions
from tests.chaos.plan import KINDS, MOST_IN_A_ROUND, Fault, Targets, rounds
from tests.chaos.report import RoundRecord, RunFacts
from tests.chaos.stranger import StrangerGardenlet

CHECK_INTERVAL_SECONDS = 0.5
COPY_EVERY_ROUNDS = 5
Report = Callable[[str], None]


class Plan(NamedTuple):
    """What a run shall do."""

    seed: int
    seconds: float
    faults: int
    kinds: Sequence[str] = tuple(KINDS)
    convergence_seconds: float = 90.0
    together: int = MOST_IN_A_ROUND
    failures: int = 1
    """The run ends after so many rounds in which an invariant did not hold."""
    is_cluster: bool = False


class Attempt:
    """One life of a landscape: from its start to its end, or to the first violation."""

    def __init__(self, landscape: ChaosLandscape, client: Client, plan: Plan, report: Report) -> None:
        self.landscape = landscape
        self.ledger = Ledger()
        self.stranger = StrangerGardenlet(landscape.nats_urls)
        self.crowd = Crowd(client, self.ledger, plan.seed)
        self.observer = Observer(landscape, self.stranger, client)
        self.versions = Versions()
        self.watchers = KubeWatchers(landscape)
        self._history = ControlPlaneHistory()
        self._left_behind = 0
        self._plan = plan
        self._report = report
        self._client = client
        self._faults = FaultMaker(landscape, self.stranger, quiet=self._quiet, resume=self.crowd.resume)

    async def start(self) -> None:
        """Apply what has to be there, and let the clients begin."""
        await self._client.subscribe(f"garden.changed.shoot.{manifests.NAMESPACE}.>", cb=self.versions.take)  # pyright: ignore[reportUnknownMemberType]
        self.stranger.start()
        self.watchers.start()
        for document in manifests.beginning():
            await self.crowd.placer.send(document)
        self.crowd.start()
        self.crowd.pause()
        problems = await self._settled()
        if problems:
            raise RuntimeError(f"the landscape does not settle before the first fault: {problems}")
        await self._faults.copy_stores()
        self.crowd.resume()

    async def stop(self) -> None:
        """End the clients."""
        await self.crowd.stop()
        await self.watchers.stop()
        await self.stranger.kill()

    async def round(self, number: int, faults: Sequence[Fault]) -> RoundRecord:
        """Do the faults of a round while clients go on; then wait until everything is settled."""
        skipped: list[str] = []
        results = await asyncio.gather(*(self._faults.do(each) for each in faults), return_exceptions=True)
        violations: list[Violation] = []
        for fault, result in zip(faults, results, strict=True):
            if isinstance(result, Skipped):
                skipped.append(f"{fault.kind} {fault.target}: {result}")
            elif isinstance(result, AssertionError):
                violations.append(Violation("unrepaired", f"{fault.text}: {result}"))
            elif result is not None:
                raise result
        done = [fault for fault, result in zip(faults, results, strict=True) if not isinstance(result, Skipped)]
        began = time.monotonic()
        violations += await self._settled()
        seconds = time.monotonic() - began
        if not violations and number % COPY_EVERY_ROUNDS == 0:
            await self._faults.copy_stores()
        if violations:
            await self._note_streams()
        else:
            self.crowd.resume()
        return RoundRecord(number, done, None if violations else seconds, violations, skipped, self._left_behind)

    async def _note_streams(self) -> None:
        announced = json.dumps(await self.observer.streams(), indent=1)
        (self.landscape.directory.path / "streams.json").write_text(announced)

    async def _quiet(self) -> None:
        problems = await self._settled()
        assert not problems, f"not settled before the restore: {problems}"

    async def _settled(self) -> list[Violation]:
        """Wait until every invariant holds; returns those that do not in the end, and those that never may be."""
        self.crowd.pause()
        deadline = time.monotonic() + self._plan.convergence_seconds
        while True:
            problems = await self._check()
            if not problems or time.monotonic() > deadline or any(each.kind in FATAL for each in problems):
                return problems
            await asyncio.sleep(CHECK_INTERVAL_SECONDS)

    async def _check(self) -> list[Violation]:
        if unfinished := self.crowd.unfinished():
            return unfinished
        try:
            seen = await self.observer.observe()
            if found := breaches(seen):  # read one after the other: what is true is seen twice
                again = breaches(await self.observer.observe())
                found = [each for each in found if each in again]
        except NotSeen as error:
            return [Violation("unanswered", str(error))]
        self._left_behind = seen.left_behind
        waiting = unsettled(seen, self.ledger, self.crowd.placer.value)
        found += self._history.breaches(seen, self.ledger, is_settled=not waiting)
        found += [*self.crowd.take_violations(), *self.versions.backwards, *self.watchers.breaches()]
        waiting += self.watchers.behind(seen.shoots)
        self.versions.backwards.clear()
        if not found and not waiting:
            self.ledger.forget_gone(set(seen.shoots))
            return await self.observer.doctor()
        return found or waiting


FATAL = frozenset({"overfilled", "together", "torn down", "backwards", "refused"})
"""Violations that no waiting makes good."""


class Run:
    """A run over as many landscapes as it takes: after a violation it goes on with a fresh one."""

    def __init__(self, plan: Plan, directory: Path, report: Report) -> None:
        self.rounds: list[RoundRecord] = []
        self.memory_mb: defaultdict[str, list[float]] = defaultdict(list)
        self._plan = plan
        self._directory = directory
        self._report = report
        self._acknowledged = self._requests = self._watched = 0
        self._began = time.monotonic()

    def facts(self, command: str) -> RunFacts:
        """What is known so far."""
        return RunFacts(
            seed=self._plan.seed,
            seconds=time.monotonic() - self._began,
            acknowledged=self._acknowledged,
            requests=self._requests,
            watched=self._watched,
            memory_mb={
                name: [round(sizes[0]), round(sizes[-1]), round(max(sizes))]
                for name, sizes in sorted(self.memory_mb.items())
            },
            command=command,
        )

    async def run(self, after_round: Callable[[], None]) -> None:
        """Do rounds until the time is over, the faults are done, or too much has failed."""
        planned = None
        while not self._is_over():
            directory = self._directory / f"landscape-{len(self._failed()) + 1}"
            landscape = ChaosLandscape(directory, report=lambda text: None, is_cluster=self._plan.is_cluster)
            mounted = mount_stores(landscape)
            self._report(f"landscape in {directory}{'' if mounted else ', without file systems of its own'}")
            try:
                await landscape.start()
                planned = planned or self._rounds(landscape)
                client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
                    landscape.nats_urls,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.1,
                    ping_interval=2,
                    max_outstanding_pings=2,
                    error_cb=_quiet_error,
                )
                attempt = Attempt(landscape, client, self._plan, self._report)
                try:
                    await attempt.start()
                    while not self._is_over():
                        record = await attempt.round(len(self.rounds) + 1, next(planned))
                        self._keep(record, attempt)
                        after_round()
                        if record.violations:
                            break
                finally:
                    await attempt.stop()
                    await client.close()
            finally:
                await landscape.stop()
            self._clean(directory)

    def _rounds(self, landscape: ChaosLandscape) -> Iterator[Sequence[Fault]]:
        targets = fixed(landscape.targets())
        return rounds(self._plan.seed, targets, self._plan.kinds, together=self._plan.together)

    def _keep(self, record: RoundRecord, attempt: Attempt) -> None:
        self.rounds.append(record)
        self._acknowledged += attempt.ledger.acknowledged
        attempt.ledger.acknowledged = 0
        self._requests += attempt.crowd.requests
        self._watched += attempt.watchers.take_received()
        for client in attempt.crowd.clients:
            client.requests = 0
        for name, size in attempt.landscape.memory_mb().items():
            self.memory_mb[name].append(size)
        faults = "; ".join(fault.text for fault in record.faults) or "nothing"
        settled = "NOT SETTLED" if record.settled_seconds is None else f"settled after {record.settled_seconds:.1f} s"
        count = sum(len(each.faults) for each in self.rounds)
        self._report(
            f"{time.monotonic() - self._began:6.0f} s, round {record.number}, {count} faults: {faults}: {settled}"
        )
        for text in record.skipped:
            self._report(f"    skipped: {text}")
        for violation in record.violations:
            self._report(f"    {violation.kind}: {violation.text}")

    def _failed(self) -> list[RoundRecord]:
        return [each for each in self.rounds if each.violations]

    def _is_over(self) -> bool:
        return (
            time.monotonic() - self._began > self._plan.seconds
            or sum(len(each.faults) for each in self.rounds) >= self._plan.faults
            or len(self._failed()) >= self._plan.failures
        )

    def _clean(self, directory: Path) -> None:
        """Keep the logs and files of a landscape that failed, and nothing of the others."""
        if not self.rounds or not self.rounds[-1].violations:
            with contextlib.suppress(OSError):
                shutil.rmtree(directory)


def mount_stores(landscape: ChaosLandscape) -> bool:
    """Give each server a small file system, where this process may mount one."""
    from tests.chaos.mounts import mount_small  # noqa: PLC0415 - Linux only

    mounted = [mount_small(landscape.store(server)) for server in landscape.stores]
    return all(mounted)


def fixed(targets: Targets) -> Targets:
    """The targets in an order that does not depend on when each was started."""
    return Targets(*(tuple(sorted(each)) for each in targets))


async def _quiet_error(_error: Exception) -> None:
    """The client reconnects; its outages are ours."""
