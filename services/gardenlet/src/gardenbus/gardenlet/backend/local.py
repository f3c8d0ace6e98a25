"""Local seed backend: shoots are files, steps take time, and failures can be injected.

A step's result and its completion are one write, so that a run that was cut at any point resumes exactly there. Some
steps make a lasting identity: it is kept when the step is repeated, and restored from the ShootState after a migration.

    annotation on a Shoot                     effect
    local.backend.gardenbus.io/fail           `<step>=<ERROR_CODE>[,times=N]`, several separated by `;`
    local.backend.gardenbus.io/unhealthy      `<condition type>=<sentence>`, several separated by `;`

    file in the seed's directory              effect
    healthz-fails                             the seed's `/healthz` returns 500
    system-components-fail                    SeedSystemComponentsHealthy turns False
    buckets-fail                              buckets can be neither made nor removed
"""

import secrets
from pathlib import Path

import msgspec

from gardenbus.common.api.configuration.failure_injection import FailureRequest, parse_step_failures
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.gardenlet.backend.health_server import HealthServer
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken, StepFailed
from gardenbus.gardenlet.domain.flows import DESTROYS
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord, with_step_done
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS, technical_id

FAIL_ANNOTATION = "local.backend.gardenbus.io/fail"
UNHEALTHY_ANNOTATION = "local.backend.gardenbus.io/unhealthy"
_ACQUIRE_RETRY_SECONDS = 0.05
_LASTING = {"secrets": "ca", "infrastructure": "network", "dns-record": "zone", "etcd": "volume", "machines": "pool"}
"""Steps whose result must survive a repetition and a migration, with the name of its identity."""


class LocalSeedBackend:
    """One seed in `directory`. Implements `backend.port.SeedBackend`."""

    kubernetes_version = "1.34.1"
    healthy_message = "Simulated by the local backend: there is nothing to look at."

    def __init__(
        self, directory: Path, settings: ShootBackendSettings, clock: Clock, files: LocalFiles | None = None
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
        """Stop serving and close the directory."""
        await self._health.stop()
        self._files.close()

    @property
    def health_url(self) -> str:
        """URL of `/healthz`."""
        return f"{self._health.url}/healthz"

    async def acquire(self, fencing_token: FencingToken) -> None:
        """Become the owner of the directory. Raises StaleFencingToken."""
        while not self._files.acquire(fencing_token):
            await self._clock.sleep(_ACQUIRE_RETRY_SECONDS)

    def shoots(self) -> list[ShootName]:
        """Every shoot with a file."""
        return self._files.shoots()

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """Read the shoot's file."""
        return self._files.load(shoot)

    def save(self, record: ShootRecord) -> None:
        """Write the shoot's file. Raises StaleFencingToken."""
        self._files.save(record)

    def forget(self, shoot: ShootName) -> None:
        """Remove the shoot's file. Raises StaleFencingToken."""
        self._files.remove(shoot)

    async def perform(self, shoot: ShootName, step: str, observed: ObservedShoot | None) -> ShootRecord:
        """Take the step's time, then write its result together with its completion."""
        before = self._required(shoot)
        assert before.run is not None
        await self._clock.sleep(self._settings.step_seconds_by_name.get(step, self._settings.step_seconds))
        self._inject_failure(shoot, step, observed)
        record = self._required(shoot)
        if record.run is None or record.run.number != before.run.number:
            raise StaleFencingToken(f"{technical_id(*shoot)} is in another run by now")
        if step in record.run.done:
            return record
        record = with_step_done(record, step)
        made = {"operation": record.run.operation if record.run else "", "at": timestamp(self._clock.now())}
        if step in _LASTING:
            field, previous = _LASTING[step], record.resources.get(step) or record.state.get(step) or {}
            made[field] = previous.get(field) or secrets.token_hex(8)
        resources = {name: value for name, value in record.resources.items() if name not in DESTROYS.get(step, ())} | (
            {} if step in DESTROYS else {step: made}
        )
        record = msgspec.structs.replace(record, resources=resources)
        self._files.save(record)
        return record

    async def problems(self, observed: ObservedShoot) -> dict[str, str]:
        """Problems from the annotation; unknown types are ignored."""
        found: dict[str, str] = {}
        for part in observed.annotations.get(UNHEALTHY_ANNOTATION, "").split(";"):
            kind, _, sentence = part.strip().partition("=")
            if kind in CONDITIONS or kind in CONSTRAINTS:
                found[kind] = sentence or "Unhealthy, as asked for."
        return found

    async def seed_problem(self) -> str | None:
        """Problem from the switch `system-components-fail`."""
        return "Failing, as asked for." if (self._directory / "system-components-fail").exists() else None

    async def ensure_bucket(self, name: str) -> None:
        """Make the bucket's directory."""
        self._fail_buckets()
        self._files.make_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the bucket's directory."""
        self._fail_buckets()
        self._files.remove_bucket(name)

    def _fail_buckets(self) -> None:
        if (self._directory / "buckets-fail").exists():
            raise StepFailed("The bucket is out of reach, as asked for.", ("ERR_INFRA_DEPENDENCIES",))

    def _required(self, shoot: ShootName) -> ShootRecord:
        record = self._files.load(shoot)
        if record is None:
            raise StaleFencingToken(f"{technical_id(*shoot)} is gone")
        return record

    def _inject_failure(self, shoot: ShootName, step: str, observed: ObservedShoot | None) -> None:
        for request in (*self._requests(observed), *self._settings.failures):
            if request.step != step:
                continue
            record = self._required(shoot)
            count = record.failed.get(request.text, 0)
            if request.times is not None and count >= request.times:
                continue
            self._files.save(msgspec.structs.replace(record, failed={**record.failed, request.text: count + 1}))
            raise StepFailed(f"{request.argument}, as asked for.", (request.argument,))

    def _requests(self, observed: ObservedShoot | None) -> tuple[FailureRequest, ...]:
        try:
            return parse_step_failures(observed.annotations.get(FAIL_ANNOTATION, "")) if observed else ()
        except ValueError as error:
            raise StepFailed(f"{FAIL_ANNOTATION}: {error}", ("ERR_CONFIGURATION_PROBLEM",)) from error
