"""`python -m gardenbus.gardenlet --config FILE [--config FILE]… --state-dir DIR`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.gardenlet.app import build
from gardenbus.gardenlet.settings import load_settings

if __name__ == "__main__":
    run_service("gardenlet", load_settings, build)
