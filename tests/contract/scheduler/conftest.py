"""A garden on real NATS and Redis for the tests of whole schedulers."""

from tests.contract.scheduler.test_scheduler import garden

__all__ = ["garden"]
