"""`python -m gardenbus.identity`, or `… keys DIR`, which makes the keys of a landscape in containers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.service import run_service
from gardenbus.identity.app import build
from gardenbus.identity.deployment import Deployment, Owners, make_keys
from gardenbus.identity.settings import load_settings


def keys(arguments: Sequence[str]) -> None:
    """Make what is missing of the keys. Raises SettingsInvalid, BadRequest, OSError."""
    parser = argparse.ArgumentParser("gardenbus.identity keys", description="Make the keys of a landscape.")
    parser.add_argument("directory", type=Path, help="where each holder has a directory")
    parser.add_argument("--name", action="append", default=[], help="a name by which NATS or Redis is reached")
    parser.add_argument("--route", action="append", default=[], metavar="NAME", help="a NATS server of a cluster")
    parser.add_argument("--seed", action="append", default=[], metavar="SEED=DIR", help="a gardenlet and its directory")
    parser.add_argument("--member", action="append", default=[], metavar="CLUSTER=DIR", help="likewise, a member agent")
    parser.add_argument("--owners", metavar="UID,UID,UID", help="users of the services, of Redis and of NATS")
    given = parser.parse_args(arguments)
    agents = {issued(Principal("gardenlet", name).user): place for name, place in map(_pair, given.seed)}
    agents |= {issued(Principal("member-agent", name).user): place for name, place in map(_pair, given.member)}
    owners = Owners(*map(int, given.owners.split(","))) if given.owners else None
    deployment = Deployment(given.name or ["localhost"], agents, load_settings().prefix, given.route)
    make_keys(given.directory, deployment, SystemClock().now(), owners)


def _pair(text: str) -> tuple[str, str]:
    name, separator, place = text.partition("=")
    if not (name and separator and place):
        raise BadRequest(f"{text!r}: write NAME=DIR")
    return name, place


if __name__ == "__main__":
    if sys.argv[1:2] == ["keys"]:
        try:
            keys(sys.argv[2:])
        except (GardenbusError, OSError) as error:
            sys.exit(f"gardenbus.identity: {error}")
    else:
        run_service("identity", load_settings, build)
