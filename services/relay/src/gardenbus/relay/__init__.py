"""Announces the outbox on JetStream, opens the store for writes, and repairs whichever side went back.

`relay` is the loop; `domain` has the messages, `ports` the outbox, `adapters` the outbox on Redis.
"""
