"""Namespaces of shoots on a seed, as extensions find them: with the credentials of the shoot, and its Cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, name_of, only_text
from gardenbus.common.api.keys import ObjectKey, seed_namespace
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import GardenReader, StaleFencingToken, StepFailed, StepRequest
from gardenbus.gardenlet.domain.extension_objects.cluster import (
    CLOUD_PROVIDER,
    COPIED,
    cloud_provider_secret,
    cluster,
    dns_secret,
    is_current,
    merged_profile,
    namespace,
    referenced_copy,
    shoot_of,
)
from gardenbus.gardenlet.domain.extension_objects.dns_records import dns_records, domains, has_own_domains
from gardenbus.gardenlet.domain.extension_objects.kinds import CLUSTERS, ExtensionObject
from gardenbus.gardenlet.domain.extension_objects.network_policies import network_policies
from gardenbus.gardenlet.domain.extension_objects.specs import ShootFacts
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import technical_id

_PLURALS = {"secret": "secrets", "configmap": "configmaps"}
"""Kinds of which the shoot's namespace has copies."""

_API_SERVER = "/api/v1/namespaces/default/endpoints/kubernetes"
_BACKOFF = Backoff(base_seconds=0.25, cap_seconds=5.0)
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

    async def make_references(self, request: StepRequest) -> None:
        """Have copies of the Secrets and ConfigMaps that the shoot's `spec.resources` names be there, and no others."""
        namespace_name = technical_id(*request.shoot)
        wanted: set[str] = set()
        try:
            for key in _referenced(required(request)):
                path = _core_path(key.kind, namespace_name, f"ref-{key.name}")
                await self._api.apply(path, referenced_copy(namespace_name, await self._required(key)))
                wanted.add(path)
            for kind in _PLURALS:
                for each in await self._api.items(_core_path(kind, namespace_name), labelSelector="=".join(COPIED)):
                    path = _core_path(kind, namespace_name, name_of(each))
                    if path not in wanted:
                        await self._api.delete(path)
        except GardenbusError as error:
            raise self._failed(
                error, f"Objects that spec.resources names cannot be copied to {namespace_name}"
            ) from error

    async def dns_records(self, request: StepRequest, address: str) -> Sequence[ExtensionObject]:
        """The DNSRecords that a shoot is to have, with the Secrets that they name in place."""
        observed, namespace_name = required(request), technical_id(*request.shoot)
        seed = await self._required(ObjectKey("seed", "", self._seed_name))
        spec = section(seed, "spec")
        facts = ShootFacts(namespace_name, observed.name, observed.spec)
        try:
            secrets = () if has_own_domains(spec) else await self._secrets_of_seed()
            records = dns_records(facts, observed.namespace, domains(self._seed_name, spec, secrets), address)
        except ValueError as error:
            raise StepFailed(str(error), ("ERR_CONFIGURATION_PROBLEM",)) from error
        for record, given in records:
            key = given or await self._credentials(observed)
            name = str(section(record.spec, "secretRef")["name"])
            if key is None or key.kind != "secret":
                raise StepFailed(f"DNSRecord {record.name}: its credentials are {key or 'missing'}, and no Secret")
            path = _core_path("secret", namespace_name, name)
            try:
                await self._api.apply(path, dns_secret(namespace_name, name, await self._required(key)))
            except GardenbusError as error:
                raise self._failed(error, f"Secret {namespace_name}/{name} cannot be written") from error
        return [record for record, _ in records]

    async def _secrets_of_seed(self) -> Sequence[Document]:
        namespace_name = seed_namespace(self._seed_name)
        try:
            return await self._garden.list("secret", namespace=namespace_name)
        except GardenbusError as error:
            raise StepFailed(f"Secrets of {namespace_name} in the garden cannot be read: {error.message}") from error

    async def remove(self, request: StepRequest) -> None:
        """Remove the shoot's namespace, and its Cluster when that is gone."""
        name = technical_id(*request.shoot)
        path = f"/api/v1/namespaces/{name}"
        began, pauses = self._clock.monotonic(), _BACKOFF.pauses()
        try:
            live = await self._api.get(path)
            if live is not None:
                await self._api.delete(path)
            while live is not None:
                if self._clock.monotonic() - began >= NAMESPACE_SECONDS:
                    raise StepFailed(f"Namespace {name} is still present")
                await self._clock.sleep(next(pauses))
                live = await self._api.get(path)
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


def _referenced(observed: ObservedShoot) -> Iterator[ObjectKey]:
    """The Secrets and ConfigMaps that a shoot's `spec.resources` names."""
    for each in mappings(observed.spec.get("resources")):
        reference = section(each, "resourceRef")
        kind, name = only_text(reference.get("kind")).lower(), only_text(reference.get("name"))
        if kind in _PLURALS and name:
            yield ObjectKey(kind, observed.namespace, name)


def _core_path(kind: str, namespace_name: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace_name}/{_PLURALS[kind]}"
    return f"{path}/{name}" if name else path


def required(request: StepRequest) -> ObservedShoot:
    """The shoot of a step that makes something. Raises StepFailed."""
    if request.observed is None:
        raise StepFailed(f"{request.step}: the shoot is not on this seed any more")
    return request.observed
