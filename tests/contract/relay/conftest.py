"""Store, bus and relays on servers that a test may kill."""

from tests.support.joint import joint

__all__ = ["joint"]
