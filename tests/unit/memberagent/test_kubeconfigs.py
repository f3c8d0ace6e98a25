"""A kubeconfig is read as a whole, or refused with the field and the way out."""

import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from gardenbus.agent.kubernetes.errors import KubeconfigInvalid, UntrustedServer
from gardenbus.agent.kubernetes.kubeconfig import parse_kubeconfig, read_kubeconfig
from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, Issued, new_authority
from tests.support.builders import merged
from tests.support.eventually import HANG_SECONDS

NOW = datetime.now(UTC)
CA = new_authority("one", NOW)
OTHER = new_authority("another", NOW)
CLIENT = Authority(CA).client(Principal("member-agent", "lisbon"), NOW, timedelta(hours=2))
GROWING_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8))
"""Of half a kibibyte, which stands for ten million values."""
ENCRYPTED = serialization.load_pem_private_key(CLIENT.key, None).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
)


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def a_kubeconfig(**changes: Any) -> dict[str, Any]:
    """Parts `cluster` and `user` are merged into those of the only context."""
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": text_of(CA.certificate)}
    user = {
        "client-certificate-data": text_of(CLIENT.certificate),
        "client-key-data": text_of(CLIENT.key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": changes.pop("current", "c"),
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": merged(cluster, changes.pop("cluster", {}))}],
        "users": [{"name": "u", "user": changes.pop("user", None) or user}],
        **changes,
    }


def test_a_kubeconfig_says_where_to_go_and_until_when() -> None:
    access = parse_kubeconfig(yaml.safe_dump(a_kubeconfig()), source="test")
    assert access.server == "https://127.0.0.1:1"
    assert access.token == ""
    assert access.expires_at is not None
    assert timedelta(hours=1) < access.expires_at - NOW <= timedelta(hours=2)


def test_files_are_looked_for_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(CA.certificate)
    (tmp_path / "token").write_text("secret\n")
    config = a_kubeconfig(
        cluster={"certificate-authority-data": None, "certificate-authority": "ca.crt"}, user={"tokenFile": "token"}
    )
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    assert read_kubeconfig(file).token == "secret"
    with pytest.raises(KubeconfigInvalid, match="give certificate-authority-data"):
        parse_kubeconfig(yaml.safe_dump(config), source="test")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ([], "no mapping"),
        ("{", "cannot be read: "),
        (GROWING_ALIASES, "aliases add up to more than"),
        ("[" * 1000 + "]" * 1000, "nested deeper than"),
        ("current-context: 2001-99-99\n", "names '2001-99-99'"),
        (a_kubeconfig(current=""), "current-context: is missing"),
        (a_kubeconfig(current="d"), "names 'd'"),
        (a_kubeconfig(contexts=None), "names 'c'"),
        (a_kubeconfig(cluster={"server": "http://a"}), "cluster.server: must be https://HOST:PORT, is 'http://a'"),
        (a_kubeconfig(cluster={"server": "https://a:99999"}), "cluster.server"),
        (a_kubeconfig(cluster={"server": "https:///a"}), "cluster.server"),
        (a_kubeconfig(cluster={"insecure-skip-tls-verify": True}), "insecure-skip-tls-verify"),
        (a_kubeconfig(cluster={"proxy-url": "http://a"}), "proxies"),
        (a_kubeconfig(cluster={"certificate-authority-data": "%"}), "is not base64"),
        (a_kubeconfig(cluster={"certificate-authority-data": text_of(b"no")}), "holds no PEM certificate"),
        (a_kubeconfig(user={"exec": {"command": "aws"}}), "no programs are run"),
        (a_kubeconfig(user={"other": "x"}), "neither a token nor a client certificate"),
        (a_kubeconfig(user={"client-key-data": text_of(CLIENT.key), "token": "x"}), "go together"),
        (
            a_kubeconfig(
                user={
                    "client-certificate-data": text_of(CLIENT.certificate),
                    "client-key-data": text_of(OTHER.key),
                }
            ),
            "not that of the certificate",
        ),
        (
            a_kubeconfig(
                user={"client-certificate-data": text_of(CLIENT.certificate), "client-key-data": text_of(ENCRYPTED)}
            ),
            "is no key",
        ),
        (a_kubeconfig(user={"tokenFile": "token"}), "names a file"),
    ],
)
def test_what_is_wrong_is_named(config: Any, problem: str) -> None:
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    with pytest.raises(KubeconfigInvalid) as raised:
        parse_kubeconfig(text, source="lisbon/kubeconfig")
    assert raised.value.message.startswith("lisbon/kubeconfig: ")
    assert problem in raised.value.message


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigInvalid, match="No such file"):
        read_kubeconfig(tmp_path / "kubeconfig")


@asynccontextmanager
async def a_server(issued: Issued, directory: Path) -> AsyncGenerator[str]:
    """The URL of a TLS server whose certificate an authority has signed."""
    serving = Authority(issued).server(["127.0.0.1"], NOW)
    (directory / "server.pem").write_bytes(serving.certificate + serving.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(directory / "server.pem")

    async def handler(_request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.34.4"})

    application = web.Application()
    application.router.add_get("/version", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_another_clusters_server_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    async with a_server(CA, tmp_path) as url, aiohttp.ClientSession() as session:
        text = yaml.safe_dump(a_kubeconfig(cluster={"server": url}))
        client = parse_kubeconfig(text, source="test").client(session, timeout_seconds=HANG_SECONDS)
        assert await client.get("/version") == {"gitVersion": "v1.34.4"}
        other = {"server": url, "certificate-authority-data": text_of(OTHER.certificate)}
        text = yaml.safe_dump(a_kubeconfig(cluster=other))
        client = parse_kubeconfig(text, source="test").client(session, timeout_seconds=HANG_SECONDS)
        with pytest.raises(UntrustedServer, match="is not the server that is trusted"):
            await client.get("/version")
