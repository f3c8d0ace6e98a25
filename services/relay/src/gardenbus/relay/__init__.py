"""Announces the outbox on JetStream, opens the write fence and repairs what went back."""
