"""Namespaces of shoots on a seed, as extensions find them: with the credentials of the shoot, and its Cluster."""

from collections.abc import Iterable
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of, only_text
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import GardenReader, StaleFencingToken, StepFailed, StepRequest
from gardenbus.gardenlet.domain.extension_objects.cluster import (
    CLOUD_PROVIDER,
    cloud_provider_secret,
    cluster,
    is_current,
    merged_profile,
    namespace,
    shoot_of,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import CLUSTERS
from gardenbus.gardenlet.domain.extension_objects.network_policies import network_policies
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import technical_id

_API_SERVER = "/api/v1/namespaces/default/endpoints/kubernetes"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
NAMESPACE_SECONDS = 900.0
"""Limit of the wait for a namespace to be gone, as in Gardener."""


class GardenFacts(NamedTuple):
    """Objects of the garden that a shoot's Cluster has besides the Shoot."""

    seed: Document
    cloud_profile: Document


class ShootNamespaces:
    """See the module. Every method raises StepFailed, StaleFencingToken."""

    def __init__(self, seed_name: str, api: SeedAPI, garden: GardenReader, clock: Clock) -> None:
        self._seed_name = seed_name
        self._api = api
        self._garden = garden
        self._clock = clock

    async def facts(self, observed: ObservedShoot) -> GardenFacts:
        """The shoot's CloudProfile, and its Seed."""
        seed = await self._required(ObjectKey("seed", "", self._seed_name))
        reference = section(observed.spec, "cloudProfile")
        name = only_text(reference.get("name") or observed.spec.get("cloudProfileName"))
        if not name:
            return GardenFacts(seed, {})
        if reference.get("kind") == "NamespacedCloudProfile":
            own = await self._required(ObjectKey("namespacedcloudprofile", observed.namespace, name))
            return GardenFacts(seed, merged_profile(None, own))
        return GardenFacts(seed, merged_profile(await self._required(ObjectKey("cloudprofile", "", name)), None))

    async def make_namespace(self, request: StepRequest, facts: GardenFacts, extensions: Iterable[str]) -> None:
        """Have the shoot's namespace be there, with its network policies."""
        observed = required(request)
        name = technical_id(*request.shoot)
        shoot = shoot_of(observed, request.operation, nodes="", now=self._clock.now())
        manifest = namespace(name, shoot, facts.seed, extensions)
        try:
            await self._api.apply(f"/api/v1/namespaces/{name}", manifest)
            api_server = await self._api.get(_API_SERVER)
            for each in network_policies(name, facts.seed, shoot, api_server):
                path = f"/apis/networking.k8s.io/v1/namespaces/{name}/networkpolicies/{name_of(each)}"
                await self._api.apply(path, each)
        except ValueError as error:
            raise StepFailed(f"Network policies of {name} cannot be made: {error}") from error
        except GardenbusError as error:
            raise self._failed(error, f"Namespace {name} cannot be made") from error

    async def sync_cluster(self, request: StepRequest, facts: GardenFacts, *, nodes: str = "") -> None:
        """Write the shoot's Cluster if it differs."""
        name, now = technical_id(*request.shoot), self._clock.now()
        shoot = shoot_of(required(request), request.operation, nodes=nodes, now=now)
        wanted = cluster(shoot, facts.seed, facts.cloud_profile, name=name)

        def build(live: Document | None) -> Document | None:
            if is_current(live, wanted):
                return None
            metadata = section(live or {}, "metadata")
            return {**wanted, "metadata": {**metadata, "name": name}}

        try:
            await self._api.write(f"{CLUSTERS}/{name}", build)
        except GardenbusError as error:
            raise self._failed(error, f"Cluster {name} cannot be written") from error

    async def make_credentials(self, request: StepRequest) -> None:
        """Have the shoot's credentials be in its namespace; nothing for a shoot without any."""
        reference = await self._credentials(required(request))
        if reference is None:
            return
        credentials = await self._required(reference)
        name = technical_id(*request.shoot)
        manifest = cloud_provider_secret(name, credentials)
        try:
            await self._api.apply(f"/api/v1/namespaces/{name}/secrets/{CLOUD_PROVIDER}", manifest)
        except GardenbusError as error:
            raise self._failed(error, f"Secret {name}/{CLOUD_PROVIDER} cannot be written") from error

    async def remove(self, request: StepRequest) -> None:
        """Remove the shoot's namespace, and its Cluster when that is gone."""
        name = technical_id(*request.shoot)
        path = f"/api/v1/namespaces/{name}"
        began, pause = self._clock.monotonic(), _FIRST_PAUSE
        try:
            while await self._api.get(path) is not None:
                if pause == _FIRST_PAUSE:
                    await self._api.delete(path)
                if self._clock.monotonic() - began >= NAMESPACE_SECONDS:
                    raise StepFailed(f"Namespace {name} is still present")
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            await self._api.delete(f"{CLUSTERS}/{name}")
        except GardenbusError as error:
            raise self._failed(error, f"Namespace {name} cannot be removed") from error

    async def _credentials(self, observed: ObservedShoot) -> ObjectKey | None:
        """The Secret that a shoot's binding names."""
        spec = observed.spec
        if name := only_text(spec.get("credentialsBindingName")):
            binding = await self._required(ObjectKey("credentialsbinding", observed.namespace, name))
            reference = section(binding, "credentialsRef")
            if reference.get("kind") != "Secret":
                return None
        elif name := only_text(spec.get("secretBindingName")):
            binding = await self._required(ObjectKey("secretbinding", observed.namespace, name))
            reference = section(binding, "secretRef")
        else:
            return None
        return ObjectKey(
            "secret",
            only_text(reference.get("namespace")) or observed.namespace,
            only_text(reference.get("name")),
        )

    async def _required(self, key: ObjectKey) -> Document:
        what = f"{key.kind} {'/'.join(part for part in (key.namespace, key.name) if part)} of the garden"
        try:
            found = await self._garden.get(key)
        except GardenbusError as error:
            raise StepFailed(f"{what} cannot be read: {error.message}") from error
        if found is None:
            raise StepFailed(f"{what} does not exist")
        return found

    def _failed(self, error: GardenbusError, what: str) -> GardenbusError:
        return error if isinstance(error, StaleFencingToken | StepFailed) else self._api.failure(error, what)


def required(request: StepRequest) -> ObservedShoot:
    """The shoot of a step that makes something. Raises StepFailed."""
    if request.observed is None:
        raise StepFailed(f"{request.step}: the shoot is not on this seed any more")
    return request.observed
