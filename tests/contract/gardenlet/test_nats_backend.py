"""The backend `nats`, on real NATS: with the responder of docs/backends.md it behaves as every maker does."""

import hashlib
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import encode, section
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import Request
from gardenbus.gardenlet.backend.installed import new_maker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.nats.maker import MOST_REQUEST_BYTES
from gardenbus.gardenlet.backend.port import FencingToken, Maker, MakerContext, StepFailed, StepRequest
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.clients.extension_requests import ExtensionRequests
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import CheckError
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.maker_conformance import SHOOT, MakerConformance
from tests.support.servers import Server
from tests.support.sessions import ROOT

RESPONDER = ROOT / "examples" / "backend" / "nats_backend.py"
PAGE = ROOT / "docs" / "backends.md"
OBSERVED = ObservedShoot.of(a_shoot(), uid="u1", version=1, role="run")
_prefixes = (f"nats-backend{number}" for number in itertools.count())


class Responder(NamedTuple):
    """The program of the page, which runs."""

    url: str
    subjects: Subjects
    folder: Path


@pytest.fixture(scope="module")
def responder(shared_nats_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Responder]:
    running = Responder(shared_nats_server.url, Subjects(next(_prefixes)), tmp_path_factory.mktemp("responder"))
    with a_responder(running, running.subjects.extension("*", "*")):
        yield running


class a_responder:  # noqa: N801  reads like a function
    """The program as a process."""

    def __init__(self, responder: Responder, subject: str) -> None:
        self._command = [sys.executable, str(RESPONDER), responder.url, subject, str(responder.folder)]

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class TestTheResponderOfThePage(MakerConformance):
    killed_in = (("Create", False), ("Delete", False))

    @pytest.fixture(autouse=True)
    async def connections(self, responder: Responder) -> AsyncIterator[None]:
        self.responder = responder
        async with AsyncExitStack() as self.opened:
            yield

    async def a_life(self, directory: Path, number: int) -> SeedBackend:
        self.bus = await self.opened.enter_async_context(
            connect(self.responder.url, "gardenlet", self.responder.subjects.prefix, manages_streams=False)
        )
        await until_responded(self.bus, self.responder.subjects)
        return await super().a_life(directory, number)

    def backend(self, directory: Path) -> SeedBackend:
        files, seed = LocalFiles(directory), a_seed_name(directory)
        requests = ExtensionRequests(self.bus, self.responder.subjects, seed)
        settings = ShootBackendSettings(type="nats")
        context = MakerContext(seed, directory, settings, FakeClock(), files.owned, extension=requests)
        return SeedBackend(new_maker(context), files, FakeClock())

    def left(self, directory: Path) -> list[str]:
        return [str(path) for path in (self.responder.folder / a_seed_name(directory)).glob("*")]

    async def test_the_file_has_the_spec_and_its_loss_is_a_problem(self, tmp_path: Path) -> None:
        backend = await self.a_life(tmp_path, 1)
        await self.run(backend, "Create", 1)
        (file,) = (Path(path) for path in self.left(tmp_path))
        assert decode_json(file.read_bytes(), dict) == self.observed().spec
        file.unlink()
        assert await backend.problems(self.observed()) == {"ControlPlaneHealthy": "Its file is gone."}
        await backend.stop()


def a_seed_name(directory: Path) -> str:
    return f"s{hashlib.sha256(str(directory).encode()).hexdigest()[:12]}"


async def until_responded(bus: JetStreamBus, subjects: Subjects) -> None:
    async def responded() -> None:
        try:
            await bus.request(subjects.extension("any", "health"), b"{}")
        except Unavailable as error:
            raise AssertionError(error.message) from error

    await eventually(responded)


def test_the_page_shows_the_responder_as_it_is_and_it_has_40_lines() -> None:
    source = RESPONDER.read_text()
    assert f"```python\n{source}```" in PAGE.read_text()
    assert len(source.splitlines()) <= 40


@pytest.fixture
async def bus(shared_nats_server: Server) -> AsyncIterator[JetStreamBus]:
    async with connect(shared_nats_server.url, "test", next(_prefixes), manages_streams=False) as opened:
        yield opened


def a_maker(directory: Path, bus: JetStreamBus, subjects: Subjects, **options: Any) -> Maker:
    files = LocalFiles(directory / "grove")
    files.open()
    assert files.acquire(FencingToken(1, 1))
    settings = ShootBackendSettings(type="nats", options=options)
    requests = ExtensionRequests(bus, subjects, "grove")
    context = MakerContext("grove", directory / "grove", settings, FakeClock(), files.owned, extension=requests)
    return new_maker(context)


def a_request(**kept: Any) -> StepRequest:
    return StepRequest(SHOOT, "u1", "etcd", "Create", OBSERVED, kept=kept)


async def a_maker_with_response(directory: Path, bus: JetStreamBus, response: bytes) -> tuple[Maker, list[Request]]:
    """A maker whose requests all get this answer, and the requests."""
    subjects, requested = Subjects(next(_prefixes)), list[Request]()

    async def respond(request: Request) -> bytes:
        requested.append(request)
        return response

    await bus.serve("answers", "1.0.0", {subjects.extensions_of("grove"): respond})
    return a_maker(directory, bus, subjects), requested


async def test_a_request_has_the_step_the_shoot_and_what_is_kept(tmp_path: Path, bus: JetStreamBus) -> None:
    maker, requested = await a_maker_with_response(tmp_path, bus, b'{"result": "done"}')
    assert await maker.make(a_request(etcd={"volume": "v1"})) == {"volume": "v1"}
    (request,) = requested
    assert request.subject.endswith(".extension.grove.etcd")
    assert decode_json(request.body, dict) == {
        "step": "etcd",
        "operation": "Create",
        "shoot": {"namespace": "garden-dev", "name": "apollo", "uid": "u1", "technicalID": "shoot--dev--apollo"},
        "spec": OBSERVED.spec,
        "kept": {"etcd": {"volume": "v1"}},
        "seed": {"name": "grove"},
    }


@pytest.mark.parametrize(
    ("response", "message", "codes"),
    [
        ({"result": "again", "message": "being made"}, "is not done yet: being made", ()),
        ({"result": "again", "codes": ["ERR_INFRA_UNAUTHORIZED"]}, "is not done yet: it gave no reason", ()),
        (
            {"result": "failed", "message": "no quota", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]},
            "has failed: no quota",
            ("ERR_INFRA_QUOTA_EXCEEDED",),
        ),
        ({"result": "failed", "codes": ["ERR_OWN"]}, "unknown codes: ERR_OWN", ()),
        ({"result": "maybe"}, "has not returned the JSON that was requested", ()),
        ({"kept": {}}, "has not returned the JSON that was requested", ()),
        ({"result": "done", "kept": {"at": "noon"}}, "must not keep at", ()),
        ({"result": "done", "problems": {"EveryNodeReady": "no"}}, "problems are for the response to `health`", ()),
    ],
)
async def test_answers_that_are_not_done_are_failures(
    tmp_path: Path, bus: JetStreamBus, response: dict[str, Any], message: str, codes: tuple[str, ...]
) -> None:
    maker, _ = await a_maker_with_response(tmp_path, bus, encode(response))
    with pytest.raises(StepFailed) as failure:
        await maker.make(a_request())
    assert failure.value.message.startswith("Step etcd: ")
    assert message in failure.value.message
    assert failure.value.codes == codes


async def test_a_shoot_that_sleeps_is_not_looked_at(tmp_path: Path, bus: JetStreamBus) -> None:
    maker, requested = await a_maker_with_response(
        tmp_path, bus, b'{"result": "done", "problems": {"EveryNodeReady": "No."}}'
    )
    assert await maker.problems(OBSERVED, {"control-plane": {"hibernated": True}}) == {}
    assert requested == []
    assert await maker.problems(OBSERVED, {}) == {"EveryNodeReady": "No."}


async def test_a_request_that_the_server_would_not_take_is_not_sent(tmp_path: Path, bus: JetStreamBus) -> None:
    maker, requested = await a_maker_with_response(tmp_path, bus, b'{"result": "done"}')
    with pytest.raises(StepFailed, match=f"{MOST_REQUEST_BYTES} at most"):
        await maker.make(a_request(secrets={"ca": "x" * MOST_REQUEST_BYTES}))
    assert requested == []


async def test_silence_is_a_failure_and_a_problem_that_name_the_subject(tmp_path: Path, bus: JetStreamBus) -> None:
    subjects = Subjects(next(_prefixes))
    maker = a_maker(tmp_path, bus, subjects, timeoutSeconds=0.1)
    with pytest.raises(StepFailed, match=f"no responder on {subjects.extension('grove', 'etcd')}"):
        await maker.make(a_request())
    nobody = f"Step health: no responder on {subjects.extension('grove', 'health')}"
    problems = await maker.problems(OBSERVED, {})
    assert set(problems.values()) == {nobody}
    assert [name for name, problem in problems.items() if not isinstance(problem, CheckError)] == [
        "ControlPlaneHealthy"
    ]
    await bus.connection.listen(subjects.extensions_of("grove"), lambda _: None)
    with pytest.raises(StepFailed, match=f"no response on {subjects.extension('grove', 'etcd')} within 0.1 s"):
        await maker.make(a_request())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"timeoutSeconds": 0}, "timeoutSeconds: must be more than zero"),
        ({"concurrentRequests": 0}, "concurrentRequests: must be more than zero"),
        ({"commands": {}}, "unknown field `commands`"),
    ],
)
async def test_wrong_options_are_named(
    tmp_path: Path, bus: JetStreamBus, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsInvalid) as error:
        a_maker(tmp_path, bus, Subjects(), **options)
    assert str(error.value).count("seed grove: backend.options of nats") == 1
    assert problem in str(error.value)


async def test_a_shoot_waits_for_somebody_who_answers_and_is_made_then(garden: Garden, tmp_path: Path) -> None:
    await garden.start(a_configuration(backend={"type": "nats"}))
    await garden.place()

    async def reports_that_nobody_responds() -> None:
        errors: list[dict[str, str]] = section(await garden.shoot(), "status").get("lastErrors") or [{}]
        first = garden.subjects.extension("aws-eu1", "namespace")
        assert f"no responder on {first}" in errors[0].get("description", "")

    await eventually(reports_that_nobody_responds)
    responder = Responder(garden.nats_url, garden.subjects, tmp_path / "responder")
    with a_responder(responder, garden.subjects.extensions_of("aws-eu1")):
        await garden.until_state("Succeeded")
        assert len(list((responder.folder / "aws-eu1").glob("*.json"))) == 1
