"""Kubeconfigs of member clusters that are shoots of the landscape: a configured one, or the shoot of a ManagedSeed."""

from collections.abc import Awaitable, Callable

from gardenbus.agent.kubernetes.errors import KubeconfigInvalid
from gardenbus.common.api.configuration.member_agent import ClusterSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

LIFE_SECONDS = 3600
GARDEN = "garden"


def shoot_kubeconfig(
    bus: Bus, subjects: Subjects, name: str, cluster: ClusterSettings | None
) -> Callable[[], Awaitable[str]] | None:
    """Obtains the kubeconfig of a cluster's shoot; None for a configured cluster that is none.

    `cluster` None: an enrolled Seed, whose shoot is that of the ManagedSeed of its name. The request is the service's
    own: where there are identities, an agent with credentials of its own is given none.
    """
    if cluster is not None and not cluster.shoot:
        return None
    client = ApiserverClient(bus, subjects)

    async def obtain() -> str:
        shoot = cluster.shoot if cluster is not None else await _shoot_of_seed(client, name)
        namespace, _, shoot_name = shoot.partition("/")
        body = {"expirationSeconds": LIFE_SECONDS}
        made: Document = await client.request(f"adminkubeconfig.{namespace}.{shoot_name}", body)
        return str(made.get("kubeconfig"))

    return obtain


async def _shoot_of_seed(client: ApiserverClient, seed: str) -> str:
    try:
        managed: Document = await client.request(f"get.managedseed.{GARDEN}.{seed}")
    except NotFound as error:
        message = f"Seed {seed} is no ManagedSeed, so it has no shoot to be reached by: write a kubeconfig for it"
        raise KubeconfigInvalid(message) from error
    return f"{GARDEN}/{section(managed, 'spec', 'shoot').get('name')}"
