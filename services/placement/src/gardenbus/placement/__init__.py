"""Takes placements: snapshots of policies and resources, scheduling, rollout, evictions and Works."""
