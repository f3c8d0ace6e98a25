"""`python -m gardenbus.memberagent --config FILE [--config FILE]… --state-dir DIR`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.memberagent.app import build
from gardenbus.memberagent.settings import load_settings

if __name__ == "__main__":
    run_service("memberagent", load_settings, build)
