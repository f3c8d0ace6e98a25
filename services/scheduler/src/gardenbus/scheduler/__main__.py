"""`python -m gardenbus.scheduler --config FILE`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.scheduler.app import build
from gardenbus.scheduler.settings import load_settings

if __name__ == "__main__":
    run_service("scheduler", load_settings, build)
