"""The fuzzer in process: millions of inputs through the pure steps, on as many processes as are wanted."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TextIO

from gardenbus.apiserver.domain import merging
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError
from tests.fuzz.corpus import Template, template_of, templates
from tests.fuzz.findings import Finding, Findings, resident_bytes
from tests.fuzz.generator import Generator
from tests.fuzz.targets import Targets
from tests.fuzz.world import RUNNING, World, stored_object

SLOWEST_SECONDS = 1.0
"""Processor time after which an input counts as one that stops a service for everybody else."""

CHUNK = 20_000
SAMPLE = 400
REPORTED = 5
"""Chunks between two reports of how far it is."""


def stored_world() -> tuple[World, Sequence[Template]]:
    """A world of the corpus' valid manifests, and the templates of what is stored there."""
    world = World()
    for document in RUNNING:
        world.add(stored_object(document))
    for _ in range(2):  # some need others, which come after them
        for template in templates():
            _add_valid(world, template.document)
    return world, [template_of(stored.document()) for stored in world.objects.values()]


def _add_valid(world: World, document: Document) -> None:
    try:
        if key_of(document) not in world.objects:
            world.add(stored_object(Targets(world).admitted(document, None)))
    except GardenbusError:
        pass


class Fuzzer:
    """A world, its targets and the generator of one seed."""

    def __init__(self, seed: int) -> None:
        world, stored = stored_world()
        self.world = world
        self._targets = Targets(world)
        self._generator = Generator(templates(), stored, seed)

    def sample(self, number: int) -> str:
        """The input of a number, as text."""
        return repr(self._generator.input(number))

    def run(self, numbers: range) -> Findings:
        """Run the inputs of these numbers."""
        findings = Findings()
        began, began_processor = time.perf_counter(), time.process_time()
        clock, draw, run, outcomes = time.process_time, self._generator.input, self._targets.run, findings.outcomes
        slowest, slowest_number = 0.0, -1
        for number in numbers:
            given = draw(number)
            at = clock()
            try:
                outcomes[run(given)] += 1
            except Exception as error:  # noqa: BLE001 - any exception is what is looked for
                outcomes["raised"] += 1
                findings.add_exception(error, number, repr(given)[:SAMPLE])
            took = clock() - at
            if took > slowest:
                slowest, slowest_number = took, number
                if took > SLOWEST_SECONDS:
                    findings.add(Finding(f"slow {given.target}", f"took {took:.2f} s", number, repr(given)[:SAMPLE]))
        findings.inputs = len(numbers)
        findings.slowest = (slowest, slowest_number)
        findings.seconds = time.perf_counter() - began
        findings.processor_seconds = time.process_time() - began_processor
        findings.memory.append(resident_bytes())
        return findings


_fuzzers: dict[int, Fuzzer] = {}


def _run_chunk(seed: int, first: int, last: int) -> tuple[int, Findings]:
    if seed not in _fuzzers:
        _fuzzers[seed] = Fuzzer(seed)
    return os.getpid(), _fuzzers[seed].run(range(first, last))


def fuzz_process(inputs: int, seed: int, *, processes: int = 1, first: int = 0, log: TextIO | None = None) -> Findings:
    """Run inputs on some processes, and say from time to time how far it is."""
    chunks = [(start, min(start + CHUNK, first + inputs)) for start in range(first, first + inputs, CHUNK)]
    total, began = Findings(), time.perf_counter()
    memory: dict[int, list[int]] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_run_chunk, seed, *chunk) for chunk in chunks]
        for done, finished in enumerate(as_completed(waiting), 1):
            pid, findings = finished.result()
            memory.setdefault(pid, []).extend(findings.memory)
            total.add_all(findings)
            total.seconds = time.perf_counter() - began
            total.memory = max(memory.values(), key=len)
            if log is not None and done % REPORTED == 0:
                print("\n".join((f"--- {total.inputs} of {inputs}", *total.lines())), file=log, flush=True)
    return total


def sendable(world: World) -> Sequence[Template]:
    """Templates of what a world stores as a client sends it: without versions and uids."""
    return [template_of(merging.without_system_fields(document)) for document in world.documents.values()]
