"""Agents of an embedded landscape: each gets a bootstrap token before its first start, and its certificate by that."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from gardenbus.agent.certificate_manager import BROUGHT, write_token
from gardenbus.agent.certificate_requests import CREDENTIALS
from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.api.configuration.member_agent import parse_configurations
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import is_issued_by, read_certificate
from gardenbus.embedded.process_specs import Configurations

ROLES = ("gardenlet", "memberagent")
"""Processes that host agents."""

CONNECT_SECONDS = 30.0
TOKENS_AT_ONCE = 16

STARTING = timedelta(seconds=30)
"""Life that a certificate needs for its agent to start, and to renew it, before it ends."""


def agents_of(
    directory: LandscapeDirectory, configurations: Configurations, seeds: Iterable[str]
) -> Mapping[Principal, Path]:
    """The configured agents that connect as themselves, and their directories.

    A member cluster that is a shoot has its agent request the shoot's kubeconfig, which is the process's right alone.
    """
    agents = {Principal("gardenlet", seed): directory.gardenlets / seed for seed in seeds}
    names = configured_clusters(configurations)
    return agents | {Principal("member-agent", name): directory.members / name for name in names}


def configured_clusters(configurations: Configurations) -> list[str]:
    """The member clusters whose agents are configured by name, and neither shoots nor seeds."""
    return [
        each.name
        for file in configurations.member_agents
        for configuration in parse_configurations(file.read_bytes(), source=file.name)
        for each in configuration.clusters
        if not (each.shoot or configuration.enrol_seeds)
    ]


def without_credentials(
    agents: Mapping[Principal, Path], authorities: Iterable[x509.Certificate], now: datetime
) -> Mapping[Principal, Path]:
    """Those of them that cannot come in by what lies in their directory."""
    trusted = tuple(authorities)
    return {who: place for who, place in agents.items() if not _has_credentials(place, trusted, now)}


def _has_credentials(directory: Path, authorities: Iterable[x509.Certificate], now: datetime) -> bool:
    if any((directory / name).is_file() for name in BROUGHT):
        return True
    try:
        certificate = read_certificate((directory / CREDENTIALS).read_bytes())
    except (OSError, BadRequest):
        return False
    return certificate.not_valid_after_utc > now + STARTING and any(
        is_issued_by(certificate, each) for each in authorities
    )


async def give_tokens(target: LandscapeTarget, agents: Mapping[Principal, Path]) -> None:
    """Lay a token for each into its directory, over one of before. Raises ApiError, GardenbusError, OSError."""
    at_once = asyncio.Semaphore(TOKENS_AT_ONCE)
    async with connected(target, timeout_seconds=CONNECT_SECONDS, waits=True) as api:

        async def give(principal: Principal, directory: Path) -> None:
            kind = "seed" if principal.role == "gardenlet" else "member"
            async with at_once:
                made = await api.call("token.create", {kind: principal.name, "description": "created by up"})
            write_token(directory, made["token"])

        await asyncio.gather(*(give(principal, directory) for principal, directory in agents.items()))
