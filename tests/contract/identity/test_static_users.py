"""A small fixed fleet without auth callout: whoever was exported has their row of the table."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import nats.errors
import pytest
from typer.testing import CliRunner

from gardenbus.apiserver.access.static_users import StaticUsers
from gardenbus.apiserver.domain.senders import check_sender
from gardenbus.cli.main import app
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, publish_command
from gardenbus.common.api.identity.permissions import OUTSIDER_PAYLOAD
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import Impersonation, SettingsInvalid, Unavailable
from tests.support.eventually import eventually
from tests.support.files import open_to_others
from tests.support.permission_walk import unlike_the_table
from tests.support.servers import Server, start_nats

CORK, PARIS = Principal("gardenlet", "aws-cork"), Principal("member-agent", "paris")
ANN, MINE = Principal("user", "ann"), Principal("scheduler", "mine")
EXTENSION, PLUGIN = Principal("extension", "aws-cork"), Principal("plugin", "carbon")
INSIDERS = (Principal("service", "scheduler"), Principal("operator", "operator"))
WALKED = (CORK, PARIS, ANN, MINE, EXTENSION, PLUGIN, *INSIDERS)


class Fleet:
    """What was exported, and a server on it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "nats" / "fleet"
        self.export(
            *("--seed", "aws-cork", "--member", "paris", "--user", "ann", "--scheduler", "mine"),
            *("--extension", "aws-cork", "--plugin", "carbon"),
        )
        operator = json.loads((self.path / "operator.json").read_text())
        login = f"{operator['user']}:{operator['password']}"
        self.server: Server = start_nats(path / "nats", extra='include "fleet/accounts.conf"', login=login)
        self._open: list[Connection] = []

    def export(self, *arguments: str) -> str:
        done = CliRunner().invoke(app, ["identity", "export", str(self.path), *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    def file(self, who: Principal) -> Path:
        places = {
            "gardenlet": f"gardenlets/{who.name}/credentials.nk",
            "member-agent": f"members/{who.name}/credentials.nk",
            "user": f"users/{who.name}.nk",
            "scheduler": f"schedulers/{who.name}.nk",
            "extension": f"extensions/{who.name}.nk",
            "plugin": f"plugins/{who.name}.nk",
            "service": f"services/{who.name}.nk",
            "operator": "operator.json",
        }
        return self.path / places[who.role]

    async def connect(self, who: Principal) -> Connection:
        credentials = read_credentials(self.file(who), who)
        connection = Connection()
        self._open.append(connection)
        await connection.open(
            self.server.url, who.user, credentials=credentials, on_reconnect=lambda: None, fails_unauthorized=True
        )
        return connection

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()
        self.server.stop()


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    fleet = Fleet(tmp_path)
    yield fleet
    await fleet.close()


async def test_each_has_their_row_of_the_table(fleet: Fleet) -> None:
    url = fleet.server.url
    walked = [(who.user, await unlike_the_table(url, read_credentials(fleet.file(who), who), who)) for who in WALKED]
    assert [(user, found) for user, found in walked if found] == []
    assert open_to_others(fleet.path) == []


async def test_the_apiserver_is_told_whose_nkey_sent_a_request(fleet: Fleet) -> None:
    apiserver, ann = await fleet.connect(Principal("service", "apiserver")), await fleet.connect(ANN)
    received: list[RawMessage] = []
    await apiserver.listen("garden.out.*.api.>", received.append)
    await apiserver.flush_fully()
    await ann.send([publish_command("garden.as.ann.api.whoami", b"", reply="_INBOX.ann.1")])

    async def arrived() -> RawMessage:
        return received[0]

    headers = decode_headers((await eventually(arrived)).header)
    users = StaticUsers(fleet.path / "users.json")
    check_sender(headers, "ann", users.user_of)
    with pytest.raises(Impersonation, match="'ann' sent this in the name of 'operator'"):
        check_sender(headers, "operator", users.user_of)
    with pytest.raises(Impersonation):
        check_sender(headers, "ann")


async def test_one_more_comes_in_and_one_less_is_cut_off_when_the_server_reads_it_anew(fleet: Fleet) -> None:
    ann, cork = await fleet.connect(ANN), await fleet.connect(CORK)
    users = StaticUsers(fleet.path / "users.json")
    key = fleet.file(CORK).read_text()
    dublin = Principal("gardenlet", "aws-dublin")
    with pytest.raises(SettingsInvalid):
        await fleet.connect(dublin)
    fleet.file(ANN).unlink()
    assert "user:ann" not in fleet.export("--seed", "aws-dublin")
    assert fleet.file(CORK).read_text() == key
    assert fleet.server.process is not None
    fleet.server.process.send_signal(signal.SIGHUP)

    async def cut_off() -> None:
        assert not ann.is_connected

    await eventually(cut_off)
    await fleet.connect(dublin)
    assert (cork.losses, cork.is_connected) == (0, True)
    existing = json.loads((fleet.path / "users.json").read_text())
    assert sorted(existing.values()) == [
        "extension:aws-cork",
        "member:paris",
        "plugin:carbon",
        "scheduler:mine",
        "seed:aws-cork",
        "seed:aws-dublin",
    ]
    assert [users.user_of(nkey) for nkey in existing] == list(existing.values())


async def test_messages_from_outside_have_their_limit(fleet: Fleet) -> None:
    ann = await fleet.connect(ANN)
    await ann.send([publish_command("garden.as.ann.api.get.shoot.a.b", bytes(OUTSIDER_PAYLOAD + 1))])

    async def closed() -> None:
        assert ann.losses == 1

    await eventually(closed)


async def test_nobody_comes_in_by_another_key(fleet: Fleet) -> None:
    fleet.file(ANN).unlink()
    fleet.export("--user", "ann")  # a new key, which the server has not read yet
    with pytest.raises((Unavailable, nats.errors.Error), match="does not accept this user"):
        await fleet.connect(ANN)


@pytest.mark.parametrize(
    "arguments", [("--user", "operator"), ("--seed", "Aws"), ("--user", "seed:a"), ("--seed", "a.b")]
)
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, arguments: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["identity", "export", str(tmp_path / "fleet"), *arguments])
    assert done.exit_code == 2
    assert not (tmp_path / "fleet").exists()


def test_a_file_of_users_that_is_none_is_a_setting_to_mend(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    with pytest.raises(SettingsInvalid, match="GARDENBUS_STATIC_USERS"):
        StaticUsers(file)
    file.write_text('{"UA": "ann"}')
    users = StaticUsers(file)
    file.write_text("cut")
    assert (users.user_of("UA"), users.user_of("UB")) == ("ann", "UB")
