"""An apiserver that authorizes, on memory: requests of people, agents and services as the server hands them over."""

import json
from collections.abc import Iterable
from typing import Any

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.identity.roles import landscape_roles
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.ports.bus import Request
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()


def a_secret(name: str, namespace: str = "garden-dev", **metadata: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"password": "c2VjcmV0"},
    }


def a_binding(name: str, secret: str, namespace: str = "garden-dev", secret_namespace: str = "") -> Document:
    reference = {"name": secret} | ({"namespace": secret_namespace} if secret_namespace else {})
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "SecretBinding",
        "metadata": {"name": name, "namespace": namespace},
        "provider": {"type": "aws"},
        "secretRef": reference,
    }


def members(**roles: str) -> Document:
    return {"members": [{"kind": "User", "name": user, "role": role} for user, role in roles.items()]}


class AuthorizedApiserver:
    """An apiserver that authorizes, on memory."""

    def __init__(self, admission: Admission | None = None, budgets: BudgetSettings | None = None) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock, is_open=True)
        bus, manifests = MemoryBus(self.clock), ManifestCache(self.store)
        self.handler = ApiHandler(
            bus=bus,
            store=self.store,
            clock=self.clock,
            subjects=SUBJECTS,
            writer=Writer(self.store, self.clock, admission),
            seed_binder=SeedBinder(self.store, self.clock),
            manifests=manifests,
            authorizer=Authorizer(
                self.store, AuditLog(self.clock), is_enforced=True, budget_within=(budgets or BudgetSettings()).within
            ),
            concurrency=8,
        )

    async def create(self, documents: Iterable[Document]) -> None:
        """Store manifests, past the apiserver."""
        for document in documents:
            await self.store.create(document)

    async def response(self, user: str, tail: str, body: object = b"", *, is_insider: bool = False) -> Document:
        """Response to a request of a user outside the services, as the server hands it over."""
        payload = body if isinstance(body, bytes) else encode(body)
        headers = {} if is_insider else {"Nats-Request-Info": json.dumps({"acc": "OUT", "user": user})}
        subject = SUBJECTS.as_user(user, f"api.{tail}") if user else SUBJECTS.api(tail)
        return json.loads(await self.handler.handle(Request(subject, payload, headers)))

    async def code(self, user: str, tail: str, body: object = b"") -> int:
        """The code of the response."""
        response = await self.response(user, tail, body)
        return 200 if response["ok"] else response["error"]["code"]


async def two_projects(budgets: BudgetSettings | None = None) -> AuthorizedApiserver:
    """Two projects, their people, and a shoot of each on a seed of its own."""
    apiserver = AuthorizedApiserver(budgets=budgets)
    await apiserver.create([
        landscape_roles({"root": "operator", "eve": "viewer"}),
        a_cloudprofile(),
        a_seed("aws"),
        a_seed("gcp"),
        a_project("dev", "garden-dev", spec=members(adam="admin", vera="viewer", otto="owner", uma="uam")),
        a_project("prod", "garden-prod", spec=members(paul="admin")),
        a_secret("dev-cloud"),
        a_secret("prod-cloud", "garden-prod"),
        a_binding("cloud", "dev-cloud"),
        a_binding("cloud", "prod-cloud", "garden-prod"),
        a_shoot("apollo", spec={"secretBindingName": "cloud"}),
        a_shoot("zeus", "garden-prod", spec={"secretBindingName": "cloud"}),
    ])  # fmt: skip
    for namespace, name, seed in (("garden-dev", "apollo", "aws"), ("garden-prod", "zeus", "gcp")):
        binding = {"namespace": namespace, "name": name, "seed": seed}
        bound = await apiserver.response("", "bind", binding, is_insider=True)
        assert bound["ok"], bound
    return apiserver
