"""`python -m gardenbus.relay`."""

from gardenbus.common.runtime.service import run_service
from gardenbus.common.runtime.settings import load
from gardenbus.relay.app import build
from gardenbus.relay.settings import RelayServiceSettings

if __name__ == "__main__":
    run_service("relay", lambda: load(RelayServiceSettings), build)
