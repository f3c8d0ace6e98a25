"""Announces the outbox on JetStream, opens the store for writes, and repairs whichever side went back.

What it does is `gardenbus.common.machinery.relay`; here it becomes a process.
"""
