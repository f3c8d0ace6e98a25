"""`python -m gardenbus.identity`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.identity.app import build
from gardenbus.identity.settings import load_settings

if __name__ == "__main__":
    run_service("identity", load_settings, build)
