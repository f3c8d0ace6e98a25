"""`python -m gardenbus.managedseedset [--config FILE]`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.managedseedset.app import build
from gardenbus.managedseedset.settings import load_settings

if __name__ == "__main__":
    run_service("managedseedset", load_settings, build)
