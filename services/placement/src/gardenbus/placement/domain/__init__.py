"""PURE: documents of snapshots, bindings, Works and statuses, and the resources that placements select."""
