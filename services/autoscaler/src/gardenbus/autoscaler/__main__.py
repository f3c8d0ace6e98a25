"""`python -m gardenbus.autoscaler [--config FILE]`."""

from gardenbus.autoscaler.app import build
from gardenbus.autoscaler.settings import load_settings
from gardenbus.common.runtime.service import run_service

if __name__ == "__main__":
    run_service("autoscaler", load_settings, build)
