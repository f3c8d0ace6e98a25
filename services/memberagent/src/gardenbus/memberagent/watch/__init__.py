"""Cache of one cluster, kept current by the host."""
