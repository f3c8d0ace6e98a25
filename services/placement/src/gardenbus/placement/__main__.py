"""`python -m gardenbus.placement`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.common.runtime.settings import load
from gardenbus.placement.app import build
from gardenbus.placement.settings import PlacementSettings

if __name__ == "__main__":
    run_service("placement", lambda: load(PlacementSettings), build)
