"""PURE: rows of manifests, and queries over rows."""
