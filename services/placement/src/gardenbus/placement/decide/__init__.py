"""PURE: what becomes of a placement's snapshots, of its status, and which placements a change concerns."""
