"""Controller machinery: work loops, informer, enqueuer, timers, backoff, dead letter. No domain."""
