"""`python -m gardenbus.dashboard [--allow-writes]`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.dashboard.app import build
from gardenbus.dashboard.settings import load_settings

if __name__ == "__main__":
    run_service("dashboard", load_settings, build)
