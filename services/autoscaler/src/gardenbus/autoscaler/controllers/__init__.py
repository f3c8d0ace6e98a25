"""The reconciler of SeedAutoscalers."""
