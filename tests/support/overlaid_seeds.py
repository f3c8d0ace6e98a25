"""Seeds whose shoots extensions take part in, on a real Kubernetes API, without a gardenlet around them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from gardenbus.common.api.configuration.gardenlet import ExtensionSettings, ShootBackendSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.extensions.maker import ExtensionsMaker
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.installed import new_maker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken, MakerContext
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.extension_objects.kinds import WAITS, WaitLimits, collection
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootName, ShootRecord
from gardenbus.gardenlet.domain.shoot_state import shoot_state, state_in, state_of
from gardenbus.gardenlet.domain.shoot_status import technical_id
from gardenbus.gardenlet.operation.flow_runner import FlowResult, run_flow
from tests.support.kube_clusters import RealCluster

SHORT_WAITS: Mapping[str, WaitLimits] = {kind: WaitLimits(0.5, 1.0, 60.0) for kind in WAITS}
"""A kind that reports errors for a second has failed."""

ADDRESS = "203.0.113.10"
"""Address of the API servers of shoots."""


class MemoryGarden:
    """The garden as a gardenlet reads it."""

    def __init__(self, *objects: Document) -> None:
        self.objects = list(objects)

    async def get(self, key: ObjectKey) -> Document | None:
        """An object by its key."""
        return next((each for each in self.objects if _key(each) == key), None)

    async def list(self, kind: str, field_selector: str = "", *, namespace: str = "") -> Sequence[Document]:
        """All objects of a kind, or those of a namespace."""
        del field_selector
        keys = [(each, _key(each)) for each in self.objects]
        return [each for each, key in keys if key.kind == kind and namespace in ("", key.namespace)]


class OverlaidSeed:
    """One seed: its backend, and the Kubernetes API that extensions act in."""

    def __init__(self, backend: SeedBackend, cluster: RealCluster) -> None:
        self.backend = backend
        self.client = cluster.client

    async def run(
        self,
        shoot: Document,
        operation: OperationType,
        *,
        restored_from: Document | None = None,
        is_forced: bool = False,
        resumes: bool = False,
    ) -> FlowResult:
        """Run an operation on a shoot, from the ShootState that it is restored from; or go on with one."""
        name = name_of_shoot(shoot)
        uid = f"uid-{name[1]}"
        before = self.backend.load(name)
        record = before or ShootRecord(namespace=name[0], name=name[1], uid=uid)
        number = record.run.number + 1 if record.run else 1
        run = Run(operation=operation, generation=1, number=number, is_forced=is_forced)
        if (
            before is not None
            and before.run is not None
            and before.run.operation == operation
            and (before.attempts or resumes)
        ):
            run = before.run
        state = state_in(restored_from, uid) or {}
        if operation == "Migrate" and run is not record.run:
            state = record.state | state_of(record)
        record = msgspec.structs.replace(
            record,
            run=run,
            has_workers=bool(section(shoot, "spec", "provider").get("workers")),
            has_extensions=self.backend.has_extensions,
            state=record.state | state,
        )
        self.backend.save(record)
        return await run_flow(
            self.backend,
            record,
            observed_shoot(shoot),
            is_wanted=lambda: True,
            on_progress=lambda _record, _tasks: None,
        )

    async def objects(self, shoot: Document, kind: str) -> dict[str, Document]:
        """Extension objects of a shoot by name."""
        found = await self.client.items(collection(kind, namespace_of_shoot(shoot)))
        return {str(section(each, "metadata")["name"]): each for each in found}

    async def all_objects(self, shoot: Document) -> list[tuple[str, str]]:
        """Kinds and names of all extension objects of a shoot."""
        return [(kind, name) for kind in WAITS for name in sorted(await self.objects(shoot, kind))]


def name_of_shoot(shoot: Document) -> ShootName:
    """Namespace and name."""
    metadata = section(shoot, "metadata")
    return str(metadata["namespace"]), str(metadata["name"])


def namespace_of_shoot(shoot: Document) -> str:
    """The namespace of its control plane."""
    return technical_id(*name_of_shoot(shoot))


def observed_shoot(shoot: Document) -> ObservedShoot:
    """The shoot as its gardenlet observes it."""
    return ObservedShoot.of(shoot, uid=f"uid-{name_of_shoot(shoot)[1]}", version=1, role="run")


def saved_state(seed: OverlaidSeed, shoot: Document) -> Document:
    """The ShootState of a shoot that has left a seed."""
    record = seed.backend.load(name_of_shoot(shoot))
    assert record is not None
    return shoot_state(observed_shoot(shoot), record.state, generation=1)


@asynccontextmanager
async def overlaid_seed(
    directory: Path,
    cluster: RealCluster,
    garden: MemoryGarden,
    *,
    kinds: Sequence[str] = tuple(WAITS),
    waits: Mapping[str, WaitLimits] = SHORT_WAITS,
    settings: ShootBackendSettings | None = None,
    token: int = 1,
) -> AsyncGenerator[OverlaidSeed]:
    """A seed that ends with the block; its control planes are simulated, unless the settings say otherwise."""
    directory.mkdir(exist_ok=True, parents=True)
    (directory / "seed.kubeconfig").write_text(cluster.kubeconfig)
    clock, files = SystemClock(), LocalFiles(directory)
    settings = settings or ShootBackendSettings(step_seconds=0.0)
    context = MakerContext(directory.name, directory, settings, clock, files.owned, garden=garden)
    api = SeedAPI(directory / "seed.kubeconfig", clock, files.owned)
    extensions = ExtensionSettings(kubeconfig="seed.kubeconfig", kinds=kinds, address=ADDRESS)
    maker = ExtensionsMaker(new_maker(context), context, api, extensions, waits=waits)
    backend = SeedBackend(maker, files, clock)
    await backend.start()
    await backend.acquire(FencingToken(token, token))
    try:
        yield OverlaidSeed(backend, cluster)
    finally:
        await backend.stop()


async def cut(running: "asyncio.Task[FlowResult]") -> None:
    """End a run at whatever it awaits, as the death of its process does."""
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _key(manifest: Document) -> ObjectKey:
    metadata = section(manifest, "metadata")
    return ObjectKey(str(manifest["kind"]).lower(), str(metadata.get("namespace") or ""), str(metadata["name"]))
