"""`python -m gardenbus.apiserver`."""

from gardenbus.apiserver.app import build
from gardenbus.apiserver.memory import return_large_blocks
from gardenbus.apiserver.settings import load_settings
from gardenbus.common.runtime.service import run_service

if __name__ == "__main__":
    return_large_blocks()
    run_service("apiserver", load_settings, build)
