"""A labelled Secret gets credentials that let in, and others in time: on real servers, with two replicas."""

import asyncio
import base64
import contextlib
import json
from pathlib import Path
from typing import Any, cast

import yaml

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.contexts.credential_files import expiry_of, kind_of
from gardenbus.common.adapters.nats.credentials import Login, login_credentials, read_credentials
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.diagnostics.admin import AdminClient
from gardenbus.diagnostics.static_credentials import static_credentials
from gardenbus.diagnostics.target import DiagnosticsTarget
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS

KEY = ObjectKey("secret", "garden", "mine")
RENEW = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"


def requesting(user: str) -> dict[str, Any]:
    metadata = {
        "name": KEY.name,
        "namespace": KEY.namespace,
        "labels": {"resources.gardener.cloud/purpose": "token-requestor"},
        "annotations": {"gardenbus.io/user": user},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def test_a_kubeconfig_that_was_filled_lets_in(tmp_path: Path) -> None:
    """A program mounts the Secret, and names that file for its credentials."""
    kubeconfig: Document = {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "mine"}}],
        "clusters": [{"name": "lab", "cluster": {}}],
        "users": [{"name": "mine", "user": {}}],
    }
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        secret = {**requesting("scheduler:mine"), "stringData": {"kubeconfig": yaml.safe_dump(kubeconfig)}}
        await landscape.operator.request("apply", secret)
        file = tmp_path / "kubeconfig"

        async def mounted() -> None:
            data = (await landscape.stored(KEY)).get("data", {})
            assert data
            file.write_bytes(base64.b64decode(data["kubeconfig"]))
            assert read_credentials(file, "").principal == Principal("scheduler", "mine")

        await eventually(mounted)
        assert kind_of(file) == "login"
        assert expiry_of(file) is not None

        async def connected() -> None:
            try:
                await landscape.connect(read_credentials(file, ""), "scheduler:mine")
            except Unavailable as error:  # the identity service has not heard of them yet
                raise AssertionError(error.message) from error

        await eventually(connected)


async def issued(landscape: GuardedLandscape, other_than: str = "") -> Login:
    """The credentials in the Secret, once there are (others)."""
    found: dict[str, Any] = {}

    async def there() -> None:
        data = (await landscape.stored(KEY)).get("data", {})
        assert "token" in data
        found.update(json.loads(base64.b64decode(data["token"])))
        assert found["password"] != other_than

    await eventually(there)
    return Login(found["user"], found["password"])


async def let_in(landscape: GuardedLandscape, login: Login) -> None:
    async def connected() -> None:
        try:
            await landscape.connect(login_credentials(login), login.user)
        except Unavailable as error:  # a replica has not heard of them yet
            raise AssertionError(error.message) from error

    await eventually(connected)


async def until_out(landscape: GuardedLandscape, login: Login) -> None:
    async def rejected() -> None:
        with contextlib.suppress(Unavailable):
            await landscape.connect(login_credentials(login), login.user)
            raise AssertionError(f"{login.user} still comes in")

    await eventually(rejected)


async def test_requested_credentials_let_in_are_renewed_and_go_with_their_secret(tmp_path: Path) -> None:
    async with guarded_landscape(tmp_path / "landscape", replicas=2) as landscape:
        await landscape.operator.request("apply", requesting("scheduler:mine"))
        first = await issued(landscape)
        assert first.user == "scheduler:mine"
        await let_in(landscape, first)
        await landscape.operator.request(f"patch.{KEY.tail}", {"metadata": {"annotations": {RENEW: None}}})
        second = await issued(landscape, other_than=first.password)
        await let_in(landscape, second)
        await let_in(landscape, first)
        bus = await landscape.bus(Login("operator", "the operator's"))
        target = DiagnosticsTarget(ApiClient(bus, SUBJECTS), cast("AdminClient", None), None)
        (finding,) = await static_credentials(target)
        assert (finding.state, finding.found) == ("ok", "2 issued, each for 90 days at most")
        await landscape.operator.request(f"delete.{KEY.tail}")

        await until_out(landscape, first)
        await until_out(landscape, second)


async def test_with_its_namespace_a_service_account_is_out_also_when_the_namespace_is_made_anew(tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    secret = requesting("")
    prefix = "serviceaccount.resources.gardener.cloud/"
    secret["metadata"]["annotations"] = {f"{prefix}namespace": "team-a", f"{prefix}name": "robot"}
    async with guarded_landscape(tmp_path / "landscape", replicas=2) as landscape:
        await landscape.operator.request("apply", namespace)
        await landscape.operator.request("apply", secret)
        login = await issued(landscape)
        assert login.user == "system:serviceaccount:team-a:robot"
        await let_in(landscape, login)

        await landscape.operator.request("delete.namespace._.team-a")
        await landscape.operator.request("apply", namespace)

        await until_out(landscape, login)
        await landscape.operator.request(f"patch.{KEY.tail}", {"metadata": {"annotations": {RENEW: None}}})
        await until_out(landscape, login)
        await asyncio.sleep(1.1)  # what is issued in the second of the removal ends with it, too
        await landscape.operator.request(f"patch.{KEY.tail}", {"data": {"token": None}})
        await let_in(landscape, await issued(landscape, other_than=login.password))
        await until_out(landscape, login)
