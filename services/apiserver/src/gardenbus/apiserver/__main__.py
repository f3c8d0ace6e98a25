"""`python -m gardenbus.apiserver`."""

from gardenbus.apiserver.app import build
from gardenbus.apiserver.settings import load_settings
from gardenbus.common.runtime.service import run_service

if __name__ == "__main__":
    run_service("apiserver", load_settings, build)
