"""`python -m gardenbus.controllermanager [--config FILE]`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.controllermanager.app import build
from gardenbus.controllermanager.settings import load_settings

if __name__ == "__main__":
    run_service("controllermanager", load_settings, build)
