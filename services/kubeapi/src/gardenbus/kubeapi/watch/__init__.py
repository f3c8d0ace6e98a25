"""The watch cache, and what feeds it from the bus."""
