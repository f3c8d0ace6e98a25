"""Enqueuer of autoscalers, and the pending shoots that a set's next seed would help."""
