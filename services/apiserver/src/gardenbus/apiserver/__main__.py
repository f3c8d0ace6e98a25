"""`python -m gardenbus.apiserver`."""

from gardenbus.apiserver.app import build
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.runtime.service import run_service
from gardenbus.common.runtime.settings import load

if __name__ == "__main__":
    run_service("apiserver", lambda: load(ApiserverSettings), build)
