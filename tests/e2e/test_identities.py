"""A landscape in which everybody has to prove who they are."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import nats.errors
import pytest

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import Unavailable
from gardenbus.credentials.identity_directory import IdentityDirectory
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.files import open_to_others
from tests.support.landscape import Landscape, a_landscape, authorities_of, violations

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "landscape"
GARDENLET = ROOT / "examples" / "session" / "gardenlet.yaml"


@pytest.mark.long
async def test_the_example_settles_and_nobody_asks_for_what_they_may_not(tmp_path: Path):
    directory = tmp_path / "state"
    async with a_landscape(directory, "-f", str(EXAMPLE)) as landscape:

        async def settled() -> None:
            census = (await landscape.command("get", "shoots", "-o", "json")).stdout
            states = [each["status"].get("lastOperation", {}).get("state") for each in json.loads(census)["items"]]
            assert states.count("Succeeded") == 57

        await eventually(settled, every=1)
        doctor = await landscape.command("doctor")
        assert doctor.code == 0, doctor
        assert (await landscape.command("version")).code == 0
        seeds = {f"seed:{seed['metadata']['name']}" for seed in await landscape.list("seed")}
        assert len(seeds) >= 11  # two of them have grown
        assert {user for user in _users(landscape) if user.startswith("seed:")} == seeds
        kept = {file.name: file.read_bytes() for file in (directory / "identity").rglob("*") if file.is_file()}
    assert violations(directory) == []
    assert open_to_others(directory) == []

    async with a_landscape(directory) as landscape:
        landscape.kill("identity")
        landscape.kill("relay")
        landscape.kill("apiserver")
        late = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late", "namespace": "garden"}}
        await landscape.publish("garden.apply", [late])

        async def applied() -> None:
            assert (await landscape.command("get", "configmap", "-n", "garden", "late")).code == 0

        await eventually(applied, every=0.5)
        again = {file.name: file.read_bytes() for file in (directory / "identity").rglob("*") if file.is_file()}
        assert again == kept
    assert violations(directory) == []


def _users(landscape: Landscape) -> list[str]:
    """Who is connected, a line a connection."""
    (monitoring,) = [each["health_url"] for each in landscape.describe()["services"] if each["name"] == "nats"]
    with urllib.request.urlopen(f"{monitoring}/connz?auth=1&limit=10000", timeout=HANG_SECONDS) as response:
        return [each.get("authorized_user", "") for each in json.load(response)["connections"]]


async def test_whoever_proves_nothing_or_too_little_is_out(tmp_path: Path):
    async with a_landscape(tmp_path / "state") as landscape:
        url, ca = landscape.describe()["nats_url"], authorities_of(landscape.directory)
        nobody, trust = Connection(), NO_CREDENTIALS._replace(ca=ca)
        with pytest.raises(Unavailable, match="does not accept this user"):
            await nobody.open(url, "nobody", credentials=trust, on_reconnect=lambda: None, fails_unauthorized=True)
        await nobody.close()

        relay = Connection()
        file = tmp_path / "state" / "identity" / "services" / "dashboard.nk"
        own = read_credentials(file, "dashboard", ca)
        await relay.open(url, "dashboard", credentials=own, on_reconnect=lambda: None)
        with pytest.raises((Unavailable, nats.errors.Error)):
            await relay.request_raw("garden.lease.aws-cork", b"", timeout_seconds=1)
        await relay.close()
        await _comes_back_with_another_authority(landscape, ca)


async def _comes_back_with_another_authority(landscape: Landscape, ca: str) -> None:
    """Everybody trusts the new authority without having been started anew, and nobody the old one."""
    old = Path(ca).read_bytes()
    services = {name: landscape.pids(name) for name in ("apiserver", "relay", "scheduler", "dashboard")}
    for step in (("rotate",), ("rotate", "--finish")):
        done = await landscape.command("ca", *step)
        assert done.code == 0, done
    assert Path(ca).read_bytes() not in (b"", old)
    landscape.client.options["tls"].load_verify_locations(ca)  # the client of this test would not read it anew
    landscape.kill("nats")

    async def responses() -> None:
        assert (await landscape.command("get", "seeds")).code == 0
        status = await landscape.command("status")
        assert status.code == 0, status

    await eventually(responses, every=0.5)
    assert services == {name: landscape.pids(name) for name in services}


async def test_an_insecure_landscape_says_so_and_keeps_its_streams_when_it_no_longer_is(tmp_path: Path):
    directory, reported = tmp_path / "state", tmp_path / "state-up.log"
    note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "garden"}}
    async with a_landscape(directory, "--insecure", "-f", str(GARDENLET)) as landscape:
        assert "nats_user" not in landscape.describe() or not landscape.describe()["nats_user"]
        await landscape.query("apply", note)
        created = await _created_at(landscape)
    assert "INSECURE: whoever reaches NATS" in reported.read_text()

    async with a_landscape(directory) as landscape:
        assert landscape.describe()["nats_user"] == "operator"
        assert await landscape.query("get.configmap.garden.kept")
        assert await _created_at(landscape) == created

        async def admitted() -> None:
            assert "seed:earth-1" in _users(landscape)

        await eventually(admitted, every=0.2)
    assert "INSECURE" not in reported.read_text()

    async with a_landscape(directory, "--insecure") as landscape:  # the certificates of before are of no use

        async def ready() -> None:
            seed = await landscape.query("get.seed._.earth-1")
            conditions = {each["type"]: each["status"] for each in seed["status"]["conditions"]}
            assert conditions["GardenletReady"] == "True"
            assert landscape.describe()["state"] == "ready"

        await eventually(ready, every=0.2)
        assert "seed:earth-1" not in _users(landscape)


async def _created_at(landscape: Landscape) -> str:
    """When the stream of objects was made: another moment for one that was made anew."""
    response = await landscape.client.request("$JS.API.STREAM.INFO.OBJECTS", b"", timeout=HANG_SECONDS)
    return json.loads(response.data)["created"]


async def test_nothing_below_the_state_directory_is_open_to_others(hosting: Landscape):
    async def closed() -> None:
        try:
            found = open_to_others(hosting.directory)
        except FileNotFoundError as error:  # it was replaced while we looked
            raise AssertionError(error.filename) from error
        assert found == []

    await eventually(closed)


async def test_no_port_tells_a_page_in_a_browser_anything(hosting: Landscape):
    """Services answer to names of the loopback alone; NATS answers any, and its pages are below a path of its own."""
    described = hosting.describe()
    found = {each["name"]: each["health_url"] for each in described["services"] if each["health_url"]}
    found["nats"] = f"http://127.0.0.1:{described['ports']['nats-monitor']}"
    assert len(found) > 8
    for name, url in found.items():
        for path in ("", "/metrics", "/readyz", "/connz", "/varz", "/jsz", "/healthz"):
            request = urllib.request.Request(url + path, headers={"Host": "evil.example"})
            with pytest.raises(urllib.error.HTTPError) as rejected:
                urllib.request.urlopen(request, timeout=HANG_SECONDS)
            rejected.value.close()
            assert rejected.value.code in (404, 421), (name, path)


async def test_issued_credentials_let_in_until_they_are_revoked(hosting: Landscape, tmp_path: Path):
    file, by_nkey = tmp_path / "ann.json", tmp_path / "wild.nk"
    issued = await hosting.command("identity", "issue", "--user", "ann", "--role", "viewer", "-o", str(file))
    assert issued.code == 0, issued
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["user"] == "ann"
    again = await hosting.command("identity", "issue", "--user", "ann", "-o", str(file))
    assert (again.code, "--force" in again.stderr) == (2, True)
    seed = await hosting.command("identity", "issue", "--seed", "wild", "--ttl", "1h", "--nkey", "-o", str(by_nkey))
    assert seed.code == 0, seed
    listed = json.loads((await hosting.command("identity", "ls", "-o", "json")).stdout)["items"]
    found = [(each["user"], each["by"]) for each in listed if each["user"] in {"ann", "seed:wild"}]
    assert found == [("ann", "password"), ("seed:wild", "nkey")]

    url = hosting.describe()["nats_url"]
    ca = authorities_of(hosting.directory)
    await _let_in(url, file, "ann", ca)
    await _let_in(url, by_nkey, Principal("gardenlet", "wild"), ca)
    for each in listed:
        assert (await hosting.command("delete", "secret", "-n", "garden", each["secret"])).code == 0

    async def is_out() -> None:
        for content, owner in ((file, "ann"), (by_nkey, Principal("gardenlet", "wild"))):
            with pytest.raises(Unavailable, match="does not accept this user"):
                await _let_in(url, content, owner, ca)

    await eventually(is_out, every=0.5)


async def test_fifty_come_in_while_the_identity_service_is_killed_and_sessions_go_on(tmp_path: Path):
    """One replica is enough on one machine: the server waits about as long as a restart takes."""
    async with a_landscape(tmp_path / "state") as landscape:
        file = tmp_path / "ann.json"
        assert (await landscape.command("identity", "issue", "--user", "ann", "-o", str(file))).code == 0
        url, ca = landscape.describe()["nats_url"], authorities_of(landscape.directory)
        running = Connection()
        await running.open(url, "running", credentials=read_credentials(file, "ann", ca), on_reconnect=lambda: None)

        async def come_in() -> None:
            while True:
                try:
                    return await _let_in(url, file, "ann", ca)
                except Unavailable:
                    await asyncio.sleep(0.2)

        coming = [asyncio.create_task(come_in()) for _ in range(25)]
        await asyncio.sleep(0)
        landscape.kill("identity")
        coming += [asyncio.create_task(come_in()) for _ in range(25)]
        await asyncio.wait_for(asyncio.gather(*coming), HANG_SECONDS)
        assert (running.losses, running.is_connected) == (0, True)
        await running.close()
        (identity,) = [each for each in landscape.describe()["services"] if each["name"] == "identity"]
        assert identity["restarts"] == 1


async def _let_in(url: str, file: Path, owner: str | Principal, ca: str) -> None:
    """Connect with credentials from a file. Raises Unavailable."""
    connection = Connection()
    try:
        credentials = read_credentials(file, owner, ca)
        await connection.open(url, "test", credentials=credentials, on_reconnect=lambda: None, fails_unauthorized=True)
    finally:
        await connection.close()


async def test_the_documented_handshake_lets_a_certificate_in_for_its_own_seed_alone(
    hosting: Landscape, tmp_path: Path
):
    authority = IdentityDirectory(hosting.directory / "identity").authority()
    issued = authority.client(Principal("gardenlet", "wild"), datetime.now(UTC))
    pem, program = tmp_path / "wild.pem", tmp_path / "handshake.py"
    pem.write_bytes(issued.certificate + issued.key)
    page = (ROOT / "docs" / "identities.md").read_text()
    program.write_text(page.partition("```python\n")[2].partition("```")[0])
    call = [sys.executable, program, hosting.describe()["nats_url"], authorities_of(hosting.directory), pem]

    done = subprocess.run(call, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert json.loads(done.stdout)["stream"] == "LEASES", done.stderr

    program.write_text(program.read_text().replace("garden.lease.wild", "garden.lease.earth-1"))
    rejected = subprocess.run(call, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert rejected.returncode != 0
    assert rejected.stdout == ""
