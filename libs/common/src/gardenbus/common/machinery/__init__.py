"""Asyncio without a domain: backoff, informers, the controller loop, the relay."""
