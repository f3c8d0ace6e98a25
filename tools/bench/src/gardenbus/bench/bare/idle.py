"""A service that only connects to both servers: what every service does before it is ready, and nothing else."""

from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load


async def build(context: ServiceContext[CommonSettings]) -> None:
    """Connect."""
    await connect_all(context, reporter="bare")


if __name__ == "__main__":
    run_service("bare-idle", lambda: load(CommonSettings), build)
