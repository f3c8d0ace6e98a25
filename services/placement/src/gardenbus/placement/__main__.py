"""`python -m gardenbus.placement`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.placement.app import build
from gardenbus.placement.settings import load_settings

if __name__ == "__main__":
    run_service("placement", load_settings, build)
