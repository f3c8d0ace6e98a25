"""A seed on this machine: shoots are kept as files, steps take time, and failures can be asked for.

What a step makes and the note that it is done are one write, so that a run that was cut at any instant goes on exactly
where it stood. Some steps make something that lasts (an identity): it is kept when the step is repeated, and taken from
what another seed saved when the shoot is restored here.

    annotation on a Shoot                     what it does
    local.backend.gardenbus.io/fail           `<step>=<ERROR_CODE>[,times=N]`, several separated by `;`
    local.backend.gardenbus.io/unhealthy      `<condition type>=<sentence>`, several separated by `;`

    file in the seed's directory              what it does
    healthz-fails                             the seed's `/healthz` answers 500
    system-components-fail                    SeedSystemComponentsHealthy turns False
    buckets-fail                              buckets can be neither made nor removed
"""

import secrets
from pathlib import Path

import msgspec

from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.local_health import HealthServer
from gardenbus.gardenlet.backend.port import Fence, FencedOff, ShootName, StepFailed
from gardenbus.gardenlet.decide.configuration import BackendSettings
from gardenbus.gardenlet.decide.failures import FailureRequest, parse_failure_requests
from gardenbus.gardenlet.decide.flows import DESTROYS
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord, with_step_done
from gardenbus.gardenlet.decide.status import CONDITIONS, CONSTRAINTS, technical_id

FAIL_ANNOTATION = "local.backend.gardenbus.io/fail"
UNHEALTHY_ANNOTATION = "local.backend.gardenbus.io/unhealthy"
_TAKE_OVER_PAUSE_SECONDS = 0.05
_LASTING = {"secrets": "ca", "infrastructure": "network", "dns-record": "zone", "etcd": "volume", "machines": "pool"}
"""Steps that make something that must survive a repetition and a move, and what it is called."""


class LocalBackend:
    """One seed in `directory`. Implements `backend.port.Backend`."""

    kubernetes_version = "1.34.1"

    def __init__(
        self, directory: Path, settings: BackendSettings, clock: Clock, files: LocalFiles | None = None
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._files = files or LocalFiles(directory)
        self._health = HealthServer(directory / "healthz-fails")

    async def start(self) -> None:
        """Make the directory and serve `/healthz`."""
        self._files.open()
        await self._health.start()

    async def stop(self) -> None:
        """Stop serving and let go of the directory."""
        await self._health.stop()
        self._files.close()

    @property
    def health_url(self) -> str:
        """Where the seed answers."""
        return f"{self._health.url}/healthz"

    async def take_over(self, fence: Fence) -> None:
        """Become the owner of the directory. Raises FencedOff."""
        while not self._files.take_over(fence):
            await self._clock.sleep(_TAKE_OVER_PAUSE_SECONDS)

    def shoots(self) -> list[ShootName]:
        """Every shoot that has a file."""
        return self._files.shoots()

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """Read its file."""
        return self._files.load(shoot)

    def save(self, record: ShootRecord) -> None:
        """Write its file. Raises FencedOff."""
        self._files.save(record)

    def forget(self, shoot: ShootName) -> None:
        """Remove its file. Raises FencedOff."""
        self._files.remove(shoot)

    async def perform(self, shoot: ShootName, step: str, told: ShootTold | None) -> ShootRecord:
        """Take the step's time, then write what it made together with its completion."""
        before = self._required(shoot)
        assert before.run is not None
        await self._clock.sleep(self._settings.step_seconds_by_name.get(step, self._settings.step_seconds))
        self._fail_as_asked(shoot, step, told)
        record = self._required(shoot)
        if record.run is None or record.run.number != before.run.number:
            raise FencedOff(f"{technical_id(*shoot)} is in another run by now")
        if step in record.run.done:
            return record
        record = with_step_done(record, step)
        made = {"operation": record.run.operation if record.run else "", "at": timestamp(self._clock.now())}
        if step in _LASTING:
            field, known = _LASTING[step], record.resources.get(step) or record.state.get(step) or {}
            made[field] = known.get(field) or secrets.token_hex(8)
        resources = {name: value for name, value in record.resources.items() if name not in DESTROYS.get(step, ())} | (
            {} if step in DESTROYS else {step: made}
        )
        record = msgspec.structs.replace(record, resources=resources)
        self._files.save(record)
        return record

    async def problems(self, told: ShootTold) -> dict[str, str]:
        """What the annotation says; what it names wrongly is ignored."""
        found: dict[str, str] = {}
        for part in told.annotations.get(UNHEALTHY_ANNOTATION, "").split(";"):
            kind, _, sentence = part.strip().partition("=")
            if kind in CONDITIONS or kind in CONSTRAINTS:
                found[kind] = sentence or "Unhealthy, as asked for."
        return found

    async def seed_problem(self) -> str | None:
        """Whether the switch is on."""
        return "Failing, as asked for." if (self._directory / "system-components-fail").exists() else None

    async def ensure_bucket(self, name: str) -> None:
        """Make the directory."""
        self._refuse_buckets()
        self._files.make_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the directory."""
        self._refuse_buckets()
        self._files.remove_bucket(name)

    def _refuse_buckets(self) -> None:
        if (self._directory / "buckets-fail").exists():
            raise StepFailed("The bucket is out of reach, as asked for.", ("ERR_INFRA_DEPENDENCIES",))

    def _required(self, shoot: ShootName) -> ShootRecord:
        record = self._files.load(shoot)
        if record is None:
            raise FencedOff(f"{technical_id(*shoot)} is gone")
        return record

    def _fail_as_asked(self, shoot: ShootName, step: str, told: ShootTold | None) -> None:
        for request in (*self._requests(told), *self._settings.failures):
            if request.step != step:
                continue
            record = self._required(shoot)
            count = record.failed.get(request.text, 0)
            if request.times is not None and count >= request.times:
                continue
            self._files.save(msgspec.structs.replace(record, failed={**record.failed, request.text: count + 1}))
            raise StepFailed(f"{request.code}, as asked for.", (request.code,))

    def _requests(self, told: ShootTold | None) -> tuple[FailureRequest, ...]:
        try:
            return parse_failure_requests(told.annotations.get(FAIL_ANNOTATION, "")) if told else ()
        except ValueError as error:
            raise StepFailed(f"{FAIL_ANNOTATION}: {error}", ("ERR_CONFIGURATION_PROBLEM",)) from error
