"""Pure functions around scaling decisions: reading manifests, pending shoots, status."""
