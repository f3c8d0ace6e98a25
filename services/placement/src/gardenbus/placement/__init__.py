"""KubeFleet's hub: snapshots of policies and resources, scheduling, rollout, evictions and Works."""
