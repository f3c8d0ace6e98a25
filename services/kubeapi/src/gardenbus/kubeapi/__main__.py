"""`python -m gardenbus.kubeapi`: serves a Kubernetes API."""

from gardenbus.common.runtime.service import run_service
from gardenbus.kubeapi.app import build
from gardenbus.kubeapi.settings import load_settings

if __name__ == "__main__":
    run_service("kubeapi", load_settings, build)
