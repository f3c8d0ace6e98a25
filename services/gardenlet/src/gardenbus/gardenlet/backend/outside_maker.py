"""Base of makers that have each step taken outside the gardenlet, by requests in JSON: `exec` and `nats`."""

from abc import abstractmethod

from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import Unsupported
from gardenbus.gardenlet.backend.directory_maker import DirectoryMaker
from gardenbus.gardenlet.backend.port import Kept, KubeconfigRequest, StepFailed, StepRequest
from gardenbus.gardenlet.backend.step_responses import StepResponse
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import HIBERNATED, ShootName
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS, CheckError, technical_id

HEALTH = "health"
"""Name of the request that looks whether a shoot is well; it is no step of a flow."""

MOST_KEPT_BYTES = 800_000
"""Of all steps of a shoot: it moves in one message, of which the bus takes 1 MiB from a gardenlet with an identity."""


class OutsideMaker(DirectoryMaker):
    """See the module. With `request_step` it implements `backend.port.Maker`."""

    checks_health = True
    """True where somebody responds to `health`."""

    @abstractmethod
    async def request_step(self, step: str, given: Document) -> StepResponse:
        """Have a step taken. Raises StepFailed."""

    def prepare(self) -> None:
        """Do what a step needs, while the seed is ours."""

    async def make(self, request: StepRequest) -> Document:
        """Request the step; returns what is kept of it."""
        with self.owned():
            self.prepare()
        before = dict(request.kept.get(request.step, {}))
        observed = request.observed
        given = {
            "step": request.step,
            "operation": request.operation,
            "shoot": _shoot(request.shoot, request.uid),
            "spec": {} if observed is None else observed.spec,
            "kept": request.kept,
        }
        response = await self.request_step(request.step, given)
        if response.problems:
            raise StepFailed(
                f"Step {request.step}: problems are for the response to `health`; a step reports that it has failed"
            )
        if response.kept is None:
            return before
        if (size := len(encode({**request.kept, request.step: response.kept}))) > MOST_KEPT_BYTES:
            raise StepFailed(
                f"Step {request.step}: {size} bytes would be kept of all steps, {MOST_KEPT_BYTES} at most: "
                "keep where it is, not what it is"
            )
        return response.kept

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems in the response to `health`; without a response that is one itself, and others are unknown."""
        if not self.checks_health or kept.get(CONTROL_PLANE, {}).get(HIBERNATED):
            return {}
        given = {"step": HEALTH, "shoot": _shoot(observed.full_name, observed.uid), "spec": observed.spec, "kept": kept}
        try:
            return (await self.request_step(HEALTH, given)).problems
        except StepFailed as error:
            unknown: dict[str, str] = dict.fromkeys((*CONDITIONS, *CONSTRAINTS), CheckError(error.message))
            return unknown | {"ControlPlaneHealthy": error.message}

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """None: who takes the steps has none to give. Raises Unsupported."""
        name = "/".join(request.shoot)
        raise Unsupported(
            f"shoot {name} is made outside of the gardenlet (backend {self.context.settings.type}): no kubeconfigs"
        )


def _shoot(shoot: ShootName, uid: str) -> Document:
    return {"namespace": shoot[0], "name": shoot[1], "uid": uid, "technicalID": technical_id(*shoot)}
