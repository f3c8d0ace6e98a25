"""Simulation of a seed: steps take time and make nothing, and failures can be injected.

Some steps have a lasting identity: it is kept when the step is repeated, and restored from the ShootState after a
migration.

    annotation on a Shoot                     effect
    local.backend.gardenbus.io/fail           `<step>=<ERROR_CODE>[,times=N]`, several separated by `;`
    local.backend.gardenbus.io/unhealthy      `<condition type>=<sentence>`, several separated by `;`

    file in the seed's directory              effect
    healthz-fails                             the seed's `/healthz` returns 500
    system-components-fail                    SeedSystemComponentsHealthy turns False
    buckets-fail                              buckets can be neither made nor removed
"""

import secrets

from gardenbus.common.api.configuration.failure_injection import FailureRequest, parse_step_failures
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.errors import Unsupported
from gardenbus.gardenlet.backend.directory_maker import DirectoryMaker
from gardenbus.gardenlet.backend.port import Kept, KubeconfigRequest, MakerContext, StepFailed, StepRequest
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import HIBERNATED
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS

FAIL_ANNOTATION = "local.backend.gardenbus.io/fail"
UNHEALTHY_ANNOTATION = "local.backend.gardenbus.io/unhealthy"
_LASTING = {"secrets": "ca", "infrastructure": "network", "dns-record": "zone", "etcd": "volume", "machines": "pool"}
"""Steps whose result must survive a repetition and a migration, with the name of its identity."""


class LocalMaker(DirectoryMaker):
    """The backend `local`. Implements `backend.port.Maker`."""

    healthy_message = "Simulated by the local backend: there is nothing to check."

    def __init__(self, context: MakerContext) -> None:
        super().__init__(context)
        self._settings = context.settings
        self._clock = context.clock

    async def make(self, request: StepRequest) -> Document:
        """Take the step's time, then fail as requested; what lasts is made once, and a shoot sleeps that shall."""
        step = request.step
        await self._clock.sleep(self._settings.step_seconds_by_name.get(step, self._settings.step_seconds))
        self._inject_failure(request)
        if step == CONTROL_PLANE and request.observed is not None and is_hibernation_enabled(request.observed.spec):
            return {HIBERNATED: True}
        field = _LASTING.get(step)
        return {} if field is None else {field: request.kept.get(step, {}).get(field) or secrets.token_hex(8)}

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems from the annotation, unless the shoot sleeps; unknown types are ignored."""
        found: dict[str, str] = {}
        if kept.get(CONTROL_PLANE, {}).get(HIBERNATED):
            return found
        for part in observed.annotations.get(UNHEALTHY_ANNOTATION, "").split(";"):
            kind, _, sentence = part.strip().partition("=")
            if kind in CONDITIONS or kind in CONSTRAINTS:
                found[kind] = sentence or "Unhealthy, as requested."
        return found

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """None: there is no API server. Raises Unsupported."""
        raise Unsupported(f"shoot {'/'.join(request.shoot)} is simulated: it has no API server")

    async def seed_problem(self) -> str | None:
        """Problem from the switch `system-components-fail`."""
        return "Failing, as requested." if (self.directory / "system-components-fail").exists() else None

    async def ensure_bucket(self, name: str) -> None:
        """Make the bucket's directory."""
        self._fail_buckets()
        await super().ensure_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the bucket's directory."""
        self._fail_buckets()
        await super().delete_bucket(name)

    def _fail_buckets(self) -> None:
        if (self.directory / "buckets-fail").exists():
            raise StepFailed("The bucket is unreachable, as requested.", ("ERR_INFRA_DEPENDENCIES",))

    def _inject_failure(self, request: StepRequest) -> None:
        for each in (*_requested_failures(request.observed), *self._settings.failures):
            if each.step == request.step and (each.times is None or request.failures.get(each.text, 0) < each.times):
                raise StepFailed(f"{each.argument}, as requested.", (each.argument,), counted_as=each.text)


def _requested_failures(observed: ObservedShoot | None) -> tuple[FailureRequest, ...]:
    try:
        return parse_step_failures(observed.annotations.get(FAIL_ANNOTATION, "")) if observed else ()
    except ValueError as error:
        raise StepFailed(f"{FAIL_ANNOTATION}: {error}", ("ERR_CONFIGURATION_PROBLEM",)) from error
