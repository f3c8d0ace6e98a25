"""`python -m gardenbus.lifecycle [--config FILE]`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.lifecycle.app import build
from gardenbus.lifecycle.settings import load_settings

if __name__ == "__main__":
    run_service("lifecycle", load_settings, build)
