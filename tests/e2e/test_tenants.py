"""Two tenants side by side, each as a member of a Project of its own against a quota, while services are killed."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nats
import nats.errors
import pytest
import yaml

from gardenbus.common.adapters.nats.credentials import read_credentials
from tests.support.builders import CORE, a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, RequestRejected, a_landscape, trust_of

pytestmark = pytest.mark.long

Document = dict[str, Any]

KILLED = ("apiserver", "controllermanager", "scheduler", "relay")
WANTED = 6
"""Shoots that each tenant tries to have."""
ALLOWED = 3
"""How many of them its quota allows."""
KILLS = 2
"""How often each service is killed."""
RESPONSES = 12
"""Requests that are answered between one kill and the next."""
COUNT = "count/shoots.core.gardener.cloud"
NO_RESPONSE = (nats.errors.Error, OSError, TimeoutError)


class Fire:
    """Kills services, one after the other, each as soon as the tenants got on since the last."""

    def __init__(self) -> None:
        self.responded = 0
        self.is_over = False

    async def kill_in_turn(self, landscape: Landscape) -> None:
        for name in KILLED * KILLS:
            enough = self.responded + RESPONSES

            async def responded(enough: int = enough) -> None:
                assert self.responded >= enough

            await eventually(responded, every=0.05)
            landscape.kill(name)
        self.is_over = True


class Tenant(NamedTuple):
    """A member of a Project, with a connection as itself."""

    name: str
    own: Landscape
    fire: Fire

    @property
    def namespace(self) -> str:
        return f"garden-{self.name}"

    def shoot(self, number: int, namespace: str = "") -> Document:
        """An order; each shoot has two machines at most, with two CPUs each."""
        pool = {"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": 2}
        spec = {"provider": {"type": "aws", "workers": [pool]}, "secretBindingName": "aws"}
        return a_shoot(f"s{number}", namespace or self.namespace, spec=spec)

    async def query(self, tail: str, body: object = None) -> Any:
        """Ask until somebody answers; raises Refused."""
        while True:
            try:
                result = await self.own.query(tail, body, timeout=2)
            except NO_RESPONSE:
                await asyncio.sleep(0.1)
            except RequestRejected as rejected:
                if rejected.args[1]["code"] < 500 and rejected.args[1]["code"] not in {409, 429}:
                    self.fire.responded += 1
                    raise
                await asyncio.sleep(0.1)
            else:
                self.fire.responded += 1
                return result

    async def order(self, number: int) -> bool:
        """Whether the shoot is acknowledged; it is refused only for the quota."""
        try:
            await self.query("apply", self.shoot(number))
        except RequestRejected as rejected:
            if rejected.args[1]["code"] != 403 or "quota" not in rejected.args[0]:
                raise
            return False
        return True

    async def delete(self, number: int) -> None:
        """Delete a shoot, and wait until it is gone."""
        with contextlib.suppress(RequestRejected):
            body = {"kind": "shoot", "namespace": self.namespace, "name": f"s{number}", "confirm": True}
            await self.query("delete", body)

        async def gone() -> None:
            assert await self.code(f"get.shoot.{self.namespace}.s{number}") == 404

        await eventually(gone, every=0.1)

    async def code(self, tail: str, body: object = None) -> int:
        """The code of the answer."""
        try:
            await self.query(tail, body)
        except RequestRejected as rejected:
            return rejected.args[1]["code"]
        return 200

    async def intrude(self, other: "Tenant", number: int) -> None:
        """Try to see and to change what belongs to another."""
        name = {"kind": "shoot", "namespace": other.namespace, "name": f"s{number}"}
        requests: Sequence[tuple[str, object]] = (
            ("list.shoot", {}),
            (f"list.shoot.{other.namespace}", {}),
            (f"get.shoot.{other.namespace}.s{number}", None),
            ("apply", self.shoot(number, other.namespace)),
            ("delete", {**name, "confirm": True}),
            (f"get.project._.{other.name}", None),
        )
        for tail, body in requests:
            assert await self.code(tail, body) == 403, (self.name, tail)

    async def work(self, other: "Tenant", number: int) -> bool:
        """Order a shoot and delete it again, by one name, while services are killed; whether the last order counted."""
        while not self.fire.is_over:
            if await self.order(number):
                await self.delete(number)
            await self.intrude(other, number)
        return await self.order(number)


def standard() -> Sequence[Document]:
    """A seed, and two Projects: `counted` with a ResourceQuota, `metered` with a Quota by its binding."""
    gardenlet = a_gardenlet_configuration(shoots=50)
    documents: list[Document] = [gardenlet, a_cloudprofile(), a_project("garden", "garden")]
    for name in ("counted", "metered"):
        member = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name, "role": "admin"}
        at = {"namespace": f"garden-{name}"}
        project = a_project(name, spec={"members": [member]})
        del project["status"]
        binding = {"metadata": {**at, "name": "aws"}, "provider": {"type": "aws"}, "secretRef": {"name": "aws"}}
        metered: Document = {"quotas": [{"name": "limit"}]} if name == "metered" else {}
        documents += [
            project,
            {"apiVersion": "v1", "kind": "Secret", "metadata": {**at, "name": "aws"}, "stringData": {"a": "b"}},
            {"apiVersion": CORE, "kind": "SecretBinding", **binding, **metered},
        ]
    named = {"name": "limit", "namespace": "garden-metered"}
    metrics = {"cpu": str(ALLOWED * 4), "memory": f"{ALLOWED * 16}Gi"}
    scope = {"apiVersion": CORE, "kind": "Project"}
    count = {"name": "gardener", "namespace": "garden-counted"}
    return [
        *documents,
        {"apiVersion": CORE, "kind": "Quota", "metadata": named, "spec": {"scope": scope, "metrics": metrics}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": count, "spec": {"hard": {COUNT: str(ALLOWED)}}},
    ]


@contextlib.asynccontextmanager
async def a_tenant(landscape: Landscape, name: str, directory: Path, fire: Fire) -> AsyncGenerator[Tenant]:
    """A person with credentials that were issued to it."""
    file = directory / f"{name}.json"
    issued = await landscape.command("identity", "issue", "--user", name, "-o", str(file))
    assert issued.code == 0, issued
    login, inbox = json.loads(file.read_text()), read_credentials(file, name).inbox
    url = landscape.describe()["nats_url"]
    client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
        url,
        user=login["user"],
        password=login["password"],
        inbox_prefix=inbox.encode(),
        max_reconnect_attempts=-1,
        tls=trust_of(landscape.directory),
    )
    try:
        yield Tenant(name, Landscape(landscape.directory, client, f"garden.as.{name}"), fire)
    finally:
        await client.close()


async def sample(landscape: Landscape, most: dict[str, int]) -> None:
    """Note the most shoots that were ever seen in each namespace."""
    for namespace in itertools.cycle(most):
        with contextlib.suppress(RequestRejected, *NO_RESPONSE):
            page = await landscape.query(f"list.shoot.{namespace}", {"limit": 500}, timeout=2)
            most[namespace] = max(most[namespace], len(page["items"]))
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def meanwhile(*work: Callable[[], Any]) -> AsyncGenerator[None]:
    """Do something in the background for as long as the block lasts; what fails there fails the block."""
    tasks = [asyncio.ensure_future(each()) for each in work]
    try:
        yield
    finally:
        failed = [task.exception() for task in tasks if task.done() and task.exception()]
        for task in tasks:
            task.cancel()
        assert failed == []


async def until_quiet(landscape: Landscape) -> None:
    async def quiet() -> None:
        try:
            quota = await landscape.query("get.resourcequota.garden-counted.gardener", timeout=2)
        except NO_RESPONSE as error:
            raise AssertionError(repr(error)) from error
        assert quota["status"]["used"][COUNT] == str(ALLOWED), quota["status"]
        for namespace in ("garden-counted", "garden-metered"):
            shoots = await landscape.list(f"shoot.{namespace}")
            states = [shoot.get("status", {}).get("lastOperation", {}).get("state") for shoot in shoots]
            assert states == ["Succeeded"] * ALLOWED

    await eventually(quiet, every=0.2)


async def uids(landscape: Landscape, namespace: str) -> dict[str, str]:
    shoots = await landscape.list(f"shoot.{namespace}")
    return {shoot["metadata"]["name"]: shoot["metadata"]["uid"] for shoot in shoots}


async def test_two_tenants_keep_within_their_quotas_and_apart_whatever_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "landscape.yaml"
    file.write_text(yaml.safe_dump_all(standard()))
    fire = Fire()
    most = {"garden-counted": 0, "garden-metered": 0}
    async with (
        a_landscape(tmp_path / "state", "-f", str(file)) as landscape,
        a_tenant(landscape, "counted", tmp_path, fire) as counted,
        a_tenant(landscape, "metered", tmp_path, fire) as metered,
    ):
        pairs = ((counted, metered), (metered, counted))
        async with meanwhile(lambda: fire.kill_in_turn(landscape), lambda: sample(landscape, most)):
            work = [own.work(other, number) for own, other in pairs for number in range(WANTED)]
            acknowledged = await asyncio.gather(*work)
        for number, (own, _) in itertools.product(range(WANTED), pairs):
            await own.order(number)
        await until_quiet(landscape)
        assert most == dict.fromkeys(most, ALLOWED)
        there = {own.name: await uids(landscape, own.namespace) for own, _ in pairs}
        for index, (own, _) in enumerate(pairs):
            kept = acknowledged[index * WANTED : (index + 1) * WANTED]
            assert {f"s{number}" for number, is_there in enumerate(kept) if is_there} <= set(there[own.name])

        await landscape.query("delete", {"kind": "project", "name": "counted", "confirm": True})
        assert await counted.code("apply", counted.shoot(99)) == 403
        landscape.kill("controllermanager")
        await asyncio.gather(*(counted.delete(number) for number in range(WANTED)))
        await until_gone(landscape, "counted")
        assert await uids(landscape, metered.namespace) == there["metered"]
        assert await metered.code("get.secret.garden-metered.aws") == 200


async def until_gone(landscape: Landscape, project: str) -> None:
    async def gone() -> None:
        for kind, name in (("project", project), ("namespace", f"garden-{project}")):
            assert await Tenant("operator", landscape, Fire()).code(f"get.{kind}._.{name}") == 404

    await eventually(gone, every=0.2)
    for kind in ("shoot", "secret", "secretbinding", "resourcequota"):
        assert await landscape.list(f"{kind}.garden-{project}") == []
