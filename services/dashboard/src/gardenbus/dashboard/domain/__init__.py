"""PURE: rows of manifests, queries over rows, and redaction of credentials."""
