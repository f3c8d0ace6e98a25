"""The relay on its ports: the outbox on Redis, and the pruning of unused function libraries."""
