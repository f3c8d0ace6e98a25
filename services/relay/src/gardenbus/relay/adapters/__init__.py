"""The relay on its ports: the outbox on Redis, its statistics, and the pruning of unused function libraries."""
